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
    """Write the vectors of one source for each vocabulary. Returns tokeniser -> words that have one.

    A file is read once, for all vocabularies together. Raises SourceError if the source is absent, is not
    the pinned one, or holds none of the words; ParameterError if its block of params.yaml does not fit.
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
) -> SourceVectors:
    """What a package or a file holds of `words`, as it is. Raises SourceError."""
    if block.package is not None:
        vectors = token_means(words, package=block.package, sha256=block.sha256)
        return SourceVectors(tuple(words), vectors, {"files": dict(block.sha256)})
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
    return SourceVectors(known, held.vectors[[row[word] for word in known]], notes)
