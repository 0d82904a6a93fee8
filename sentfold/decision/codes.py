"""Smaller forms of vectors: principal components, fewer coordinates, fewer bits; and how each is compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.decision.families import Rows
from sentfold.decision.nested import Measure, measurer
from sentfold.decision.spaces import LinearSpace
from sentfold.decision.tasks import TOP, LabelsTask, PairsTask, QueriesTask, Task, exact_cosines, expected_ndcg
from sentfold.manifold.base.linear import LinearMap, principal_map
from sentfold.manifold.int8 import decode_int8
from sentfold.retrieval.base.ranking import first_places, unit_rows
from sentfold.retrieval.binary import signs

Floating = npt.NDArray[np.floating[Any]]
Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FRACTIONS = (3 / 4, 1 / 2, 3 / 8, 1 / 4, 3 / 16, 1 / 8, 1 / 16)  # of the dimensions
FLOAT = 4  # bytes
RESCORED = 4 * TOP  # documents that binary codes find, and whole queries then order

COMPONENTS, FIRST, BITS, CONTROL = "principal components", "first coordinates", "fewer bits", "random coordinates"
FAMILIES = (COMPONENTS, FIRST, BITS)


@dataclass(frozen=True)
class Code:
    """A form of a vector: its family, its name, bytes per vector, dimensions. Families are listed large forms first."""

    family: str
    name: str
    bytes: int
    dimensions: int


def list_codes(d: int, rank: int) -> list[Code]:
    """All forms of vectors of d dimensions; principal components up to their rank."""
    sizes = [p for p in dict.fromkeys(int(d * fraction) for fraction in FRACTIONS) if p >= 2]
    codes = [
        Code(family, f"{p} {family}", FLOAT * p, p)
        for family in (COMPONENTS, FIRST, CONTROL)
        for p in sizes
        if family != COMPONENTS or p < rank
    ]
    bits = -(-d // 8)
    names = (("int8", d), ("binary with rescoring", bits), ("binary", bits))
    return codes + [Code(BITS, name, size, d) for name, size in names]


def linear_code(code: Code, rows: Rows, *, seed: int) -> LinearSpace:
    """The map of a code of fewer coordinates."""
    d = rows.x.shape[1]
    if code.family == COMPONENTS:
        return LinearSpace(principal_map(rows.axes, code.dimensions))
    order = np.random.default_rng(seed).permutation(d) if code.family == CONTROL else np.arange(d)
    kept = np.eye(d)[:, order[: code.dimensions]]
    return LinearSpace(LinearMap(np.zeros(d), kept, np.ones(code.dimensions)))


def coded_measures(
    task: Task, own: Floating, rows: Rows, codes: list[Code], *, seed: int
) -> Iterator[tuple[Code, Measure]]:
    """Each code, and the values of items whose vectors have its form. Cost: one product with each family's largest."""
    for family in (COMPONENTS, FIRST, CONTROL):
        members = [code for code in codes if code.family == family]
        if members:
            images = linear_code(members[0], rows, seed=seed).transform(own)
            yield from ((code, measurer(task, images[:, : code.dimensions])) for code in members)
    bits = {code.name: code for code in codes if code.family == BITS}
    yield bits["int8"], measurer(task, decode_int8(own, rows.x))
    yield bits["binary with rescoring"], lambda train, test: measure_rescored(task, own, train, test)
    yield bits["binary"], measurer(task, signs(own))


def measure_rescored(task: Task, own: Floating, train: Ints, test: Ints) -> Float64:
    """Values of items where whole vectors are compared with bits: queries and new texts are whole, stored ones bits.

    For pairs, the mean of both directions. For queries, bits find RESCORED documents, which the whole query orders.
    """
    n, both = len(own), np.concatenate([unit_rows(own), unit_rows(signs(own))])  # rows from n on are bits
    if isinstance(task, PairsTask):
        sides = (replace(task, rows=task.rows + shift) for shift in ([0, n], [n, 0]))
        return np.asarray(np.mean([side.measure(both, train, test) for side in sides], axis=0))
    if isinstance(task, LabelsTask):
        rows = task.rows.copy()
        rows[train] += n
        return replace(task, rows=rows).measure(both, train, test)
    assert isinstance(task, QueriesTask)
    # Of documents that are equally far by their bits those that bits find are drawn, not the first of the file.
    documents = np.random.default_rng(0).permutation(task.documents)
    return np.array([_rescored_query(task, both, documents, n, int(query)) for query in test])


def _rescored_query(task: QueriesTask, both: Floating, documents: Ints, n: int, query: int) -> float:
    """nDCG@10 of one query."""
    row = int(task.rows[query])
    similar = both[n + documents] @ both[n + row]
    task.put_back(similar, documents, query)
    found = documents[first_places(similar, RESCORED)]
    found = found[found != task.same[query]]
    rescored = exact_cosines(both[n + found], both[row])
    task.put_back(rescored, found, query)
    return expected_ndcg(rescored, found, task.relevant[query])
