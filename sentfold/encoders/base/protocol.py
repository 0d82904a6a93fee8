"""The protocol of encoders: an encoder is fitted on sentences, stores what it learned, and encodes sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from sentfold.errors import EncoderError

if TYPE_CHECKING:
    from types import ModuleType


@dataclass(frozen=True)
class Encoded:
    """Vectors of sentences in the order asked for, and how many of them needed a rule of last resort.

    vectors    (n, d) float32, always finite
    fallbacks  what happened -> number of sentences (or of tokens, where the name says so)
    """

    vectors: npt.NDArray[np.float32]
    fallbacks: Mapping[str, int]


class Fitted(Protocol):
    """An encoder after `fit`: `learned` is all that it took from the fitting sentences."""

    @property
    def learned(self) -> Mapping[str, npt.NDArray[Any]]:
        """Name -> array. Empty for an encoder that learns nothing from sentences."""

    def encode(self, sentences: Sequence[str]) -> Encoded:
        """One vector per sentence; equal sentences get equal vectors, whatever the other sentences are."""


class Encoder(Protocol):
    """A method with its settings and its words, before it has seen a sentence."""

    def fit(self, sentences: Sequence[str]) -> Fitted:
        """Learn from `sentences` whatever the method takes from a corpus."""


class DirectedEncoder(Encoder, Protocol):
    """An encoder that removes directions, and also takes them from elsewhere instead of from a fit."""

    def fit_directions(self, rows: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> Fitted:
        """Use given directions, as many of the first as a fit would have found.

        rows    (k, d) float64 orthonormal
        values  (k,) float64 their singular values, descending
        """


def known_methods() -> tuple[str, ...]:
    """The files of this package that define `build`, by their text: none of them is imported."""
    files = sorted(Path(__file__).parents[1].glob("*.py"))
    return tuple(file.stem for file in files if "\ndef build(" in file.read_text(encoding="utf-8"))


def find_method(name: str) -> ModuleType:
    """The module sentfold/encoders/<method>.py. Raises EncoderError for a name that is no method.

    A module states
        TITLE     the name of the method in tables
        Settings  the model of its parameters
        build     (lexicon, settings) -> Encoder
        describe  (optional) settings as a mapping -> what tables say of settings that are not the usual ones
    """
    slug = name.lower()
    try:
        if not slug.isidentifier():
            raise ImportError
        module = import_module(f"sentfold.encoders.{slug}")
        module.build, module.Settings  # noqa: B018  # a file of this package that is no method lacks them
    except (ImportError, AttributeError) as error:
        # An import that fails inside an existing method is a defect, not a wrong name.
        if isinstance(error, ModuleNotFoundError) and error.name != f"sentfold.encoders.{slug}":
            raise
        raise EncoderError(
            f"there is no encoding method '{name}'",
            where="sentfold/encoders",
            expected=f"one of: {', '.join(known_methods())}",
            got=name,
            remedy="correct the name, or add sentfold/encoders/<method>.py with Settings and build",
        ) from None
    return module
