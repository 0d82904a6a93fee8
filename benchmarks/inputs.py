"""Real inputs of the benchmarks: the distinct texts of a mirror folder, as WordLlama or MiniLM vectors."""

from __future__ import annotations

import os
from importlib.metadata import distribution
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

Encoder = Literal["wordllama", "minilm"]
TEXT_COLUMNS = ("sentence1", "sentence2", "text", "premise", "hypothesis", "query", "candidate")


def mirror() -> Path:
    """The folder SENTFOLD_MIRROR; SystemExit with the remedy if it is not set."""
    place = os.environ.get("SENTFOLD_MIRROR")
    if not place or not Path(place).is_dir():
        raise SystemExit("set SENTFOLD_MIRROR to a mirror folder of corpora, see docs/suites-and-stages.md")
    return Path(place)


def distinct_texts(*, without: tuple[str, ...] = ("20news", "word_freq")) -> list[str]:
    """The sorted union of all distinct, non-blank texts of every corpus of the mirror but `without`."""
    found: set[str] = set()
    for file in sorted(mirror().glob("*/*.parquet")):
        if file.parent.name in without:
            continue
        table = pl.read_parquet(file)
        for column in set(TEXT_COLUMNS) & set(table.columns):
            found.update(text for text in table[column].drop_nulls() if text.strip())
    return sorted(found)


def newsgroup_lines() -> list[str]:
    """The sorted distinct lines, blanks at either end cut, of the 20 Newsgroups texts."""
    found: set[str] = set()
    for file in sorted(mirror().glob("20news/*.parquet")):
        for text in pl.read_parquet(file)["text"]:
            found.update(line.strip() for line in text.splitlines())
    return sorted(found - {""})


def wordllama_vectors(texts: list[str]) -> npt.NDArray[np.float32]:
    """Mean of the WordLlama token vectors of each text, unit length, (n, 256)."""
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    folder = Path(str(distribution("wordllama").locate_file("wordllama")))
    table = next(iter(load_file(folder / "weights" / "l2_supercat_256.safetensors").values())).astype(np.float32)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    out = np.empty((len(texts), table.shape[1]), dtype=np.float32)
    for start in range(0, len(texts), 10_000):
        encoded = tokenizer.encode_batch(texts[start : start + 10_000], add_special_tokens=False)
        for row, item in enumerate(encoded, start):
            out[row] = table[item.ids].mean(axis=0) if item.ids else 0
    out /= np.maximum(np.linalg.norm(out, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return out


def vectors(count: int, encoder: Encoder = "wordllama", *, cache: Path | None = None) -> npt.NDArray[np.float32]:
    """`count` distinct sentence vectors: the first texts of the union, or a seeded sample of fewer.

    The first 117,000 of the sorted union are the fixed large problem; smaller problems are a random
    sample of those (alphabetical neighbours would be near-duplicates), without texts that share a
    vector: scikit-learn can make one of such a pair its own neighbour, and then solves another problem.
    """
    texts = distinct_texts()[:117_000]
    if count > len(texts):
        raise SystemExit(f"the mirror has {len(texts)} distinct texts, fewer than {count}")
    chosen = np.arange(len(texts))
    if count < len(texts):  # only these are embedded, which takes a transformer minutes
        chosen = np.random.default_rng(0).permutation(len(texts))[: count + count // 10]
    file = (cache or Path("data") / "benchmarks") / f"{encoder}-{len(chosen)}-of-{len(texts)}.npy"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        embed = wordllama_vectors if encoder == "wordllama" else _minilm_vectors
        np.save(file, embed([texts[row] for row in chosen]))
    rows = np.load(file)
    if count == len(texts):
        return rows
    _, first = np.unique(rows, axis=0, return_index=True)
    kept = np.sort(first)[:count]
    return np.ascontiguousarray(rows[kept[np.argsort(chosen[kept])]])


def _minilm_vectors(texts: list[str]) -> npt.NDArray[np.float32]:
    from pipeline.base.params import load_parameters
    from sentfold.encoders.model_folder import ModelSource, locate_model
    from sentfold.encoders.transformer import encode_sentences, load_model

    folder = locate_model("minilm", load_parameters(ModelSource, "encoders.minilm"))
    return encode_sentences(load_model("minilm", folder), texts, batch_size=64, label="minilm").vectors
