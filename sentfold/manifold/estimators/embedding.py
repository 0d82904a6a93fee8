"""The locality-preserving embedding as a scikit-learn estimator."""

from __future__ import annotations

import os
import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from tqdm import tqdm

from sentfold.errors import ParameterError
from sentfold.kernels.arrays import Float64
from sentfold.manifold.base.linear import check_count
from sentfold.manifold.base.local import POWERS, LocalSettings, Scaling, embed_locally, map_out_of_sample
from sentfold.manifold.base.protocol import SolverSettings
from sentfold.manifold.solver.eigensolver import solver_bar
from sentfold.neighbors.approximate import Method, approximate_neighbors
from sentfold.neighbors.neighbors import Neighbors, Searched, nearest_neighbors
from sentfold.neighbors.points import Metric

Floating = npt.NDArray[np.floating[Any]]

EXACT_UP_TO = 200_000  # rows; for more rows `auto` searches approximate neighbours


class LocalityPreservingEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The embedding of SBERT-LP (locally linear embedding): coordinates in which neighbours rebuild each row best.

    n_neighbors     k, 1 <= k < n
    n_components    p, 1 <= p <= n - 2
    metric          of the search for neighbours: euclidean or cosine
    regularization  added to the diagonal of each local Gram matrix as a fraction of its trace, > 0
    scaling         unit, quarter or half: dimensions are multiplied by eigenvalue^0, ^(-1/4) or ^(-1/2)
    tol             largest residual accepted, as a fraction of the p-th eigenvalue
    null_tolerance  eigenvalues at or below this belong to the null space, which is skipped
    seed            random seed of the start vectors and of approximate neighbours
    workers         threads, which do not change the result; None: one per core
    neighbors       exact, approximate, or auto: exact up to 200,000 rows
    verbose         show progress on stderr

    embedding_       (n, p) float64, the coordinates of the fitted rows
    eigenvalues_     (p,) ascending, residuals_: (p,) |M v - lambda v|
    nullity_         number of null vectors that were skipped; 1 for a connected graph
    neighbors_       (n, k) int32, nearest first
    graph_recall_    share of the true nearest neighbours that neighbors_ contains; 1 if exact
    degenerate_rows_ number of rows that equal all their neighbours
    certificate_     dict of the facts that prove the eigensolve right, JSON-able; see Eigenpairs
    fitted_rows_     (n, d), the rows that new rows are mapped by; n_features_in_: d

    Drop duplicate rows before fitting: copies of a row take the places of its other neighbours.
    Cost: O(n^2 d) time for exact neighbours, then about O(n k p) per product; O(n^2) memory only for few rows or
    p > n / 6 (see bottom_eigenvectors). Source: Roweis & Saul 2000, doi:10.1126/science.290.5500.2323
    """

    def __init__(
        self,
        n_neighbors: int = 30,
        n_components: int = 128,
        *,
        metric: Metric = "euclidean",
        regularization: float = 1e-3,
        scaling: Scaling = "unit",
        tol: float = 1e-3,
        null_tolerance: float = 1e-10,
        seed: int = 0,
        workers: int | None = None,
        neighbors: Method = "auto",
        verbose: bool = False,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.metric = metric
        self.regularization = regularization
        self.scaling = scaling
        self.tol = tol
        self.null_tolerance = null_tolerance
        self.seed = seed
        self.workers = workers
        self.neighbors = neighbors
        self.verbose = verbose

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Embed the rows of X, (n, d) float32 or float64, n >= 4. y is ignored.

        Raises ValueError if X is not such an array, ParameterError if a parameter does not fit it,
        SolverError if the eigenvectors cannot be certified. Warns (UserWarning) if rows are equal, and if the
        neighbour graph is not connected.
        """
        x: Floating = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        self._check_parameters(len(x))
        graph, self.graph_recall_ = self._neighbors(x)
        with solver_bar(disable=not self.verbose) as progress:
            embedded = embed_locally(x, graph.indices, *self._settings(), workers=self._threads(), progress=progress)
        self.fitted_rows_ = x
        self._searched = Searched.prepare(x, metric=self.metric)
        self.neighbors_ = graph.indices
        self.embedding_ = embedded.coordinates
        self.eigenvalues_ = embedded.pairs.values
        self.residuals_ = embedded.pairs.residuals
        self.nullity_ = embedded.pairs.nullity
        self.degenerate_rows_ = embedded.degenerate
        self.certificate_ = embedded.pairs.certificate()
        self._n_features_out = self.embedding_.shape[1]
        self._warn_of_rows(int((graph.distances[:, 0] == 0).sum()))
        return self

    def _warn_of_rows(self, copies: int) -> None:
        """Warn if rows are equal, or if the neighbour graph is not connected."""
        if copies:
            equal = "all rows are equal" if copies == self.degenerate_rows_ == len(self.fitted_rows_) else ""
            some = f"{copies} of {len(self.fitted_rows_)} rows are at distance 0 from another; drop repeated rows"
            warnings.warn(equal or some, UserWarning, stacklevel=3)
        if self.nullity_ > 1:
            parts = f"the neighbours fall into about {self.nullity_} parts; distances between parts mean nothing"
            warnings.warn(f"{parts}: raise n_neighbors", UserWarning, stacklevel=3)

    def fit_transform(self, X: npt.ArrayLike, y: object = None) -> Float64:
        """`embedding_` of the rows of X, (n, p) float64. Raises as fit does."""
        return self.fit(X).embedding_

    def transform(self, X: npt.ArrayLike) -> Float64:
        """The coordinates, (m, p) float64, of the rows of X, (m, d), by their neighbours among the fitted rows.

        A row that equals a fitted row gets its coordinates. See map_out_of_sample for the limits of the mapping of
        new rows. Raises ValueError if X is not such an array.
        """
        check_is_fitted(self)
        x: Floating = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        with tqdm(total=len(x), desc="mapping", unit="row", disable=not self.verbose) as bar:
            return map_out_of_sample(
                x,
                self._searched,
                self.embedding_,
                n_neighbors=self.n_neighbors,
                regularization=self.regularization,
                workers=self._threads(),
                progress=bar.update,
            )

    def _check_parameters(self, n: int) -> None:
        check_count(self.n_neighbors, "k", least=1, most=n - 1, where="n_neighbors", meaning="n - 1")
        check_count(self.n_components, "p", least=1, most=n - 2, where="n_components", meaning="n - 2")
        check_count(self.seed, "the seed", least=0, most=2**32 - 1, where="seed", meaning="2^32 - 1")
        self._threads()
        for name, value, known in (
            ("metric", self.metric, ("euclidean", "cosine")),
            ("neighbors", self.neighbors, ("auto", "exact", "approximate")),
            ("scaling", self.scaling, tuple(POWERS)),
        ):
            if value not in known:
                raise ParameterError(
                    f"there is no such {name}", where=name, expected=f"one of: {', '.join(known)}", got=repr(value)
                )

    def _settings(self) -> tuple[LocalSettings, SolverSettings]:
        """The parameters as settings, built without checks: errors then use the parameter names of the estimator."""
        local = LocalSettings.model_construct(
            neighbors=self.n_neighbors,
            regularization=self.regularization,
            components=self.n_components,
            scaling=self.scaling,
        )
        solver = SolverSettings.model_construct(tolerance=self.tol, null_tolerance=self.null_tolerance, seed=self.seed)
        return local, solver

    def _threads(self) -> int:
        if self.workers is None:
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return check_count(self.workers, "workers", least=1, most=1024, where="workers", meaning="any machine's")

    def _neighbors(self, x: Floating) -> tuple[Neighbors, float]:
        if self.neighbors == "approximate" or (self.neighbors == "auto" and len(x) > EXACT_UP_TO):
            return approximate_neighbors(x, self.n_neighbors, metric=self.metric, seed=self.seed)
        return nearest_neighbors(x, self.n_neighbors, metric=self.metric, workers=self._threads()), 1.0
