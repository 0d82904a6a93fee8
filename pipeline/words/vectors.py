"""Stage `word_vectors`: vectors from one source for the words of every vocabulary of a suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from threadpoolctl import threadpool_limits

from pipeline.artifacts import fixed_lists, read_table, sha256_of, write_table
from pipeline.errors import ParameterError, SourceError, located
from pipeline.params import load_parameters
from pipeline.words.adjust import level_variance, mean_unit_length, unit_length
from pipeline.words.files import read_file
from pipeline.words.locations import FOLDER_VARIABLE, LOCATIONS_FILE, find_location, vectors_folder
from pipeline.words.paths import COUNT_COLUMNS, vectors_path, vocabulary_path
from pipeline.words.vector_parameters import Missing, WordVectorParameters
from pipeline.words.wordllama import token_means

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Found:
    """Vectors of those words that a source holds.

    words    in the order asked for
    vectors  (n, d)
    notes    what the reading counted and certified
    """

    words: tuple[str, ...]
    vectors: Floats
    notes: dict[str, Any] = field(default_factory=dict)


def word_vectors(
    suite: str, source: str, tokenizers: tuple[str, ...], *, locations: Path = LOCATIONS_FILE
) -> dict[str, int]:
    """Write the vectors of one source for each vocabulary. Returns tokeniser -> words that have one.

    A file is read once, for all vocabularies together. Raises SourceError if the source is absent, is not
    the pinned one, or holds none of the words; ParameterError if its block of params.yaml does not fit.
    """
    paths = {tokenizer: vocabulary_path(suite, tokenizer) for tokenizer in tokenizers}
    vocabularies: dict[str, list[str]] = {
        tokenizer: read_table(path, kind="vocabulary", columns=COUNT_COLUMNS).column("word").to_pylist()
        for tokenizer, path in paths.items()
    }
    blocks = load_blocks(source)
    everything = list(dict.fromkeys(word for words in vocabularies.values() for word in words))
    raw = {
        name: read_source(name, block, everything, locations=locations)
        for name, block in blocks.items()
        if not block.parts()
    }
    written = {}
    for tokenizer, words in vocabularies.items():
        with threadpool_limits(1), located(f"params.yaml: word_vectors, vocabulary '{tokenizer}'"):
            found = make_vectors(source, blocks, raw, words)
        write_table(
            vectors_path(suite, source, tokenizer),
            pa.table(
                {
                    "word": pa.array(found.words, pa.string()),
                    "vector": fixed_lists(np.ascontiguousarray(found.vectors, dtype=np.float32)),
                }
            ),
            kind="word_vectors",
            parameters={"source": source, "blocks": {name: block.model_dump() for name, block in blocks.items()}},
            inputs=[paths[tokenizer]],
            notes={
                "missing": len(words) - len(found.words),
                "sources": {name: held.notes for name, held in raw.items()},
                **found.notes,
            },
        )
        written[tokenizer] = len(found.words)
    return written


def load_blocks(source: str) -> dict[str, WordVectorParameters]:
    """The block of a source and of all that it is made of. Raises ParameterError if one is made of itself."""
    blocks: dict[str, WordVectorParameters] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ParameterError(
                f"the word vectors '{name}' are made of themselves",
                where="params.yaml: word_vectors",
                got=" of ".join([*above, name]),
                remedy="correct `of:` and `concat:`",
            )
        if name not in blocks:
            blocks[name] = load_parameters(WordVectorParameters, f"word_vectors.{name}")
            for part in blocks[name].parts():
                visit(part, (*above, name))

    visit(source, ())
    return blocks


# --- reading ------------------------------------------------------------------------------------


def read_source(
    name: str, block: WordVectorParameters, words: Sequence[str], *, locations: Path = LOCATIONS_FILE
) -> Found:
    """What a package or a file holds of `words`, as it is. Raises SourceError."""
    if block.package is not None:
        vectors = token_means(words, package=block.package, sha256=block.sha256)
        return Found(tuple(words), vectors, {"files": dict(block.sha256)})
    location = find_location(str(block.file), locations)
    path = vectors_folder() / location.file
    if not path.is_file():
        raise SourceError(
            f"the word vectors '{name}' are not here",
            where=f"{FOLDER_VARIABLE}/{location.file}",
            expected="the file as its authors publish it",
            got="no such file",
            remedy=f"run `sentfold fetch-vectors {block.file}`, or set {FOLDER_VARIABLE} to the folder that holds it, "
            f"or take '{name}' out of the suite",
        )
    digest = sha256_of(path)
    if digest != location.sha256:
        raise SourceError(
            f"the word vectors '{name}' are not the known ones",
            where=f"{FOLDER_VARIABLE}/{location.file}",
            expected=location.sha256 or "a sha256 to hold it against; none is known yet",
            got=digest,
            remedy=f"if these are the bytes you mean, put them into {locations.name}; else get the file again",
        )
    held = read_file(path, set(words), dimension=location.dimension, binary=location.binary, member=location.member)
    if not held.words:
        raise SourceError(
            f"the word vectors '{name}' hold no word of the suite",
            where=location.file,
            expected=f"some of {len(words)} words",
            got=f"{held.records} other words",
            remedy="look at the file: words and figures are parted by blanks",
        )
    row = {word: i for i, word in enumerate(held.words)}
    known = tuple(word for word in words if word in row)
    notes = {"duplicates": held.duplicates, "files": {location.file: digest}, "records": held.records}
    return Found(known, held.vectors[[row[word] for word in known]], notes)


# --- making -------------------------------------------------------------------------------------


def make_vectors(
    source: str, blocks: dict[str, WordVectorParameters], raw: dict[str, Found], words: Sequence[str]
) -> Found:
    """The vectors of `source` for one vocabulary, out of what the sources hold.

    words  the vocabulary; it is what means are taken over and variance is levelled over
    Raises SourceError if no word is left.
    """
    block = blocks[source]
    if block.concat is not None:
        parts = [make_vectors(part, blocks, raw, words) for part in block.concat]
        found = join_parts([fill_missing(part, words, block.missing) for part in parts], words)
    else:
        found = make_vectors(block.of, blocks, raw, words) if block.of is not None else _restrict(raw[source], words)
        found = fill_missing(found, words, block.missing)
    if not found.words:
        raise SourceError(f"no word of the vocabulary has a vector in '{source}'", where="word_vectors", got="none")
    vectors = level_variance(found.vectors, block.pvn) if block.pvn else found.vectors
    if block.scale != "none":
        vectors = unit_length(vectors) if block.scale == "unit" else mean_unit_length(vectors)
    return Found(found.words, vectors, found.notes)


def fill_missing(found: Found, words: Sequence[str], missing: Missing) -> Found:
    """Give the words that a source lacks the mean of those it has, or zeros, or nothing ("drop")."""
    lacking = len(words) - len(found.words)
    if missing == "drop" or not lacking:
        return found
    filler = np.zeros(found.vectors.shape[1]) if missing == "zero" else found.vectors.mean(axis=0, dtype=np.float64)
    row = {word: i for i, word in enumerate(found.words)}
    vectors = np.tile(filler, (len(words), 1))
    held = [i for i, word in enumerate(words) if word in row]
    vectors[held] = found.vectors
    return Found(tuple(words), vectors, {"filled": lacking})


def join_parts(parts: Sequence[Found], words: Sequence[str]) -> Found:
    """The vectors of several sources side by side, for the words that all of them hold."""
    shared = set(words).intersection(*(part.words for part in parts))
    kept = tuple(word for word in words if word in shared)
    columns = []
    for part in parts:
        row = {word: i for i, word in enumerate(part.words)}
        columns.append(part.vectors[[row[word] for word in kept]])
    filled = [part.notes.get("filled", 0) for part in parts]
    return Found(kept, np.hstack(columns), {"filled": filled} if any(filled) else {})


def _restrict(found: Found, words: Sequence[str]) -> Found:
    row = {word: i for i, word in enumerate(found.words)}
    kept = tuple(word for word in words if word in row)
    return Found(kept, found.vectors[[row[word] for word in kept]])
