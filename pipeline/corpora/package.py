"""Corpora inside installed packages, or inline in the catalogue."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import polars as pl

from pipeline.corpora.catalogue import Dataset, PackageFiles
from pipeline.corpora.reading import Reading
from sentfold.errors import SourceError

# A sentence ends at . ! or ? (and a closing quote or bracket) before a blank and a capital letter. That is good
# enough to split news into texts of sentence length; no score depends on a single split.
SENTENCE = re.compile(r".+?(?:[.!?][\"')\]]*(?=\s+[\"'(\[]?[A-Z])|\Z)", re.DOTALL)


def read_split(name: str, dataset: Dataset, split: str) -> Reading:
    """Read the one split of a packaged or inline data set. Raises SourceError if a file is absent."""
    if dataset.inline:
        return Reading(frame=pl.DataFrame(list(dataset.inline)), source="inline")
    if dataset.package is None:
        raise SourceError(f"'{name}' is in no package", where="pipeline/catalogue.yaml")
    contents = {path.name: path.read_bytes() for path in _locate(dataset.package)}
    # Bytes that are not UTF-8 become U+FFFD; their number is stored with the corpus.
    texts = [content.decode("utf-8", errors="replace") for content in contents.values()]
    reader = READERS.get(dataset.package.reader)
    if reader is None:
        raise SourceError(
            f"no reader called '{dataset.package.reader}'",
            where=f"pipeline/catalogue.yaml: {name}",
            expected=f"one of: {', '.join(READERS)}",
        )
    frame, further = reader(texts)
    label = dataset.package.package
    return Reading(
        frame=frame,
        source="package",
        files={f"{label}/{name}": hashlib.sha256(content).hexdigest() for name, content in contents.items()},
        replaced=sum(text.count("\ufffd") for text in texts),
        further=further,
    )


def _locate(files: PackageFiles) -> list[Path]:
    spec = find_spec(files.package)
    if spec is None or not spec.submodule_search_locations:
        raise SourceError(
            f"the package '{files.package}' is not installed",
            where="the Python environment",
            remedy="run `make install`, which installs requirements.lock",
        )
    folder = Path(next(iter(spec.submodule_search_locations))) / files.folder
    paths = [folder / name for name in files.files]
    for path in paths:
        if not path.exists():
            raise SourceError(
                f"the package '{files.package}' lacks '{path.name}'",
                where=f"{files.package}/{files.folder}",
                remedy="install the version that requirements.lock pins",
            )
    return paths


def read_rated_texts(texts: list[str]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """All pairs of texts with their mean human similarity, and sentences of the corpus that are in no pair.

    texts  contents of three files: one text per line, further texts, and the matrix of similarities
    """
    documents = _lines(texts[0])
    background = [sentence for line in _lines(texts[1]) for sentence in split_sentences(line)]
    ratings = [[float(cell) for cell in line.split()] for line in _lines(texts[2])]
    pairs = [(i, j) for i in range(len(documents)) for j in range(i + 1, len(documents))]
    frame = pl.DataFrame(
        {
            "sentence1": [documents[i] for i, _ in pairs],
            "sentence2": [documents[j] for _, j in pairs],
            "score": [ratings[i][j] for i, j in pairs],
            "subset": [""] * len(pairs),
        }
    )
    return frame, tuple(background)


def read_labelled_lines(texts: list[str]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Review snippets labelled `__label__pos` (1) or `__label__neg` (0)."""
    rows = [line.split(" ", 1) for line in _lines(texts[0])]
    frame = pl.DataFrame(
        {
            "text": [text.strip() for _, text in rows],
            "label": [{"__label__neg": 0, "__label__pos": 1}[label] for label, _ in rows],
        }
    )
    return frame, ()


def read_word_pairs(texts: list[str]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Lines of two words and their mean human rating, tab-separated; lines that begin with # are comments."""
    rows = [line.split("\t") for line in _lines(texts[0]) if not line.startswith("#")]
    frame = pl.DataFrame(
        {
            "sentence1": [row[0] for row in rows],
            "sentence2": [row[1] for row in rows],
            "score": [float(row[2]) for row in rows],
            "subset": [""] * len(rows),
        }
    )
    return frame, ()


def split_sentences(text: str) -> list[str]:
    """Split a paragraph into sentences; blanks at both ends of a sentence are dropped."""
    return [piece.strip() for piece in SENTENCE.findall(text) if piece.strip()]


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


READERS: dict[str, Callable[[list[str]], tuple[pl.DataFrame, tuple[str, ...]]]] = {
    "rated_texts": read_rated_texts,
    "labelled_lines": read_labelled_lines,
    "word_pairs": read_word_pairs,
}
