"""A grid on a classification corpus: the accuracy of each point is scikit-learn's on the same space."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from pipeline.manifold.manifolds import PcaParameters
from pipeline.manifold.solver_parameters import SolverParameters
from pipeline.selection.surface import Classes, score_classes

SOLVER = SolverParameters(null_tolerance=1e-10, tolerance=1e-6, seed=0)


def test_the_accuracy_of_every_point_is_scikit_learns_and_a_point_too_large_is_blank() -> None:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 3, 240)
    x = rng.standard_normal((240, 12)) + 1.2 * rng.standard_normal((3, 12))[labels]
    rows = rng.permutation(240)  # items are not in the order of their sentences
    splits = np.array(["train"] * 160 + ["test"] * 80)
    classes = Classes(x.astype(np.float32), np.zeros((240, 1), dtype=np.int64), rows, labels[rows], splits.tolist())
    points = [PcaParameters(method="pca", components=p) for p in (2, 6, 99)]
    found = score_classes(classes, points, SOLVER, k=3, folds=5, seed=0)
    for p, value in zip((2, 6), found, strict=False):
        space = PCA(p, svd_solver="full").fit_transform(x)[rows]
        model = KNeighborsClassifier(3).fit(space[:160], labels[rows[:160]])
        assert value == 100 * model.score(space[160:], labels[rows[160:]])
    assert found[2] is None
