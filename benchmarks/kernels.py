"""What instructions written by hand gain over plain numba: the product with M, and rows that are fetched early.

    python -m benchmarks.kernels [--n 117000] [--repeats 9] [--json FILE]

Both versions run in one process on the same inputs, in turn, on one thread, under the numeric profile. CPU
milliseconds are medians over repeats; a ratio is plain over hand-written, with its quartiles. Vectors are synthetic: n
rows in clusters of about 40, their variances falling as a power of the dimension's number, as those of sentence
embeddings do. The plain versions are tests/reference/kernels.py.
"""

from __future__ import annotations

from sentfold.numeric_profile import use_profile

use_profile()  # before numpy is imported

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.manifold import measure_machine
from sentfold.manifold.solver.eigensolver import weight_matrix
from sentfold.manifold.solver.product import NARROW, WIDE, WIDTH, Operator, _kernels, empty_block
from sentfold.manifold.weights.weights import solve_weights
from sentfold.neighbors.neighbors import nearest_neighbors
from tests.reference import kernels as plain

K, DIMENSIONS, CLUSTER = 30, 128, 40
QUERIES, CANDIDATES = 8192, 38  # of the search: as many candidates as k = 30 keeps
Run = Callable[[], object]


def synthetic_vectors(n: int, d: int, rng: np.random.Generator) -> npt.NDArray[np.float32]:
    """(n, d) rows in clusters, the standard deviation of dimension j falling as j^-0.6."""
    spread = np.arange(1, d + 1) ** -0.6
    centres = rng.standard_normal((n // CLUSTER, d)) * spread
    rows = centres[rng.integers(0, len(centres), n)] + 0.7 * rng.standard_normal((n, d)) * spread
    return rows.astype(np.float32)


def compare(hand: Run, other: Run, repeats: int) -> dict[str, Any]:
    """CPU milliseconds of two runs that take turns, and the ratio of the second to the first."""
    hand(), other()  # compiled, and in the caches as far as they hold
    taken = np.array([(_milliseconds(hand), _milliseconds(other)) for _ in range(repeats)])
    low, middle, high = np.percentile(taken[:, 1] / taken[:, 0], [25, 50, 75])
    return {
        "hand_ms": round(float(np.median(taken[:, 0])), 2),
        "plain_ms": round(float(np.median(taken[:, 1])), 2),
        "ratio": round(float(middle), 2),
        "ratio_quartiles": [round(float(low), 2), round(float(high), 2)],
    }


def _milliseconds(run: Run) -> float:
    start = time.process_time()
    run()
    return 1000 * (time.process_time() - start)


def compare_products(operator: Operator, width: int, kind: npt.DTypeLike, repeats: int) -> dict[str, Any]:
    """One product with M of `width` vectors: both passes over the neighbour lists."""
    n, number, kernels = operator.n, np.dtype(kind), _kernels(width)
    x, y, out, other = (empty_block(n, number, width=width) for _ in range(4))
    x[:] = np.random.default_rng(1).standard_normal((n, width))
    factors = np.array([1.1, -1.0, 0.3], dtype=number)
    lists = [(part.starts, part.columns, part.weights[number]) for part in (operator._forward, operator._backward)]
    flat = [block.reshape(-1) for block in (x, y, out)]

    def hand() -> None:
        kernels.difference(*lists[0], flat[0], flat[1], 0, n)
        kernels.recur(*lists[1], flat[1], flat[0], flat[0], factors, flat[2], 0, n)

    def written_plainly() -> None:
        plain.difference(*lists[0], x, y)
        plain.recur(*lists[1], y, x, x, factors, other)

    found = compare(hand, written_plainly, repeats)
    return {"kernel": "product with M", "vectors": width, "type": str(number), **found}


def compare_fetching(x: npt.NDArray[np.float32], repeats: int) -> dict[str, Any]:
    """Exact distances to candidates anywhere in memory, their rows fetched two ahead or when they are needed."""
    rows = np.random.default_rng(2).integers(0, len(x), (QUERIES, CANDIDATES))
    one, two = np.empty(rows.shape), np.empty(rows.shape)
    found = compare(lambda: plain.distances_fetched(x, rows, one), lambda: plain.distances(x, rows, two), repeats)
    assert np.array_equal(one, two)
    return {"kernel": "rows fetched early", "dimensions": x.shape[1], "type": str(x.dtype), **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, default=117_000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    measured = [compare_fetching(synthetic_vectors(arguments.n, d, rng), arguments.repeats) for d in (256, 384)]
    x = synthetic_vectors(arguments.n, DIMENSIONS, rng)
    neighbors = nearest_neighbors(x, K).indices
    weights = weight_matrix(neighbors, solve_weights(x, neighbors, regularization=1e-3).values)
    with Operator.from_weights(weights, workers=1) as operator:
        for kind in (np.float32, np.float64):
            measured += [compare_products(operator, width, kind, arguments.repeats) for width in (NARROW, WIDTH, WIDE)]
    for row in measured:
        print(row)
    if arguments.json:
        content = {"machine": measure_machine(), "n": arguments.n, "k": K, "kernels": measured}
        arguments.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
