"""Sentence transformers: load a checked model folder, and encode sentences in batches. Needs `sentfold[text]`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from sentfold.encoders.base.protocol import Encoded
from sentfold.encoders.model_folder import ModelSource, locate_model
from sentfold.encoders.model_safety import MOST_GROWTH, growth_of, has_space, refuse_unsafe
from sentfold.errors import EncoderError, first_line
from sentfold.files import Vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from transformers import PreTrainedModel

MOST_SPECIAL_TOKENS = 64  # that a tokenizer adds to one text
# weights_only: a folder's own configuration could switch it off, and then a pickle would run code.
SAFE_WEIGHTS = {"use_safetensors": True, "weights_only": True}


@dataclass(frozen=True)
class TransformerEncoder:
    """An Encoder whose vectors come from a sentence transformer. It learns nothing from the fitting sentences.

    name        name of the encoder, for error messages
    source      where the model comes from, and the sha256 of its files
    batch_size  sentences per batch; all sentences of a batch have the same number of tokens
    """

    name: str
    source: ModelSource
    batch_size: int = 64

    def fit(self, sentences: Sequence[str] = ()) -> FittedTransformer:
        """Check the model's files and load the model. Raises EncoderError or UnansweredError; see locate_model."""
        return FittedTransformer(load_model(self.name, locate_model(self.name, self.source)), self.batch_size)


@dataclass(frozen=True)
class FittedTransformer:
    """A Fitted: a loaded model."""

    model: SentenceTransformer
    batch_size: int

    @property
    def learned(self) -> Mapping[str, npt.NDArray[Any]]:
        """Empty: the model learns nothing from sentences."""
        return {}

    def encode(self, sentences: Sequence[str]) -> Encoded:
        """One vector per sentence."""
        encoding = encode_sentences(self.model, sentences, batch_size=self.batch_size)
        return Encoded(encoding.vectors, {"blank": encoding.blank, "cut at the model's limit": encoding.truncated})


@dataclass(frozen=True)
class Encoding:
    """Vectors of sentences, and counts of batches and of special sentences.

    vectors    (n, d) float32 in the order of the sentences
    batches    number of batches
    truncated  number of sentences that are longer than the model's limit and were cut there
    blank      number of sentences that are empty or only blanks
    """

    vectors: Vectors
    batches: int
    truncated: int
    blank: int


def load_model(encoder: str, folder: Path) -> SentenceTransformer:
    """Load a model folder: safetensors only, no code from the folder, float32, on the CPU. Raises EncoderError.

    A folder that `sentfold export` wrote with a map that is not linear is refused: sentence-transformers would load it
    only with trust in all code that the folder names. `sentfold encode` loads such a folder without that trust.
    """
    refuse_unsafe(encoder, folder)
    if has_space(encoder, folder):
        raise EncoderError(
            f"encoder '{encoder}' has a map that is not linear",
            where="modules.json",
            expected="modules of sentence_transformers",
            got="a space of sentfold",
            remedy="encode with `sentfold encode`, or use the model from before the export",
        )
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
            model_kwargs=dict(SAFE_WEIGHTS),
        )
    except Exception as error:  # noqa: BLE001  # a damaged model makes torch, transformers or json raise anything
        raise EncoderError(
            f"encoder '{encoder}' cannot be loaded",
            where=folder.name,
            expected="a sentence-transformers folder with safetensors weights",
            got=f"{type(error).__name__}: {first_line(error)}",
            remedy="save the model again with SentenceTransformer.save_pretrained",
        ) from None
    check_loaded(encoder, model)
    if not callable(getattr(model, "tokenizer", None)):
        raise EncoderError(
            f"encoder '{encoder}' has no tokenizer of transformers",
            where="modules.json",
            expected="a Transformer as the first module",
            got=type(model[0]).__name__,
            remedy="use a model with a Transformer",
        )
    return model.float().eval()


def check_loaded(encoder: str, model: SentenceTransformer) -> None:
    """Raise EncoderError if a loaded model, not yet converted to float32, would give vectors of random weights.

    Refused too: a tokenizer without words, for which all texts are alike, or with words that the model has no vector
    for, and a limit that the model cannot read.
    """
    from transformers import PreTrainedModel

    ways = [way for part in model.modules() for way in (getattr(part, "modality_config", None) or {}).values()]
    # The pooler is idle only where the hidden states themselves are taken.
    pooler = not all(
        isinstance(way, dict) and "last_hidden_state" in str(way.get("method_output_name")) for way in ways
    )
    for transformer in (part for part in model.modules() if isinstance(part, PreTrainedModel)):
        positions = getattr(transformer.config, "max_position_embeddings", None)
        most = positions if isinstance(positions, int) and positions > 0 else np.inf  # XLNet has -1: no limit
        limit = model.max_seq_length
        if got := lack(transformer, model.tokenizer, pooler=pooler):
            expected = "weights for all layers, and a tokenizer with a vocabulary that the model has vectors for"
        elif limit is not None and not (isinstance(limit, int) and 3 <= limit <= most):
            expected, got = f"a max_seq_length of 3 to {most} tokens", str(limit)[:200]
        else:
            continue
        raise EncoderError(
            f"encoder '{encoder}' is not whole",
            where="the model's folder",
            expected=expected,
            got=got,
            remedy="copy the model's folder again, or save the model again with SentenceTransformer.save_pretrained",
        )


def lack(transformer: PreTrainedModel, tokenizer: Any, *, pooler: bool = False) -> str:
    """What a loaded model, not yet converted, has instead of weights or of a tokenizer; empty if it is whole.

    pooler  whether the weights of the model's own pooled output must be there
    """
    if missing := [name for name in missing_weights(transformer) if pooler or "pooler" not in name]:
        return f"no weights for {missing[0]}"
    if knows_no_word(tokenizer):
        return "a tokenizer of special tokens alone"
    rows = None
    with suppress(NotImplementedError):  # of a model that reads no words
        rows = getattr(transformer.get_input_embeddings(), "num_embeddings", None)
    words = tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else {}
    if rows is not None and (largest := max(words.values(), default=0)) >= rows:
        return f"a word with the number {largest}, and vectors for {rows} words"
    added = tokenizer.num_special_tokens_to_add() if hasattr(tokenizer, "num_special_tokens_to_add") else 0
    if added > MOST_SPECIAL_TOKENS:
        return f"a tokenizer that adds {added} special tokens to a text"
    return blown_up(getattr(tokenizer, "backend_tokenizer", None))


def blown_up(tokenizer: Any) -> str:
    """What a tokenizer of the library tokenizers does to a text that grows too much; empty if none does.

    The files were checked, but transformers can make a tokenizer of other formats (*.model).
    """
    parts = [getattr(tokenizer, name, None) for name in ("normalizer", "pre_tokenizer", "post_processor")]
    growth = growth_of([json.loads(part.__getstate__()) for part in parts if part is not None])
    return f"a tokenizer that makes a text {growth:.0f} times longer" if growth > MOST_GROWTH else ""


def missing_weights(transformer: PreTrainedModel) -> list[str]:
    """The parameters for which the weight files had nothing, and which therefore are random.

    transformers marks every parameter that it has read or tied. A conversion such as float() removes the mark.
    """
    return [name for name, value in transformer.named_parameters() if not getattr(value, "_is_hf_initialized", False)]


def knows_no_word(tokenizer: Any) -> bool:
    """Whether the vocabulary of a tokenizer of transformers has special tokens alone, as without its tokenizer.json."""
    special = getattr(tokenizer, "all_special_ids", None)
    return special is not None and len(tokenizer) <= len(set(special))


def encode_sentences(
    model: SentenceTransformer, sentences: Sequence[str], *, batch_size: int, label: str = ""
) -> Encoding:
    """One vector per sentence, in the order given.

    label  text before the progress bar
    All sentences of a batch have the same number of tokens, so there is no padding, and torch runs on one thread. A
    vector can therefore depend on the other sentences only through the blocks that a library splits a matrix product
    into (measured by benchmarks/batch_effect.py).
    The vector of an empty or blank sentence is what the model computes for a text without words. A sentence that is
    longer than the model's limit is cut there. Both are counted. Unpaired surrogates become U+FFFD. Raises EncoderError
    if a vector is not finite, as with damaged weights.
    """
    texts = [text.encode("utf-8", errors="surrogatepass").decode("utf-8", errors="replace") for text in sentences]
    limit = min(int(model.max_seq_length or 0), np.iinfo(np.int64).max)
    prompt = (model.prompts or {}).get(model.default_prompt_name or "") or ""  # which encode puts before each text
    lengths = token_lengths(model, [prompt + text for text in texts] if prompt else texts)
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
    check_finite(vectors)
    truncated = int((lengths > limit).sum()) if limit else 0
    return Encoding(vectors, batches, truncated, blank=sum(not text.strip() for text in texts))


def check_finite(vectors: Vectors) -> None:
    """Raise EncoderError if a vector has an infinite or undefined entry."""
    if not np.isfinite(vectors).all():
        raise EncoderError(
            "an encoder gives vectors that are not finite",
            where="the encoder's weights",
            expected="finite numbers",
            got=f"{int((~np.isfinite(vectors)).any(axis=1).sum())} vectors with others",
            remedy="copy the model's folder again",
        )


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run torch on one thread: it splits sums by the number of threads, so more threads change the last bits."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def token_lengths(model: Any, texts: Sequence[str], *, chunk: int = 1024) -> npt.NDArray[np.int64]:
    """Number of tokens of each text before truncation, special tokens included.

    Raises EncoderError if the tokenizer fails.
    """
    lengths: list[int] = []
    for start in range(0, len(texts), chunk):
        batch = list(texts[start : start + chunk])
        with tokenizer_errors("the tokenizer of the model"):
            encoded = model.tokenizer(batch, padding=False, truncation=False, verbose=False)
        lengths.extend(len(ids) for ids in encoded["input_ids"])
    return np.array(lengths, dtype=np.int64)


@contextmanager
def tokenizer_errors(where: str) -> Iterator[None]:
    """Turn what a failing tokenizer raises into EncoderError: the panics of the library tokenizers are no Exception."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise EncoderError(
            "a tokenizer fails",
            where=where,
            expected="the tokens of a text",
            got=first_line(error),
            remedy="copy the model's folder again",
        ) from None


def plan_batches(texts: Sequence[str], lengths: npt.NDArray[np.int64], *, batch_size: int) -> Iterator[list[int]]:
    """Rows of each batch: sentences of one token length. The longest are first; equal lengths are sorted by text."""
    order = sorted(range(len(texts)), key=lambda row: (-int(lengths[row]), texts[row]))
    batch: list[int] = []
    for row in order:
        if batch and (len(batch) == batch_size or lengths[row] != lengths[batch[0]]):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
