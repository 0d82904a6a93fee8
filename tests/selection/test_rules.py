"""The two label-free rules against scipy and what they must be for a copy of the data."""

from __future__ import annotations

import numpy as np
from scipy.spatial import procrustes

from sentfold.selection.surface import procrustes_statistic, residual_variance


def test_the_statistic_is_scipys_disparity_averaged_over_neighbourhoods() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((30, 7)), rng.standard_normal((30, 3))
    rows, neighbors = np.array([0, 5, 11]), rng.permutation(np.arange(12, 30))[:12].reshape(3, 4)
    each = []
    for row, near in zip(rows, neighbors, strict=True):
        members = [row, *near]
        # scipy wants both of one width; columns of zeros change neither lengths nor singular values.
        each.append(procrustes(x[members], np.hstack([y[members], np.zeros((5, 4))]))[2])
    np.testing.assert_allclose(procrustes_statistic(x, y, rows, neighbors), np.mean(each), atol=1e-12)


def test_a_turned_moved_and_scaled_copy_fits_and_noise_does_not() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((60, 5))
    copy = 3 * x @ np.linalg.qr(rng.standard_normal((5, 5)))[0] + 7
    rows = np.arange(10)
    near = np.array([[row + 20, row + 30, row + 40] for row in rows])
    assert residual_variance(x, copy) < 1e-12
    assert procrustes_statistic(x, copy, rows, near) < 1e-12
    noise = rng.standard_normal((60, 5))
    # Unrelated distances share 1/1770 of their variance by chance; four points in 5 dimensions fit partly.
    assert residual_variance(x, noise) > 0.98
    assert procrustes_statistic(x, noise, rows, near) > 0.05
    collapsed = np.zeros((60, 5))
    assert residual_variance(x, collapsed) == procrustes_statistic(x, collapsed, rows, near) == 1.0
