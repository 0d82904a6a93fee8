"""The blocks of `searches:` and `pools:` in params.yaml: ways to search, and retrieval tasks made from pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field, model_validator

from pipeline.base.artifacts import corpus_path, read_record, read_table
from pipeline.base.cases import refuse_far_rows, task_of
from pipeline.base.params import PARAMS_FILE, load_parameters
from sentfold.compare.bootstrap import group_design
from sentfold.errors import ArtifactError, ParameterError, located
from sentfold.manifold.base.grid import combine
from sentfold.retrieval.base.pool import Pool, make_pool
from sentfold.retrieval.base.protocol import SearchMethod, find_search
from sentfold.settings import Parameters, Slug, validate

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Float64 = npt.NDArray[np.float64]


class SearchBlock(Parameters):
    """A block of `searches:`; the Settings of the method check all keys other than `method`."""

    model_config = ConfigDict(extra="allow")

    method: str


@dataclass(frozen=True)
class Search:
    """A method with its grid: every combination of the values that its block lists. The first setting varies slowest.

    module  the file of the method in sentfold/retrieval
    points  settings of the method; of equally good points the first is chosen
    """

    name: str
    module: SearchMethod
    points: tuple[Parameters, ...]


def load_search(name: str) -> Search:
    """The block searches.<name> of params.yaml. Raises ParameterError for a wrong method, a wrong value, too many."""
    where = f"{PARAMS_FILE}: searches.{name}"
    block = load_parameters(SearchBlock, f"searches.{name}")
    with located(where):
        module = find_search(block.method)
    listed = {key: value if isinstance(value, list) else [value] for key, value in (block.model_extra or {}).items()}
    points = tuple(validate(module.Settings, chosen, where=where) for chosen in combine(listed, where=where))
    if not points:
        raise ParameterError("a grid has no values", where=where, expected="lists of at least one value", got="[]")
    return Search(name, module, points)


class Part(Parameters):
    """The pairs of a corpus, or of one of its splits."""

    corpus: Slug
    split: str | None = None


class PoolBlock(Parameters):
    """A block of `pools:`, named after the corpus whose pairs are the test: the first text asks, the second is found.

    split        the split of the corpus that is the test; null: all of the corpus
    column       the column of the items that says how relevant the second text is
    relevant     the values of that column that mean relevant; or
    least        the smallest value that means relevant; with neither, the values are the grades, relevant above 0
    development  the pairs that choose parameters; null: half of the corpus's own, and the other half is the test
    seed         of that half
    remark       what a reader has to know of the pool
    """

    split: str | None = None
    column: str
    relevant: list[int] = []
    least: float | None = None
    development: Part | None = None
    seed: int = Field(default=0, ge=0, lt=2**32)
    remark: str = ""

    @model_validator(mode="after")
    def _says_what_is_relevant(self) -> PoolBlock:
        if self.relevant and self.least is not None:
            raise ValueError("give either `relevant` or `least`")
        return self

    def grades_of(self, values: npt.NDArray[Any]) -> Float64:
        """(n,) grades: 1 for the values of the column that mean relevant, else 0; or the values themselves."""
        if self.relevant:
            return np.isin(values, self.relevant).astype(np.float64)
        return (values if self.least is None else values >= self.least).astype(np.float64)


@dataclass(frozen=True)
class JudgedPairs:
    """Judged pairs of texts of one corpus.

    rows       (j, 2) rows of the query and of the document
    grades     (j,) grades
    documents  rows of all documents, where the corpus has a collection of them; None: those of the pairs alone
    """

    corpus: str
    rows: Ints
    grades: Float64
    documents: Ints | None = None

    def only(self, kept: Any) -> JudgedPairs:
        """Some of the pairs, by a mask or a slice. The documents of a collection stay."""
        return JudgedPairs(self.corpus, self.rows[kept], self.grades[kept], self.documents)

    @property
    def pool(self) -> Pool:
        """The pairs as a retrieval task."""
        return make_pool(self.rows, self.grades, self.documents)


def load_pool(name: str) -> PoolBlock:
    """The block pools.<name> of params.yaml. Raises ParameterError."""
    return load_parameters(PoolBlock, f"pools.{name}")


def corpora_read_by(name: str, block: PoolBlock) -> tuple[str, ...]:
    """The corpora that a pool is made from: that of the test, and that of the development."""
    return (name,) if block.development is None else (name, block.development.corpus)


def read_pairs(suite: str, name: str, block: PoolBlock) -> tuple[JudgedPairs, JudgedPairs] | str:
    """The test pairs and the development pairs of a pool, or the reason why a corpus of it is absent.

    Development pairs that share a text with the test are left out, and so are those beyond the number of test pairs.
    In a collection of documents, which both parts search, that holds for the queries instead.
    Raises ParameterError if a corpus has no pairs, or lacks the column or the split, or the column holds
    no numbers; ArtifactError if its items name
    sentences that it has not.
    """
    for corpus in corpora_read_by(name, block):
        items = corpus_path(suite, corpus, "items")
        reason = read_record(items, kind=f"items.{task_of(items)}")["notes"].get("absent")
        if reason is not None:
            return str(reason)
    test = _read_part(suite, block, Part(corpus=name, split=block.split))
    if block.development is None:
        half = _half_of_groups(test.rows, block.seed)
        return test.only(~half), test.only(half)
    development = _read_part(suite, block, block.development)
    if test.documents is not None:
        return test, development.only(_other_queries(suite, test, development))
    seen = set(_texts(suite, test)[test.rows.ravel()])
    unseen = [not seen.intersection(pair) for pair in _texts(suite, development)[development.rows]]
    return test, development.only(np.array(unseen)).only(slice(len(test.rows)))


def _read_part(suite: str, block: PoolBlock, part: Part) -> JudgedPairs:
    path = corpus_path(suite, part.corpus, "items")
    items = read_table(path, kind=f"items.{task_of(path)}").to_pydict()
    lacking = [column for column in ("row1", "row2", "split", block.column) if column not in items]
    kept = np.array([part.split in (None, split) for split in items.get("split", [])], dtype=np.bool_)
    if lacking or not kept.any():
        raise ParameterError(
            "a pool cannot be made from a corpus",
            where=f"{PARAMS_FILE}: pools, the corpus {part.corpus}",
            expected=f"pairs with a column {block.column}" + ("" if part.split is None else f", split {part.split}"),
            got=f"no {', '.join(lacking)}" if lacking else f"splits {', '.join(sorted(set(items['split'])))}",
            remedy="correct the block of the pool",
        )
    n = read_table(corpus_path(suite, part.corpus, "sentences"), kind="sentences").num_rows
    refuse_far_rows(items, n, where=str(path))
    rows = np.column_stack([items["row1"], items["row2"]]).astype(np.int64)[kept]
    collection = read_record(path, kind=f"items.{task_of(path)}")["notes"].get("documents")
    if collection is not None and not (isinstance(collection, int) and 0 <= collection <= n):
        raise ArtifactError(
            "a corpus has fewer sentences than documents",
            where=str(path),
            expected=f"0 to {n} documents",
            got=str(collection)[:80],
            state="the file is unchanged",
            remedy="delete the file and run `dvc repro`, which makes it again",
        )
    documents = None if collection is None else np.arange(collection)
    values = np.array(items[block.column])
    if values.dtype.kind not in "iufb":
        raise ParameterError(
            "a pool cannot be made from a column that holds no numbers",
            where=f"{PARAMS_FILE}: pools, the corpus {part.corpus}",
            expected="the name of a column of numbers",
            got=block.column,
            remedy="correct `column` in the block of the pool",
        )
    return JudgedPairs(part.corpus, rows, block.grades_of(values[kept]), documents)


def _other_queries(suite: str, test: JudgedPairs, development: JudgedPairs) -> Bools:
    """(j,) the development pairs of queries that are no test queries: of as many queries as the test has, in order."""
    asked = set(_texts(suite, test)[test.rows[:, 0]])
    texts = _texts(suite, development)[development.rows[:, 0]]
    chosen = set([text for text in dict.fromkeys(texts) if text not in asked][: len(asked)])
    return np.array([text in chosen for text in texts], dtype=np.bool_)


def _half_of_groups(rows: Ints, seed: int) -> Bools:
    """(j,) a random half of the groups of pairs; pairs with a text in common, also through others, are one group."""
    group = group_design(rows, [""] * len(rows)).members
    order = np.random.default_rng(seed).permutation(int(group.max()) + 1)
    half: Bools = order[group] % 2 == 1
    return half


def _texts(suite: str, pairs: JudgedPairs) -> npt.NDArray[np.object_]:
    sentences = read_table(corpus_path(suite, pairs.corpus, "sentences"), kind="sentences")
    return np.array(sentences.column("text").to_pylist(), dtype=object)
