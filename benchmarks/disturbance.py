"""How far scores move when vectors move by what another processor would change them.

    sentfold run && python -m benchmarks.disturbance [--seeds 5] [--size 2e-7]

Disturbs every coordinate of the quick suite's MiniLM vectors by up to `size`, folds them again, and prints
the largest change of each space's Spearman (x100) over the seeds.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.stats import spearmanr
from threadpoolctl import threadpool_limits

from pipeline.base.artifacts import corpus_path, read_table, read_vectors, space_path
from sentfold.files import Vectors
from sentfold.manifold.base.linear import principal_axes, principal_map
from sentfold.manifold.base.local import LocalSettings
from sentfold.manifold.solver.eigensolver import bottom_eigenvectors, weight_matrix
from sentfold.manifold.weights.weights import solve_weights
from sentfold.measures.base.pairs import cosines
from sentfold.neighbors.neighbors import nearest_neighbors

CORPORA = ("lee", "simlex", "wordsim")


def fold(x: Vectors, lp: LocalSettings) -> dict[str, np.ndarray]:
    """The three spaces of the quick suite."""
    neighbors = nearest_neighbors(x, lp.neighbors).indices
    weights = weight_matrix(neighbors, solve_weights(x, neighbors, regularization=lp.regularization).values)
    vectors = bottom_eigenvectors(weights, lp.components, seed=0).vectors
    pca = principal_map(principal_axes(x), lp.components).apply(x)
    return {"minilm": x, "minilm-lp": vectors, "minilm-pca": pca}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--size", type=float, default=2e-7)
    arguments = parser.parse_args()
    lp = LocalSettings()
    for corpus in CORPORA:
        items = read_table(corpus_path("quick", corpus, "items"), kind="items.similarity").to_pydict()
        rows = np.column_stack([items["row1"], items["row2"]])
        x = read_vectors(space_path("quick", "minilm", corpus))
        scores: dict[str, list[float]] = {}
        for seed in range(arguments.seeds + 1):
            noise = np.random.default_rng(seed).uniform(-1, 1, x.shape) * arguments.size * (seed > 0)
            with threadpool_limits(1):
                spaces = fold((x + noise).astype(np.float32), lp)
            for space, vectors in spaces.items():
                value = 100 * spearmanr(cosines(vectors, rows)[0], items["score"]).statistic
                scores.setdefault(space, []).append(float(value))
        moved = {space: max(abs(value - values[0]) for value in values[1:]) for space, values in scores.items()}
        print(f"{corpus:<8}", "  ".join(f"{space} {change:.4f}" for space, change in moved.items()))


if __name__ == "__main__":
    main()
