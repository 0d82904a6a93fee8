"""Stage `word_vectors`: vectors from one source for the words of every vocabulary of a suite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from pipeline.base.artifacts import fixed_lists, write_table
from pipeline.base.params import load_parameters
from pipeline.words.artifacts import load_vocabulary, vectors_path, vocabulary_path
from pipeline.words.published import FOLDER_VARIABLE, LOCATIONS_FILE, find_location, vectors_folder
from sentfold.errors import ParameterError, SourceError, located
from sentfold.files import sha256_of
from sentfold.words.files import read_file
from sentfold.words.vectors import SourceVectors, WordVectorParameters, make_vectors
from sentfold.words.wordllama import token_means


def word_vectors(
    suite: str, source: str, tokenizers: tuple[str, ...], *, locations: Path = LOCATIONS_FILE
) -> dict[str, int]:
    """Write the vectors of one source for each vocabulary. Returns tokeniser -> number of words with a vector.

    A file is read once for all vocabularies. Raises SourceError if the source is absent, does not have the pinned
    sha256, or holds none of the words; ParameterError if its block of params.yaml is wrong.
    """
    vocabularies = {tokenizer: load_vocabulary(suite, tokenizer) for tokenizer in tokenizers}
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
            inputs=[vocabulary_path(suite, tokenizer)],
            notes={
                "missing": len(words) - len(found.words),
                "sources": {name: held.notes for name, held in raw.items()},
                **found.notes,
            },
        )
        written[tokenizer] = len(found.words)
    return written


def load_blocks(source: str) -> dict[str, WordVectorParameters]:
    """The blocks of a source and of all its parts, by name. Raises ParameterError if a source is a part of itself."""
    blocks: dict[str, WordVectorParameters] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ParameterError(
                f"the word vectors '{name}' are a part of themselves",
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
) -> SourceVectors:
    """The unchanged vectors that a package or a file holds for `words`. Raises SourceError."""
    if block.package is not None:
        vectors = token_means(words, package=block.package, sha256=block.sha256)
        return SourceVectors(tuple(words), vectors, {"files": dict(block.sha256)})
    location = find_location(str(block.file), locations)
    path = vectors_folder() / location.file
    if not path.is_file():
        raise SourceError(
            f"the file of the word vectors '{name}' is missing",
            where=f"{FOLDER_VARIABLE}/{location.file}",
            expected="the file as its authors publish it",
            got="no such file",
            remedy=f"run `sentfold fetch-vectors {block.file}`, or set {FOLDER_VARIABLE} to the folder that holds it, "
            f"or remove '{name}' from the suite",
        )
    before = _state(path)
    digest = sha256_of(path)
    if digest != location.sha256:
        raise SourceError(
            f"the file of the word vectors '{name}' does not have its recorded sha256",
            where=f"{FOLDER_VARIABLE}/{location.file}",
            expected=location.sha256 or "a recorded sha256, and none is recorded yet",
            got=digest,
            remedy=f"if the file is right, write its sha256 into {locations.name}; otherwise download the file again",
        )
    held = read_file(path, set(words), dimension=location.dimension, binary=location.binary, member=location.member)
    if _state(path) != before:  # others may be able to change the file between its hash and its reading
        raise SourceError(
            f"the file of the word vectors '{name}' was changed while it was read",
            where=f"{FOLDER_VARIABLE}/{location.file}",
            remedy="run the stage again when nothing else writes to the folder",
        )
    if not held.words:
        raise SourceError(
            f"the word vectors '{name}' hold no word of the suite",
            where=location.file,
            expected=f"some of {len(words)} words",
            got=f"{held.records} other words",
            remedy="check the format of the file: a word and its numbers are separated by blanks",
        )
    row = {word: i for i, word in enumerate(held.words)}
    known = tuple(word for word in words if word in row)
    notes = {"duplicates": held.duplicates, "files": {location.file: digest}, "records": held.records}
    return SourceVectors(known, held.vectors[[row[word] for word in known]], notes)


def _state(path: Path) -> tuple[int, ...]:
    """What differs after a file was replaced, renamed or written to; nobody can set the time of the last change."""
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
