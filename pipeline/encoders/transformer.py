"""A sentence transformer as an Encoder like any other, for code that is given one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from pipeline.encoders.embed import EncoderParameters, encode_sentences, load_model, locate_model
from pipeline.encoders.protocol import Encoded

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


@dataclass(frozen=True)
class TransformerEncoder:
    """An Encoder: a block of `encoders:` in params.yaml. It learns nothing from the fitting sentences."""

    name: str
    place: EncoderParameters
    batch_size: int

    def fit(self, sentences: Sequence[str]) -> FittedTransformer:  # the Protocol's
        """Load the model, its bytes checked. Raises EncoderError."""
        return FittedTransformer(load_model(self.name, locate_model(self.name, self.place)), self.batch_size)


@dataclass(frozen=True)
class FittedTransformer:
    """A Fitted: a loaded model."""

    model: SentenceTransformer
    batch_size: int

    @property
    def learned(self) -> Mapping[str, npt.NDArray[Any]]:
        """Nothing."""
        return {}

    def encode(self, sentences: Sequence[str]) -> Encoded:
        """One vector per sentence, by the batches of stage `embed`."""
        encoding = encode_sentences(self.model, sentences, batch_size=self.batch_size)
        return Encoded(encoding.vectors, {"blank": encoding.blank, "cut at the model's limit": encoding.truncated})
