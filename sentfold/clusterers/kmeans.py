"""Weighted k-means over words, by scikit-learn on one thread."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from pydantic import Field
from threadpoolctl import threadpool_limits

from sentfold.clusterers.base import Floats
from sentfold.neighbors.points import squared_lengths
from sentfold.settings import Parameters
from sentfold.words.partition import CentroidRule, Float64, Partition, check_size
from sentfold.words.vectors import squarable

TITLE = "k-means"
MODEL_CENTROIDS: CentroidRule | None = "weighted-mean"


class Settings(Parameters):
    """The settings of k-means.

    restarts    number of runs; the run of least cost is kept
    iterations  maximum per run
    tolerance   a run ends when the centroids move less than this share of the variance
    """

    restarts: int = Field(ge=1, le=1000)
    iterations: int = Field(ge=1, le=100_000)
    tolerance: float = Field(ge=0, le=1)


def cluster(
    vectors: Floats, weights: Float64, sizes: tuple[int, ...], *, seed: int, settings: Settings
) -> Iterator[Partition]:
    """k-means of weighted points, which minimises sum_i w_i |x_i - c(i)|^2 (S3E, LASE).

    vectors  (v, d)
    weights  (v,) positive
    Centroids are the weighted means of their words.
    Raises ParameterError if a size is above v, or a vector is not finite or cannot be squared. If there are fewer
    distinct vectors than clusters, some clusters are empty. Cost O(restarts * iterations * v * size * d).
    Source: scikit-learn's KMeans, k-means++ seeding, Lloyd's iteration.
    """
    for size in sizes:
        yield _fit(vectors, weights, size, seed, settings)


def _fit(vectors: Floats, weights: Float64, size: int, seed: int, settings: Settings) -> Partition:
    check_size(size, len(vectors))
    squared_lengths(vectors, name="word")
    # Imported here, so that the parameters of a stage can be read without the slow import of scikit-learn.
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    model = KMeans(
        size,
        n_init=settings.restarts,
        max_iter=settings.iterations,
        tol=settings.tolerance,
        random_state=seed,
        algorithm="lloyd",
    )
    # One thread: more threads add the terms of a centroid in another order.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(np.ascontiguousarray(squarable(vectors)), sample_weight=weights)
    labels = model.labels_.astype(np.int32)
    return Partition(
        labels,
        size,
        np.asarray(model.cluster_centers_, dtype=np.float64),
        {
            "cost": float(model.inertia_),
            "iterations": int(model.n_iter_),
            "converged": model.n_iter_ < settings.iterations,
        },
    )
