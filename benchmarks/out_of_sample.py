"""What the out-of-sample map costs, beside scikit-learn's, and how far it is from a fit on everything.

    python -m benchmarks.out_of_sample --n 5000 --json FILE [--encoder wordllama] [--p 128] [--k 30] [--repeats 5]

For each share of the rows that is fitted, the others being mapped:
  subspace  mean squared cosine of the principal angles between these coordinates and those of a fit on all
  spearman  rank correlation of the cosines of 100,000 pairs of rows with those of a fit on all
  cpu_s     transform of the other rows: ours, our neighbours alone, scikit-learn's with the same fitted
            rows and the same embedding (it is handed ours, for its own fit takes minutes)
One thread throughout, CPU seconds, medians over repeats with their range; the three take turns.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr
from sklearn.manifold import LocallyLinearEmbedding
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from benchmarks.inputs import Encoder, vectors
from sentfold import LocalityPreservingEmbedding
from sentfold.manifold.base.local import TILE
from sentfold.neighbors.neighbors import Searched, nearest_among

SHARES = (0.9, 0.5, 0.25, 0.1)
PAIRS = 100_000

Rows = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]


def fit(x: Rows, k: int, p: int) -> LocalityPreservingEmbedding:
    return LocalityPreservingEmbedding(k, p, tol=1e-6, workers=1).fit(x)


def peer_of(model: LocalityPreservingEmbedding) -> LocallyLinearEmbedding:
    """scikit-learn's estimator as if it had made this very embedding."""
    rows, k = model.fitted_rows_, model.n_neighbors
    peer = LocallyLinearEmbedding(n_neighbors=k, n_components=model.n_components, reg=model.regularization)
    peer.nbrs_ = NearestNeighbors(n_neighbors=k).fit(rows)
    peer.embedding_, peer.n_features_in_ = model.embedding_, rows.shape[1]
    return peer


def subspace_kept(ours: Float64, whole: Float64) -> float:
    """Mean squared cosine of the principal angles between two centred column spaces."""
    bases = [np.linalg.qr(y - y.mean(axis=0))[0] for y in (ours, whole)]
    return float(np.square(bases[0].T @ bases[1]).sum() / whole.shape[1])


def cosines(y: Float64, pairs: npt.NDArray[np.int64]) -> Float64:
    unit = y / np.linalg.norm(y, axis=1, keepdims=True)
    return np.einsum("ij,ij->i", unit[pairs[0]], unit[pairs[1]])


def cpu_seconds(task: Callable[[], Any]) -> float:
    start = time.process_time()
    task()
    return time.process_time() - start


def spread(times: list[float]) -> dict[str, Any]:
    return {"median": float(np.median(times)), "range": [min(times), max(times)]}


def measure(x: Rows, share: float, whole: Float64, arguments: argparse.Namespace) -> dict[str, Any]:
    rng = np.random.default_rng(arguments.seed)
    fitted = np.zeros(len(x), dtype=bool)
    fitted[rng.permutation(len(x))[: round(share * len(x))]] = True
    new = x[~fitted]
    model = fit(x[fitted], arguments.k, arguments.p)
    peer, searched = peer_of(model), Searched.prepare(model.fitted_rows_)  # once, as the estimator does
    images, theirs = model.transform(new), peer.transform(new)
    tasks: dict[str, Callable[[], Any]] = {
        "ours": lambda: model.transform(new),
        "neighbours": lambda: nearest_among(new, searched, arguments.k, block=TILE, workers=1),
        "scikit-learn": lambda: peer.transform(new),
    }
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(arguments.repeats):
        for name, task in tasks.items():
            times[name].append(cpu_seconds(task))
    together = np.empty_like(whole)
    together[fitted], together[~fitted] = model.embedding_, images
    pairs = rng.integers(len(x), size=(2, PAIRS))
    pairs = pairs[:, pairs[0] != pairs[1]]
    ours = float(np.median(times["ours"]))
    return {
        "share": share,
        "fitted": int(fitted.sum()),
        "mapped": len(new),
        "subspace": round(subspace_kept(together, whole), 3),
        "spearman": round(float(spearmanr(cosines(together, pairs), cosines(whole, pairs)).statistic), 3),
        "cpu_s": {name: spread(taken) for name, taken in times.items()},
        "times_faster": round(float(np.median(times["scikit-learn"])) / ours, 2),
        "share_of_neighbours": round(float(np.median(times["neighbours"])) / ours, 2),
        "rows_per_cpu_s": round(len(new) / ours),
        "scikit_learn_rows_per_cpu_s": round(len(new) / float(np.median(times["scikit-learn"]))),
        # scikit-learn's distances and weights of float32 rows are float32: of two rows that are as far but for
        # rounding it may take the other.
        "largest_difference": float(np.abs(images - theirs).max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=5000)
    parser.add_argument("--k", type=int, default=30)
    parser.add_argument("--p", type=int, default=128)
    parser.add_argument("--encoder", choices=get_args(Encoder), default="wordllama")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    x = vectors(arguments.n, arguments.encoder)
    with threadpool_limits(1):
        whole = fit(x, arguments.k, arguments.p).embedding_
        shares = [measure(x, share, whole, arguments) for share in SHARES]
    asked = {name: getattr(arguments, name) for name in ("n", "k", "p", "encoder", "repeats", "seed")}
    report = json.dumps({**asked, "shares": shares}, indent=1)
    print(report)
    if arguments.json:
        arguments.json.write_text(report + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
