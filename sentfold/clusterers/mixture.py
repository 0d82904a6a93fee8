"""A Gaussian mixture over words, by scikit-learn on one thread."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field
from threadpoolctl import threadpool_limits

from sentfold.clusterers.base import Floats
from sentfold.errors import SolverError, first_line
from sentfold.neighbors.points import squared_lengths
from sentfold.settings import Parameters
from sentfold.words.partition import CentroidRule, Float64, Partition, check_size

TITLE = "Gaussian mixture"
MODEL_CENTROIDS: CentroidRule | None = "mean"


class Settings(Parameters):
    """The settings of the mixture and of expectation maximisation.

    covariance      shape of the covariance of each component
    regularization  added to every variance
    iterations      maximum number
    tolerance       the iterations end when the mean log-likelihood gains less than this
    """

    covariance: Literal["full", "tied", "diag", "spherical"]
    regularization: float = Field(ge=0, le=1e6)
    iterations: int = Field(ge=1, le=100_000)
    tolerance: float = Field(gt=0, le=1)


def cluster(
    vectors: Floats, weights: Float64, sizes: tuple[int, ...], *, seed: int, settings: Settings
) -> Iterator[Partition]:
    """Hard labels of a Gaussian mixture: each word belongs to the component of largest responsibility (LASE).

    vectors  (v, d); weights are ignored
    Centroids are the components' means; a component to which no word belongs is an empty cluster.
    Raises ParameterError if a size is above v, or a vector is not finite or cannot be squared; SolverError if a
    covariance collapses.
    Cost O(iterations * v * size * d^2) with full covariances.
    Source: scikit-learn's GaussianMixture, initialised by k-means.
    """
    for size in sizes:
        yield _fit(vectors, size, seed, settings)


def _fit(vectors: Floats, size: int, seed: int, settings: Settings) -> Partition:
    check_size(size, len(vectors))
    squared_lengths(vectors, name="word")
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(
        size,
        covariance_type=settings.covariance,
        reg_covar=settings.regularization,
        max_iter=settings.iterations,
        tol=settings.tolerance,
        random_state=seed,
    )
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            # In float64: a covariance in 300 dimensions is nearly singular, and float32 would make it worse.
            labels = model.fit_predict(np.asarray(vectors, dtype=np.float64))
        except ValueError as error:
            raise SolverError(
                "the Gaussian mixture cannot be fitted",
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
