"""Exact neighbours beside the peak of the machine's own sgemm, and beside scikit-learn and faiss.

    python -m benchmarks.neighbors --n 20000 --k 30 --json FILE [--encoder wordllama] [--repeats 5] [--without-peers]

One thread throughout, CPU seconds, medians over repeats with their range. The peak is that of a
2048 x 2048 x 256 product, measured between the repeats, so that a busy machine slows both alike.
Two figures beside it: the share of the peak that the flops which were computed reach in the whole
time of the search, and the effective rate, 2 n^2 d over that time, which symmetry can lift above 1.
The BLAS libraries are recorded with the kernels they chose: the one in a faiss wheel may take a new
processor for an old one, which OPENBLAS_CORETYPE=SkylakeX cures.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController, threadpool_limits

from benchmarks.inputs import Encoder, vectors
from sentfold.neighbors.neighbors import LARGE, nearest_neighbors

Search = Callable[[npt.NDArray[np.float32], int], Any]


def ours(x: npt.NDArray[np.float32], k: int) -> Any:
    return nearest_neighbors(x, k, block=block_of(len(x)), workers=1)


def scikit_learn(x: npt.NDArray[np.float32], k: int) -> Any:
    from sklearn.neighbors import NearestNeighbors

    return NearestNeighbors(n_neighbors=k, algorithm="brute").fit(x).kneighbors()


def faiss_flat(x: npt.NDArray[np.float32], k: int) -> Any:
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatL2(x.shape[1])
    index.add(x)
    return index.search(x, k + 1)


def cpu_seconds(task: Callable[[], Any]) -> float:
    start = time.process_time()
    task()
    return time.process_time() - start


def peak_rate() -> float:
    """Flops per second of a float32 product that fits the caches."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((2048, 256), dtype=np.float32) for _ in range(2))
    out = np.empty((2048, 2048), dtype=np.float32)
    return float(2 * out.size * 256 / np.median([cpu_seconds(lambda: np.dot(a, b.T, out=out)) for _ in range(9)]))


def block_of(n: int) -> int:
    """The default of nearest_neighbors."""
    return 1024 if n < LARGE else 1536


def flops_computed(n: int, d: int) -> float:
    """Of the products of all pairs of blocks, a block with itself included."""
    parts = -(-n // block_of(n))
    return 2 * d * (n / parts) ** 2 * parts * (parts + 1) / 2


def measure(x: npt.NDArray[np.float32], k: int, searches: dict[str, Search], repeats: int) -> dict[str, Any]:
    times: dict[str, list[float]] = {name: [] for name in searches}
    peaks = [peak_rate()]
    for search in searches.values():
        search(x[: max(500, 2 * k)], k)  # compiles, imports, wakes up
    for _ in range(repeats):
        for name, search in searches.items():
            times[name].append(cpu_seconds(lambda search=search: search(x, k)))
        peaks.append(peak_rate())
    blas = ThreadpoolController().select(user_api="blas").info()
    n, d = x.shape
    taken, peak = float(np.median(times["ours"])), float(np.median(peaks))
    return {
        "n": n,
        "d": d,
        "k": k,
        "repeats": repeats,
        "processor": platform.processor() or platform.machine(),
        "blas": [f"{library['internal_api']} {library['version']} {library.get('architecture')}" for library in blas],
        "sgemm_peak_gflops": {"median": peak / 1e9, "range": [min(peaks) / 1e9, max(peaks) / 1e9]},
        "cpu_seconds": {
            name: {"median": float(np.median(taken)), "range": [min(taken), max(taken)]}
            for name, taken in times.items()
        },
        "share_of_peak": flops_computed(n, d) / taken / peak,
        "effective_rate": 2.0 * n * n * d / taken / peak,
        "times_faster_than": {
            name: float(np.median(others)) / taken for name, others in times.items() if name != "ours"
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--k", type=int, default=30)
    parser.add_argument("--encoder", choices=get_args(Encoder), default="wordllama")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--without-peers", action="store_true")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    searches: dict[str, Search] = {"ours": ours}
    if not asked.without_peers:
        searches["scikit-learn brute"] = scikit_learn
        if find_spec("faiss"):
            searches["faiss flat"] = faiss_flat
    with threadpool_limits(1):
        result = {
            "encoder": asked.encoder,
            **measure(vectors(asked.n, asked.encoder), asked.k, searches, asked.repeats),
        }
    report = json.dumps(result, indent=2)
    print(report)
    if asked.json:
        asked.json.write_text(report + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
