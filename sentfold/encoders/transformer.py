"""Sentence transformers: a checked model folder, batches, vectors. Needs the extra `sentfold[text]`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from sentfold.encoders.base.protocol import Encoded
from sentfold.encoders.model_folder import ModelSource, has_space, locate_model, refuse_unsafe
from sentfold.errors import EncoderError, first_line
from sentfold.files import Vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


@dataclass(frozen=True)
class TransformerEncoder:
    """An Encoder whose vectors come from a sentence transformer. It learns nothing from the fitting sentences.

    name        of the encoder, for errors
    source      where its weights are, and which bytes they must be
    batch_size  sentences per batch; all sentences of a batch have the same number of tokens
    """

    name: str
    source: ModelSource
    batch_size: int = 64

    def fit(self, sentences: Sequence[str] = ()) -> FittedTransformer:
        """Load the model, its bytes checked. Raises EncoderError."""
        return FittedTransformer(load_model(self.name, locate_model(self.name, self.source)), self.batch_size)


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
        """One vector per sentence."""
        encoding = encode_sentences(self.model, sentences, batch_size=self.batch_size)
        return Encoded(encoding.vectors, {"blank": encoding.blank, "cut at the model's limit": encoding.truncated})


@dataclass(frozen=True)
class Encoding:
    """Vectors of sentences, and what was counted on the way.

    vectors    (n, d) float32 in the order of the sentences
    batches    number of batches
    truncated  sentences that were longer than the model's limit and were cut there
    blank      sentences without a character that is visible
    """

    vectors: Vectors
    batches: int
    truncated: int
    blank: int


def load_model(encoder: str, folder: Path) -> SentenceTransformer:
    """Load a model folder: safetensors only, no code from the folder, float32, on the CPU. Raises EncoderError."""
    refuse_unsafe(encoder, folder)
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging
    except ModuleNotFoundError as error:
        raise EncoderError(
            f"encoder '{encoder}' needs a library that is not installed",
            where="the Python environment",
            got=f"no module '{error.name}'",
            remedy="pip install 'sentfold[text]'",
        ) from None

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
    try:
        model = SentenceTransformer(
            str(folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=has_space(encoder, folder),  # a module of this library; refuse_unsafe saw no other code
            model_kwargs={"use_safetensors": True},
        )
    except Exception as error:  # noqa: BLE001  # a damaged model makes torch, transformers or json raise anything
        raise EncoderError(
            f"encoder '{encoder}' cannot be loaded",
            where=folder.name,
            expected="a sentence-transformers folder with safetensors weights",
            got=f"{type(error).__name__}: {first_line(error)}",
            remedy="save the model again with SentenceTransformer.save_pretrained",
        ) from None
    return model.float().eval()


def encode_sentences(
    model: SentenceTransformer, sentences: Sequence[str], *, batch_size: int, label: str = ""
) -> Encoding:
    """One vector per sentence, in the order given.

    A batch holds sentences of one token length, sorted by text, so there is no padding, and runs on
    one thread, so a vector depends on the others at most through the blocking of matrix products
    (measured by benchmarks/batch_effect.py).
    An empty or blank sentence is encoded as the model encodes no words; a sentence longer than the
    model's limit is cut there. Both are counted. Unpaired surrogates become U+FFFD.
    """
    texts = [text.encode("utf-8", errors="surrogatepass").decode("utf-8", errors="replace") for text in sentences]
    limit = int(model.max_seq_length or 0)
    lengths = token_lengths(model, texts)
    vectors = np.zeros((len(texts), int(model.get_embedding_dimension() or 0)), dtype=np.float32)
    batches = 0
    with _one_thread(), tqdm(total=len(texts), desc=label, unit=" sentences", disable=None, mininterval=0.5) as bar:
        for rows in plan_batches(texts, np.minimum(lengths, limit) if limit else lengths, batch_size=batch_size):
            batch = [texts[row] for row in rows]
            vectors[rows] = model.encode(
                batch, batch_size=len(batch), convert_to_numpy=True, show_progress_bar=False
            ).astype(np.float32)
            batches += 1
            bar.update(len(rows))
    truncated = int((lengths > limit).sum()) if limit else 0
    return Encoding(vectors, batches, truncated, blank=sum(not text.strip() for text in texts))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Torch splits a sum by its number of threads; with one, the bits do not depend on the machine's cores."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def token_lengths(model: Any, texts: Sequence[str], *, chunk: int = 1024) -> npt.NDArray[np.int64]:
    """Number of tokens of each text before truncation, special tokens included."""
    lengths: list[int] = []
    for start in range(0, len(texts), chunk):
        encoded = model.tokenizer(list(texts[start : start + chunk]), padding=False, truncation=False, verbose=False)
        lengths.extend(len(ids) for ids in encoded["input_ids"])
    return np.array(lengths, dtype=np.int64)


def plan_batches(texts: Sequence[str], lengths: npt.NDArray[np.int64], *, batch_size: int) -> Iterator[list[int]]:
    """Rows of each batch: one token length per batch, longest first, sorted by text within."""
    order = sorted(range(len(texts)), key=lambda row: (-int(lengths[row]), texts[row]))
    batch: list[int] = []
    for row in order:
        if batch and (len(batch) == batch_size or lengths[row] != lengths[batch[0]]):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
