"""What a product with M costs, by the order of the rows and by how many vectors go at a time.

    python -m benchmarks.products --n 117000 [--k 30] [--encoder wordllama] [--repeats 5] [--json FILE]

Orders: as the sentences come, reverse Cuthill-McKee, and halves of the graph, which the eigensolver takes from
40,000 rows on. Float32 on the damped operator, as its filter applies it; one thread, CPU milliseconds of one vector,
medians over repeats with their range, the orders taking turns. `near` is the share of neighbours at most 8,192
rows away. Needs SENTFOLD_MIRROR.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch  # an operator takes no order from outside: only this comparison wants another

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from benchmarks.inputs import Encoder, vectors
from benchmarks.manifold import summarize
from sentfold.manifold.solver import ordering, product
from sentfold.manifold.solver.eigensolver import weight_matrix
from sentfold.manifold.weights.weights import solve_weights
from sentfold.neighbors.neighbors import nearest_neighbors

Order = Callable[[sp.csr_array], npt.NDArray[np.int32]]

REGULARIZATION = 1e-3
WIDTHS = (product.NARROW, product.WIDTH, product.WIDE)
VECTORS = 640  # multiplied per repeat
NEAR = 8192  # rows


def orders() -> dict[str, Order]:
    """Each order by its name."""

    def forced(many: int) -> Order:
        def order(weights: sp.csr_array) -> npt.NDArray[np.int32]:
            with patch.object(ordering, "MANY", many):
                return ordering.cache_order(weights)

        return order

    return {
        "as they come": lambda weights: np.arange(weights.shape[0], dtype=np.int32),
        "reverse Cuthill-McKee": forced(1 << 62),
        "halves": forced(0),
    }


def operator_in(order: npt.NDArray[np.int32], weights: sp.csr_array) -> product.Operator:
    """The operator of W with its rows in a given order."""
    with patch.object(product, "cache_order", return_value=order):
        return product.Operator.from_weights(weights, workers=1)


def share_near(weights: sp.csr_array, order: npt.NDArray[np.int32]) -> float:
    """Of all neighbours, those that lie at most NEAR rows away."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    rows = np.repeat(place, np.diff(weights.indptr))
    return float((np.abs(rows - place[weights.indices]) <= NEAR).mean())


def milliseconds(operator: product.Operator, width: int) -> float:
    """CPU time of one vector's product, `width` of them at a time."""
    now, before, out, scratch = (product.empty_block(operator.n, np.float32, width=width) for _ in range(4))
    for block in (now, before, out, scratch):
        block[:] = np.random.default_rng(0).standard_normal(block.shape) / operator.n

    def multiply() -> None:
        operator.recur(now, before, out, scratch, (0.5, 0.1, 0.1), damped=True)

    multiply()  # compiles, and brings the blocks in
    start = time.process_time()
    for _ in range(VECTORS // width):
        multiply()
    return 1e3 * (time.process_time() - start) / (VECTORS // width * width)


def measure(weights: sp.csr_array, repeats: int) -> list[dict[str, Any]]:
    """One row per order."""
    rows, operators = [], []
    for name, order in orders().items():
        start = time.process_time()
        found = order(weights)
        rows.append({"order": name, "order_cpu_s": time.process_time() - start, "near": share_near(weights, found)})
        operators.append(operator_in(found, weights))
    runs: list[list[dict[str, Any]]] = [[] for _ in rows]
    for _ in range(repeats):
        for place, operator in enumerate(operators):
            runs[place].append({str(width): milliseconds(operator, width) for width in WIDTHS})
    for row, found_runs in zip(rows, runs, strict=True):
        for width in WIDTHS:
            median, spread = summarize(found_runs, str(width))
            row[f"ms_{width}"], row[f"ms_{width}_spread"] = median, spread
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, required=True)
    parser.add_argument("--k", type=int, default=30)
    parser.add_argument("--encoder", choices=get_args(Encoder), default="wordllama")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with threadpool_limits(1):
        x = vectors(arguments.n, arguments.encoder)
        neighbors = nearest_neighbors(x, arguments.k, workers=1).indices
        values = solve_weights(x, neighbors, regularization=REGULARIZATION, workers=1).values
        rows = measure(weight_matrix(neighbors, values), arguments.repeats)
    described = {name: getattr(arguments, name) for name in ("n", "k", "encoder", "repeats")}
    text = json.dumps({**described, "orders": rows}, indent=1)
    print(text)
    if arguments.json:
        arguments.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
