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
    """Vectors of sentences, in the order of the sentences, and how many sentences needed a fallback.

    vectors    (n, d) float32, always finite
    fallbacks  what happened -> number of sentences (or of tokens, if the name says so)
    """

    vectors: npt.NDArray[np.float32]
    fallbacks: Mapping[str, int]


class Fitted(Protocol):
    """An encoder after `fit`. `learned` is everything that the encoder learned from the fitting sentences."""

    @property
    def learned(self) -> Mapping[str, npt.NDArray[Any]]:
        """Name -> array. Empty for an encoder that learns nothing from sentences."""

    def encode(self, sentences: Sequence[str]) -> Encoded:
        """One vector per sentence; equal sentences get equal vectors, whatever the other sentences are."""


class Encoder(Protocol):
    """A method with its settings and its words, before `fit`."""

    def fit(self, sentences: Sequence[str]) -> Fitted:
        """Learn from `sentences` what the method needs from a corpus."""


class DirectedEncoder(Encoder, Protocol):
    """An encoder that removes directions. The caller can give the directions instead of fitting them."""

    def fit_directions(self, rows: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> Fitted:
        """Use the first of the given directions, at most as many as the method removes.

        rows    (k, d) float64 orthonormal
        values  (k,) float64 singular values of the directions, descending
        """


def known_methods() -> tuple[str, ...]:
    """The names of the files in sentfold/encoders whose text defines `build`. None of the files is imported."""
    files = sorted(Path(__file__).parents[1].glob("*.py"))
    return tuple(file.stem for file in files if "\ndef build(" in file.read_text(encoding="utf-8"))


def find_method(name: str) -> ModuleType:
    """The module sentfold/encoders/<method>.py. Raises EncoderError if there is no such method.

    A module defines
        TITLE     the name of the method in tables
        Settings  the class of the method's settings
        build     (lexicon, settings) -> Encoder
        describe  (optional) settings as a mapping -> words that tables add to the title for unusual settings
    """
    slug = name.lower()
    try:
        if not slug.isidentifier():
            raise ImportError
        module = import_module(f"sentfold.encoders.{slug}")
        module.build, module.Settings  # noqa: B018  # a file that is not a method lacks them
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
