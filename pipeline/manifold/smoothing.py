"""Smoothing over the neighbour graph as a scikit-learn estimator, for fitted rows and new ones."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from pipeline.manifold.graph_maps import smooth
from pipeline.manifold.maps import Float64
from pipeline.manifold.neighbors import nearest_among, nearest_neighbors

Floating = npt.NDArray[np.floating[Any]]


class GraphSmoothing(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Each row moved towards the mean of its nearest fitted rows: (1 - amount) x + amount mean.

    n_neighbors  k, 1 <= k < n, by Euclidean distance, ties by row
    amount       at most 1; 0 changes nothing, below 0 sharpens
    A row that equals a fitted one is taken for it and is not its own neighbour, so fit_transform and
    fit then transform agree; of twins, any one stands for the row, since all are the same vector.
    Learns fitted_rows_, (n, d), which it needs for new rows, and n_features_in_.
    Cost O(n^2 d) time for n rows.
    """

    def __init__(self, *, n_neighbors: int = 5, amount: float = 0.1) -> None:
        self.n_neighbors = n_neighbors
        self.amount = amount

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Keep X, (n, d) float32 or float64, n >= 2, as the rows among which neighbours are sought. y is ignored.

        Raises ValueError if X is not such an array, ParameterError if a parameter does not fit it.
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: npt.ArrayLike, y: object = None) -> Float64:
        """The smoothed rows of X, (n, d) float64. Raises as fit does."""
        x: Floating = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        with threadpool_limits(1):
            smoothed: Float64 = smooth(x, nearest_neighbors(x, self.n_neighbors).indices, amount=self.amount)
        self.fitted_rows_ = x
        self._n_features_out = x.shape[1]
        return smoothed

    def transform(self, X: npt.ArrayLike) -> Float64:
        """The smoothed rows, (m, d) float64, of X, (m, d), by its neighbours among the fitted rows."""
        check_is_fitted(self)
        x: Floating = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        with threadpool_limits(1):
            neighbors = nearest_fitted(x, self.fitted_rows_, self.n_neighbors)
            smoothed: Float64 = smooth(x, neighbors, amount=self.amount, pool=self.fitted_rows_)
        return smoothed


def nearest_fitted(x: Floating, fitted: Floating, k: int) -> npt.NDArray[np.int32]:
    """The k nearest fitted rows of each row, by (distance, row), leaving out one that equals it.

    x       (m, d) finite
    fitted  (n, d) finite, n > k
    Returns (m, k). Cost O(m n d) time.
    """
    found = nearest_among(x, fitted, k + 1)
    own = found.distances[:, :1] == 0
    return np.where(own, found.indices[:, 1:], found.indices[:, :k])
