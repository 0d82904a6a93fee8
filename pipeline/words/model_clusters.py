"""Weighted k-means over words, and the Gaussian mixture: scikit-learn's, on one thread."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from pipeline.errors import SolverError, first_line
from pipeline.words.clustering_parameters import KMeansParameters, MixtureParameters
from pipeline.words.partition import Float64, Partition, check_size

Floats = npt.NDArray[np.floating[Any]]


def cluster_by_kmeans(
    vectors: Floats, weights: Float64, size: int, *, seed: int, parameters: KMeansParameters
) -> Partition:
    """k-means of weighted points: min over centroids of sum_i w_i |x_i - c(i)|^2 (S3E, LASE).

    vectors  (v, d); weights: (v,) positive. Centroids are the weighted means of their words.
    Raises ParameterError if size > v. Fewer distinct vectors than clusters leave clusters empty, counted in the notes.
    Cost O(restarts * iterations * v * size * d).
    Source: scikit-learn's KMeans, k-means++ seeding, Lloyd's iteration.
    """
    check_size(size, len(vectors))
    # Here: the parameters of the stage are read without waiting for scikit-learn.
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    model = KMeans(
        size,
        n_init=parameters.restarts,
        max_iter=parameters.iterations,
        tol=parameters.tolerance,
        random_state=seed,
        algorithm="lloyd",
    )
    # One thread: with more, the sums of a centroid are added in another order.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(np.ascontiguousarray(vectors), sample_weight=weights)
    labels = model.labels_.astype(np.int32)
    return Partition(
        labels,
        size,
        np.asarray(model.cluster_centers_, dtype=np.float64),
        {
            "cost": float(model.inertia_),
            "iterations": int(model.n_iter_),
            "converged": model.n_iter_ < parameters.iterations,
        },
    )


def cluster_by_mixture(vectors: Floats, size: int, *, seed: int, parameters: MixtureParameters) -> Partition:
    """Hard labels of a Gaussian mixture: each word to the component of largest responsibility (LASE).

    vectors  (v, d). Centroids are the components' means; a component that wins no word is an empty cluster.
    Raises ParameterError if size > v, SolverError if a covariance collapses.
    Cost O(iterations * v * size * d^2) with full covariances.
    Source: scikit-learn's GaussianMixture, started by k-means.
    """
    check_size(size, len(vectors))
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(
        size,
        covariance_type=parameters.covariance,
        reg_covar=parameters.regularization,
        max_iter=parameters.iterations,
        tol=parameters.tolerance,
        random_state=seed,
    )
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            # In float64: a covariance of 300 dimensions is near singular already.
            labels = model.fit_predict(np.asarray(vectors, dtype=np.float64))
        except ValueError as error:
            raise SolverError(
                "the Gaussian mixture has no fit",
                where="clusterings: mixture",
                got=first_line(error),
                remedy="raise `regularization`, choose `covariance: diag`, or lower `sizes`",
            ) from None
    return Partition(
        labels.astype(np.int32),
        size,
        np.asarray(model.means_, dtype=np.float64),
        {
            "lower_bound": float(model.lower_bound_),
            "iterations": int(model.n_iter_),
            "converged": bool(model.converged_),
        },
    )
