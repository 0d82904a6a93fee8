"""Sentence encoders for partitions of texts: a transformer of params.yaml, or the mean of token vectors."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pipeline.artifacts import Vectors, sha256_of
from pipeline.encoders.average import WeightedMean
from pipeline.encoders.embed import (
    EmbedParameters,
    EncoderParameters,
    encode_sentences,
    load_model,
    locate_model,
)
from pipeline.encoders.ragged import Ragged
from pipeline.errors import ParameterError, SourceError
from pipeline.params import PARAMS_FILE, load_parameters, read_yaml
from pipeline.words.vector_parameters import WordVectorParameters
from pipeline.words.wordllama import TOKENIZER, WEIGHTS

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

CHUNK = 1024  # texts whose tokens are held at a time


@dataclass(frozen=True)
class TextEncoder:
    """An encoder by name, with all that decides what it computes: workers do not read params.yaml.

    place       an encoder's block, or the block of word vectors that lie in a package
    batch_size  of a transformer's batches
    """

    name: str
    place: EncoderParameters | WordVectorParameters
    batch_size: int

    def record(self) -> dict[str, Any]:
        """JSON-able."""
        kind = "transformer" if isinstance(self.place, EncoderParameters) else "token mean of unit length"
        batches = {"batch_size": self.batch_size} if kind == "transformer" else {}
        return {"name": self.name, "kind": kind, **self.place.model_dump(exclude_defaults=True), **batches}

    def encode(self, texts: list[str]) -> tuple[Vectors, dict[str, int]]:
        """(n, d) float32 and what was counted. The batches are planned from these texts alone.

        Raises EncoderError or SourceError if the model is absent or has other bytes than are pinned.
        """
        return _load(self.name, self.place.model_dump_json(), type(self.place), self.batch_size).encode(texts)


def find_text_encoder(name: str) -> TextEncoder:
    """The block encoders.<name> of params.yaml, or word_vectors.<name> if a package carries its vectors.

    Raises ParameterError if there is neither.
    """
    content = read_yaml(PARAMS_FILE)
    batch_size = load_parameters(EmbedParameters, "embed").batch_size
    if name in (content.get("encoders") or {}):
        return TextEncoder(name, load_parameters(EncoderParameters, f"encoders.{name}"), batch_size)
    words = content.get("word_vectors") or {}
    packed = sorted(key for key, block in words.items() if isinstance(block, dict) and "package" in block)
    if name not in packed:
        raise ParameterError(
            f"there is no sentence encoder '{name}'",
            where=str(PARAMS_FILE),
            expected=f"one of: {', '.join([*sorted(content.get('encoders') or {}), *packed])}",
            got=name,
        )
    return TextEncoder(name, load_parameters(WordVectorParameters, f"word_vectors.{name}"), batch_size)


class _Loaded(Protocol):
    def encode(self, texts: list[str]) -> tuple[Vectors, dict[str, int]]: ...


@lru_cache(maxsize=1)
def _load(
    name: str, place: str, kind: type[EncoderParameters] | type[WordVectorParameters], batch_size: int
) -> _Loaded:
    """The model, kept by the process for its next partition."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if kind is EncoderParameters:
        chosen = EncoderParameters.model_validate_json(place)
        return Transformer(load_model(name, locate_model(name, chosen)), batch_size)
    return TokenMeans.load(WordVectorParameters.model_validate_json(place))


@dataclass(frozen=True)
class Transformer:
    """A sentence transformer, by the batches of stage `embed`."""

    model: SentenceTransformer
    batch_size: int

    def encode(self, texts: list[str]) -> tuple[Vectors, dict[str, int]]:
        """As encode_sentences."""
        done = encode_sentences(self.model, texts, batch_size=self.batch_size)
        return done.vectors, {"batches": done.batches, "blank": done.blank, "truncated": done.truncated}


@dataclass(frozen=True)
class TokenMeans:
    """Means of token vectors at unit length; a text without tokens gets the zero vector.

    A text's vector depends on that text alone: sums are float64, in the order of its tokens.
    """

    composer: WeightedMean
    tokenizer: Tokenizer

    @classmethod
    def load(cls, place: WordVectorParameters) -> TokenMeans:
        """Vectors and tokenizer of an installed package. Raises SourceError unless they have the pinned sha256."""
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        weights, vocabulary = (_pinned(str(place.package), name, place.sha256) for name in (WEIGHTS, TOKENIZER))
        (table,) = load_file(weights).values()
        tokenizer = Tokenizer.from_file(str(vocabulary))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return cls(WeightedMean(table.astype(np.float32), np.ones(len(table))), tokenizer)

    def encode(self, texts: list[str]) -> tuple[Vectors, dict[str, int]]:
        """(n, d) float32, and the number of texts without tokens."""
        vectors = np.empty((len(texts), self.composer.dimension), dtype=np.float32)
        blank = 0
        for start in range(0, len(texts), CHUNK):
            part = self.tokenizer.encode_batch(texts[start : start + CHUNK], add_special_tokens=False)
            tokens = _ragged([encoding.ids for encoding in part])
            means = np.zeros((len(part), vectors.shape[1]))
            self.composer.compose(tokens, means)
            lengths = np.sqrt(np.einsum("ij,ij->i", means, means))
            vectors[start : start + CHUNK] = means / np.where(lengths > 0, lengths, 1)[:, None]
            blank += int((tokens.lengths == 0).sum())
        return vectors, {"blank": blank}


def _ragged(tokens: list[list[int]]) -> Ragged:
    lengths = np.array([len(ids) for ids in tokens], dtype=np.int64)
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    ids = np.fromiter(chain.from_iterable(tokens), dtype=np.int32, count=int(offsets[-1]))
    return Ragged(ids, offsets, np.zeros(len(tokens), dtype=np.int32))


def _pinned(package: str, name: str, sha256: dict[str, str]) -> Path:
    spec = find_spec(package)
    folder = Path(next(iter((spec and spec.submodule_search_locations) or [package])))
    got = sha256_of(folder / name) if (folder / name).is_file() else "no such file"
    if sha256.get(name) != got:
        raise SourceError(
            f"the package '{package}' does not hold the pinned token vectors",
            where=name,
            expected=sha256.get(name, "a pinned sha256"),
            got=got,
            remedy="install the version that requirements.lock pins, on every worker",
        )
    return folder / name
