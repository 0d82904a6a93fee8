"""Sentence transformers: load a checked model folder, and encode sentences in batches. Needs `sentfold[text]`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
# The tables of positions of transformers that learn a vector for each position (BERT, GPT-2, BART).
POSITION_TABLES = {"position_embeddings", "wpe", "embed_positions"}
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
            remedy="pip install '.[text]' in a clone of sentfold",
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


def take_texts_alone(model: SentenceTransformer) -> None:
    """Change a model that also takes pictures or sounds: it keeps what it does with texts.

    sentence-transformers would open a text that is the name of a picture, and download one that is the address.
    """
    parts: Iterable[Any] = model.modules()
    for part in parts:
        ways = getattr(part, "modality_config", None) or {}
        if not {"text", "message"}.issuperset(ways):
            part.modality_config = {kind: way for kind, way in ways.items() if kind in {"text", "message"}}
            part.input_formatter.supported_modalities = list(part.modality_config)


def check_loaded(encoder: str, model: SentenceTransformer) -> None:
    """Raise EncoderError if a loaded model, not yet converted to float32, would give vectors of random weights.

    Refused too: a tokenizer without words, for which all texts are alike, or with words that the model has no vector
    for, and a limit below 3. A limit above the model's positions, which libraries write for RoBERTa, becomes their
    number: the model fails on longer texts.
    """
    from transformers import PreTrainedModel

    ways = [way for part in model.modules() for way in (getattr(part, "modality_config", None) or {}).values()]
    # The pooler is idle only where the hidden states themselves are taken.
    pooler = not all(isinstance(way, dict) and way.get("method_output_name") == "last_hidden_state" for way in ways)
    for transformer in (part for part in model.modules() if isinstance(part, PreTrainedModel)):
        limit = model.max_seq_length
        if got := lack(transformer, model.tokenizer, pooler=pooler):
            expected = "weights for all layers, and a tokenizer with a vocabulary that the model has vectors for"
        elif limit is not None and not (isinstance(limit, int) and limit >= 3):
            expected, got = "a max_seq_length of 3 or more tokens", str(limit)[:200]
        elif limit is not None and limit > (most := most_positions(transformer)):
            model.max_seq_length = int(most)
            continue
        else:
            continue
        raise EncoderError(
            f"encoder '{encoder}' is not whole",
            where="the model's folder",
            expected=expected,
            got=got,
            remedy="copy the model's folder again, or save the model again with SentenceTransformer.save_pretrained",
        )


def most_positions(transformer: PreTrainedModel) -> float:
    """The number of tokens that a model has positions for; inf if it computes them (rotary or relative positions).

    RoBERTa and MPNet leave out the rows of their tables up to the one for padding, and OPT its first two. config.json
    does not say that, and its max_position_embeddings is no limit for a model that computes its positions. Of a model
    that also takes sounds or pictures, the part that reads words counts.
    """
    words = _word_table(transformer)
    parts: list[Any] = [part for part in transformer.modules() if _word_table(part) is words is not None]
    inner = [part for part in parts if not any(other in parts for other in part.modules() if other is not part)]
    tables: list[tuple[str, Any]] = [pair for part in inner for pair in part.named_modules()]
    return min(
        (
            table.num_embeddings - getattr(table, "offset", 0 if table.padding_idx is None else table.padding_idx + 1)
            for name, table in tables
            if name.rpartition(".")[2] in POSITION_TABLES and hasattr(table, "num_embeddings")
        ),
        default=np.inf,
    )


def most_words(transformer: PreTrainedModel) -> float:
    """The number of words that a model has a vector for; inf for a model that reads no words."""
    return getattr(_word_table(transformer), "num_embeddings", np.inf)


def _word_table(part: Any) -> Any:
    """The table of vectors of the words that a part of a model reads; None if it reads no words."""
    with suppress(NotImplementedError, AttributeError):
        table = part.get_input_embeddings()
        return table if hasattr(table, "num_embeddings") else None
    return None


def lack(transformer: PreTrainedModel, tokenizer: Any, *, pooler: bool = False) -> str:
    """What a loaded model, not yet converted, has instead of weights or of a tokenizer; empty if it is whole.

    pooler  whether the weights of the model's own pooled output must be there
    A token that was added to the vocabulary may have no vector (Gemma 3 has one for pictures), but for the padding:
    token_lengths refuses the texts that have it.
    """
    if missing := [name for name in missing_weights(transformer) if pooler or "pooler" not in name]:
        return f"no weights for {missing[0]}"
    if knows_no_word(tokenizer):
        return "a tokenizer of special tokens alone"
    words = tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else {}
    extra = set(tokenizer.get_added_vocab() if hasattr(tokenizer, "get_added_vocab") else {})
    extra.discard(getattr(tokenizer, "pad_token", None))
    largest = max((number for word, number in words.items() if word not in extra), default=0)
    if largest >= (rows := most_words(transformer)):
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
    if a vector is not finite, as with damaged weights, or if a text has a token that the model has no vector for.
    """
    take_texts_alone(model)
    texts = [text.encode("utf-8", errors="surrogatepass").decode("utf-8", errors="replace") for text in sentences]
    limit = min(int(model.max_seq_length or 0), np.iinfo(np.int64).max)
    prompt = (model.prompts or {}).get(model.default_prompt_name or "") or ""  # which encode puts before each text
    parts: Iterable[Any] = model.modules()
    words = min((most_words(part) for part in parts if hasattr(part, "get_input_embeddings")), default=np.inf)
    lengths = token_lengths(model, [prompt + text for text in texts] if prompt else texts, words=words)
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


def token_lengths(model: Any, texts: Sequence[str], *, chunk: int = 64, words: float = np.inf) -> npt.NDArray[np.int64]:
    """Number of tokens of each text before truncation, special tokens included.

    words  number of words that the model has a vector for
    Raises EncoderError if the tokenizer fails, or for a text with a token that the model has no vector for.
    """
    lengths: list[int] = []
    for start in range(0, len(texts), chunk):
        batch = list(texts[start : start + chunk])
        with tokenizer_errors("the tokenizer of the model"):
            encoded = model.tokenizer(batch, padding=False, truncation=False, verbose=False)
        for row, ids in enumerate(encoded["input_ids"], start=start):
            if (largest := max(ids, default=0)) >= words:
                raise EncoderError(
                    "a text has a token that the model has no vector for",
                    where=f"text {row + 1} of those that are encoded together",
                    expected=f"tokens with numbers below {words}",
                    got=f"{model.tokenizer.convert_ids_to_tokens(largest)!r}, with the number {largest}",
                    remedy="take the token out of the text; if all texts have it, use another model",
                )
            lengths.append(len(ids))
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
