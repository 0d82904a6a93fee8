"""Linear maps and smoothing as scikit-learn estimators: controls, and methods related to the embedding."""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from sentfold.kernels.arrays import Float64
from sentfold.manifold.abtt import removal_map
from sentfold.manifold.base.linear import LinearMap, principal_axes, principal_map
from sentfold.manifold.lpp import locality_preserving_map
from sentfold.manifold.npe import neighborhood_preserving_map
from sentfold.manifold.smooth import smooth
from sentfold.manifold.weights.weights import solve_weights
from sentfold.manifold.whitening import whitening_map
from sentfold.neighbors.neighbors import nearest_among, nearest_neighbors

Floating = npt.NDArray[np.floating[Any]]


class LinearEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, metaclass=ABCMeta):  # type: ignore[misc]
    """A linear map that is learned from rows and applied to these rows or to new rows.

    map_            LinearMap; its three arrays are all that was learned, so saving them needs no pickle
    mean_           (d,) mean of the fitted rows
    components_     (p, d); the image of a centred row x is components_ x
    eigenvalues_    of the eigenproblem that was solved
    n_features_in_  d
    """

    _least_features = 1

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Learn the map from X, (n, d) float32 or float64, n >= 2. y is ignored.

        Raises ValueError if X is not such an array, ParameterError if a parameter does not fit it. Warns
        (UserWarning) if all rows are equal.
        """
        x = self._validated(X, reset=True)
        if (x == x[0]).all():
            warnings.warn("all rows are equal: there is nothing to learn from them", UserWarning, stacklevel=2)
        # With one BLAS thread, the order of sums, and so every bit, does not depend on the number of cores.
        with threadpool_limits(1):
            self.map_ = self._learn(x)
        self.mean_ = self.map_.mean
        self.components_ = self._components()
        self.eigenvalues_ = self.map_.eigenvalues
        self._n_features_out = self.map_.matrix.shape[1]
        return self

    def transform(self, X: npt.ArrayLike) -> Float64:
        """The images, (n, p) float64, of X, (n, d). Raises ValueError if X is not such an array."""
        check_is_fitted(self)
        x = self._validated(X, reset=False)
        with threadpool_limits(1):
            images: Float64 = self.map_.apply(x)
        return images

    @abstractmethod
    def _learn(self, x: Floating) -> LinearMap: ...

    def _components(self) -> Float64:
        return self.map_.matrix.T

    def _validated(self, X: npt.ArrayLike, *, reset: bool) -> Floating:
        settings = {"ensure_min_samples": 2, "ensure_min_features": self._least_features} if reset else {}
        x: Floating = validate_data(self, X, dtype=[np.float64, np.float32], reset=reset, **settings)
        return x


class PrincipalComponents(LinearEstimator):
    """Centred principal components, from a full and deterministic eigensolver in float64.

    n_components  p, 1 <= p <= min(n, d); None for min(n, d)
    Learns rank_, the number of axes whose variance is larger than its rounding error, and
    explained_variance_ratio_, (p,). eigenvalues_ are variances with n - 1 in the denominator.
    The entry of largest modulus of each component is positive.
    Cost O(n d^2 + d^3) time, O(d^2) memory.
    """

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def _learn(self, x: Floating) -> LinearMap:
        axes = principal_axes(x)
        learned = principal_map(axes, self.n_components)
        self.rank_ = axes.rank
        total = axes.variances.sum()
        self.explained_variance_ratio_ = learned.eigenvalues / (total if total > 0 else 1.0)
        return learned


class Whitening(LinearEstimator):
    """Principal components, each divided by a power of its standard deviation.

    n_components  p, 1 <= p <= min(n, d); None for min(n, d)
    power         0 is PCA, 1 whitens in full, 0.5 is half-way
    Learns rank_. The deviation of a component beyond the rank is rounding only; such a component maps to 0.
    Cost O(n d^2 + d^3) time, O(d^2) memory. Source: see whitening_map.
    """

    def __init__(self, n_components: int | None = None, *, power: float = 1.0) -> None:
        self.n_components = n_components
        self.power = power

    def _learn(self, x: Floating) -> LinearMap:
        axes = principal_axes(x)
        self.rank_ = axes.rank
        return whitening_map(axes, self.n_components, power=self.power)


class AllButTheTop(LinearEstimator):
    """Rows centred, without their top principal directions; the dimension stays d.

    n_removed  D, 0 <= D < rank of the centred rows; 0 only centres
    components_ are the (D, d) removed directions, eigenvalues_ the variances along them. Learns rank_.
    Cost O(n d^2 + d^3) time, O(d^2) memory. Source: Mu & Viswanath 2018, arXiv:1702.01417
    """

    _least_features = 2  # with one dimension, nothing would be left

    def __init__(self, n_removed: int = 1) -> None:
        self.n_removed = n_removed

    def _learn(self, x: Floating) -> LinearMap:
        axes = principal_axes(x)
        self.rank_ = axes.rank
        learned = removal_map(axes, self.n_removed)
        self._removed = axes.axes[:, : self.n_removed]
        return learned

    def _components(self) -> Float64:
        return self._removed.T


class NeighborhoodPreservingEmbedding(LinearEstimator):
    """NPE, the linear form of LLE: directions in which neighbours rebuild each row best.

    n_components    p, 1 <= p <= rank of the centred rows; None for the rank
    n_neighbors     k, 1 <= k < n
    regularization  added to the Gram diagonal as a fraction of its trace, > 0
    New rows need no neighbours: the map is linear. The fitted images have orthonormal columns.
    Cost O(n^2 d) time for the neighbours, then O(n d (d + k) + d^3).
    Source: He, Cai, Yan & Zhang 2005, doi:10.1109/ICCV.2005.167
    """

    def __init__(self, n_components: int | None = None, *, n_neighbors: int = 5, regularization: float = 1e-3) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.regularization = regularization

    def _learn(self, x: Floating) -> LinearMap:
        neighbors = nearest_neighbors(x, self.n_neighbors).indices
        weights = solve_weights(x, neighbors, regularization=self.regularization).values
        return neighborhood_preserving_map(x, neighbors, weights, self.n_components)


class LocalityPreservingProjections(LinearEstimator):
    """LPP, the linear form of Laplacian eigenmaps: directions in which neighbours stay near.

    n_components  p, 1 <= p <= rank of the centred rows; None for the rank
    n_neighbors   k, 1 <= k < n; rows are joined if either is a neighbour of the other
    heat          > 0: an edge weighs exp(-|x_i - x_j|^2 / t), t = heat x mean squared edge length; None: weight 1
    New rows need no neighbours: the map is linear.
    Cost O(n^2 d) time for the neighbours, then O(n d (d + k) + d^3).
    Source: He & Niyogi 2003, Locality Preserving Projections, NIPS 16
    """

    def __init__(self, n_components: int | None = None, *, n_neighbors: int = 5, heat: float | None = None) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.heat = heat

    def _learn(self, x: Floating) -> LinearMap:
        neighbors = nearest_neighbors(x, self.n_neighbors).indices
        return locality_preserving_map(x, neighbors, self.n_components, heat=self.heat)


class GraphSmoothing(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Each row moved towards the mean of its nearest fitted rows: (1 - amount) x + amount mean.

    n_neighbors  k, 1 <= k < n, by Euclidean distance, ties by row
    amount       <= 1; 0 changes nothing, below 0 moves rows away from the mean
    A row that equals a fitted row is treated as that row, which is not its own neighbour. So fit_transform gives the
    same result as fit and then transform. If several fitted rows equal the row, one of them is left out.
    Learns fitted_rows_, (n, d), the possible neighbours of new rows, and n_features_in_.
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
    """The k nearest fitted rows of each row, by (distance, row); one fitted row that equals the row is left out.

    x       (m, d) finite
    fitted  (n, d) finite, n > k
    Returns (m, k). Cost O(m n d) time.
    """
    found = nearest_among(x, fitted, k + 1)
    own = found.distances[:, :1] == 0
    return np.where(own, found.indices[:, 1:], found.indices[:, :k])
