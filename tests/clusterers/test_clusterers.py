"""Clusterers: against scikit-learn, against full matrices, and on words whose clusters are plain to see."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from sentfold.clusterers import blurred, kmeans, mixture, spectral
from sentfold.clusterers.blurred import choose_by_eigengap, diffused_affinity
from sentfold.clusterers.spectral import neighbor_affinity, spectral_embedding
from sentfold.errors import ParameterError, SolverError
from sentfold.words.partition import Partition
from tests.reference import blurred_affinity as reference

KMEANS = kmeans.Settings(restarts=10, iterations=300, tolerance=1e-4)
MIXTURE = mixture.Settings(covariance="full", regularization=1e-6, iterations=100, tolerance=1e-3)
SPECTRAL = spectral.Settings(neighbors=10, distance="euclidean", rows="degree", restarts=10)
BLURRED = blurred.Settings(sigma=1.0, threshold=0.95, shrink=0.01, spare=5, stop=0.01, restarts=1)


def cluster_by_kmeans(
    vectors: np.ndarray, weights: np.ndarray, size: int, *, seed: int, parameters: kmeans.Settings
) -> Partition:
    return next(kmeans.cluster(vectors, weights, (size,), seed=seed, settings=parameters))


def cluster_by_mixture(vectors: np.ndarray, size: int, *, seed: int, parameters: mixture.Settings) -> Partition:
    return next(mixture.cluster(vectors, np.ones(len(vectors)), (size,), seed=seed, settings=parameters))


def cluster_spectrally(
    vectors: np.ndarray, sizes: tuple[int, ...], *, seed: int, parameters: spectral.Settings
) -> list[Partition]:
    return list(spectral.cluster(vectors, np.ones(len(vectors)), sizes, seed=seed, settings=parameters))


def cluster_by_blurred_affinity(
    vectors: np.ndarray, sizes: tuple[int, ...], *, seed: int, parameters: blurred.Settings
) -> list[Partition]:
    return list(blurred.cluster(vectors, np.ones(len(vectors)), sizes, seed=seed, settings=parameters))


@pytest.fixture(scope="module")
def words() -> np.ndarray:
    """600 points of 40 dimensions around 8 centres that overlap, in no order."""
    rng = np.random.default_rng(11)
    centres = 2.5 * rng.standard_normal((8, 40))
    return (centres[rng.integers(0, 8, 600)] + rng.standard_normal((600, 40))).astype(np.float32)


@pytest.fixture(scope="module")
def connected() -> np.ndarray:
    """400 points of 5 dimensions around 8 centres so near each other that their graph hangs together."""
    rng = np.random.default_rng(12)
    centres = 2.2 * rng.standard_normal((8, 5))
    return centres[rng.integers(0, 8, 400)] + rng.standard_normal((400, 5))


def weights_of(words: np.ndarray) -> np.ndarray:
    return np.random.default_rng(2).uniform(0.01, 1, len(words))


# --- k-means ----------------------------------------------------------------------------------------


def test_weighted_kmeans_is_scikit_learns_by_seed(words: np.ndarray) -> None:
    weights = weights_of(words)
    ours = cluster_by_kmeans(words, weights, 8, seed=4, parameters=KMEANS)
    theirs = KMeans(8, n_init=10, random_state=4).fit(words, sample_weight=weights)
    np.testing.assert_array_equal(ours.labels, theirs.labels_)
    # float32 sums of 75 words a cluster, added in another order where they use more threads.
    np.testing.assert_allclose(ours.centroids, theirs.cluster_centers_, atol=5e-6)


def test_at_rest_each_centroid_is_the_weighted_mean_and_each_word_is_with_its_nearest(words: np.ndarray) -> None:
    weights = weights_of(words)
    exact = kmeans.Settings(restarts=1, iterations=1000, tolerance=0.0)
    found = cluster_by_kmeans(words.astype(np.float64), weights, 8, seed=0, parameters=exact)
    assert found.notes["converged"]
    assert found.centroids is not None
    for k in range(8):
        member = found.labels == k
        mean = np.average(words[member].astype(np.float64), axis=0, weights=weights[member])
        np.testing.assert_allclose(found.centroids[k], mean, atol=1e-10)
    squared = ((words[:, None, :] - found.centroids[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(found.labels, squared.argmin(axis=1))
    cost = (weights * squared.min(axis=1)).sum()
    assert found.notes["cost"] == pytest.approx(cost, rel=1e-9)


def test_a_heavy_word_draws_the_centroid() -> None:
    x = np.array([[0.0], [1.0], [10.0]])
    light = cluster_by_kmeans(x, np.array([1.0, 1.0, 1.0]), 1, seed=0, parameters=KMEANS)
    heavy = cluster_by_kmeans(x, np.array([1.0, 1.0, 1e6]), 1, seed=0, parameters=KMEANS)
    assert light.centroids is not None and heavy.centroids is not None
    assert light.centroids[0, 0] == pytest.approx(11 / 3)
    assert heavy.centroids[0, 0] == pytest.approx(10, abs=1e-4)


def test_fewer_distinct_vectors_than_clusters_leave_clusters_empty() -> None:
    x = np.repeat(np.eye(3, 5), 4, axis=0)
    found = cluster_by_kmeans(x, np.ones(12), 5, seed=0, parameters=KMEANS)
    assert found.size == 5
    assert len(set(found.labels.tolist())) == 3
    assert found.centroids is not None and np.isfinite(found.centroids).all()


@pytest.mark.slow
def test_fifty_thousand_words_of_300_dimensions_are_clustered_in_seconds() -> None:
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((400, 300))
    x = (centres[rng.integers(0, 400, 50_000)] + rng.standard_normal((50_000, 300))).astype(np.float32)
    once = KMEANS.model_copy(update={"restarts": 1})
    start = time.process_time()
    cluster_by_kmeans(x, rng.uniform(0.01, 1, len(x)), 50, seed=0, parameters=once)
    assert time.process_time() - start < 60


# --- mixture ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance", ["full", "tied", "diag", "spherical"])
def test_a_mixture_is_scikit_learns_by_seed(words: np.ndarray, covariance: Any) -> None:
    parameters = MIXTURE.model_copy(update={"covariance": covariance})
    ours = cluster_by_mixture(words, 5, seed=3, parameters=parameters)
    theirs = GaussianMixture(5, covariance_type=covariance, random_state=3).fit(words.astype(np.float64))
    np.testing.assert_array_equal(ours.labels, theirs.predict(words.astype(np.float64)))
    np.testing.assert_allclose(ours.centroids, theirs.means_, atol=1e-9)


def test_a_mixture_that_collapses_says_what_to_do() -> None:
    parameters = MIXTURE.model_copy(update={"regularization": 0.0})
    with pytest.raises(SolverError) as caught:
        cluster_by_mixture(np.repeat(np.eye(4), 5, axis=0), 3, seed=0, parameters=parameters)
    assert "regularization" in str(caught.value)


# --- spectral ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 5, 8])
def test_spectral_clusters_are_scikit_learns(connected: np.ndarray, size: int) -> None:
    (ours,) = cluster_spectrally(connected, (size,), seed=0, parameters=SPECTRAL)
    assert ours.notes["components"] == 1
    affinity = neighbor_affinity(connected, 10, distance="euclidean").toarray()
    theirs = SpectralClustering(
        size, affinity="precomputed", eigen_solver="arpack", random_state=0, assign_labels="kmeans"
    ).fit(affinity)
    # The same rows up to rounding and sign, clustered by k-means from two different starts.
    assert adjusted_rand_score(ours.labels, theirs.labels_) > 0.98


def test_rows_of_length_one_are_those_of_ng_jordan_and_weiss(connected: np.ndarray) -> None:
    (ours,) = cluster_spectrally(connected, (5,), seed=0, parameters=SPECTRAL.model_copy(update={"rows": "unit"}))
    affinity = neighbor_affinity(connected, 10, distance="euclidean").toarray()
    degrees = affinity.sum(axis=1)
    vectors = np.linalg.eigh(affinity / np.sqrt(np.outer(degrees, degrees)))[1][:, -5:]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert adjusted_rand_score(ours.labels, KMeans(5, n_init=10, random_state=1).fit_predict(vectors)) > 0.98


def test_more_neighbours_than_words_are_refused(connected: np.ndarray) -> None:
    with pytest.raises(ParameterError, match="more neighbours"):
        cluster_spectrally(connected[:10], (2,), seed=0, parameters=SPECTRAL)


def test_the_graph_is_the_one_that_scikit_learn_builds(connected: np.ndarray) -> None:
    theirs = SpectralClustering(3, affinity="nearest_neighbors", n_neighbors=11, random_state=0).fit(connected)
    ours = neighbor_affinity(connected, 10, distance="euclidean")
    # They count a word among its own neighbours.
    np.testing.assert_array_equal(ours.toarray(), theirs.affinity_matrix_.toarray())


def test_the_embedding_solves_its_equation(words: np.ndarray) -> None:
    affinity = neighbor_affinity(words, 10, distance="cosine")
    rows, notes = spectral_embedding(affinity, 12, seed=0)
    degrees = np.asarray(affinity.sum(axis=1)).ravel()
    values = np.array(notes["eigenvalues"])
    residual = (affinity @ rows) / degrees[:, None] - rows * values
    assert np.abs(residual).max() < 1e-8
    np.testing.assert_allclose(rows.T @ (degrees[:, None] * rows), np.eye(12), atol=1e-8)
    dense = np.sort(np.linalg.eigvalsh(affinity.toarray() / np.sqrt(np.outer(degrees, degrees))))[::-1]
    np.testing.assert_allclose(values, dense[:12], atol=1e-9)


def test_moons_are_told_apart_which_kmeans_cannot() -> None:
    x, truth = make_moons(400, noise=0.05, random_state=0)
    (found,) = cluster_spectrally(x, (2,), seed=0, parameters=SPECTRAL)
    assert adjusted_rand_score(found.labels, truth) == 1
    assert adjusted_rand_score(KMeans(2, random_state=0, n_init=10).fit_predict(x), truth) < 0.6


@pytest.mark.parametrize("size", [2, 3, 6])
def test_a_graph_in_pieces_has_its_pieces_for_clusters(size: int) -> None:
    # Three far groups of 60, 50 and 40: eigenvalue 1 three times, which Lanczos from one vector would see once.
    x, truth = make_blobs([60, 50, 40], centers=[[0, 0], [1e3, 0], [0, 1e3]], random_state=0)
    (found,) = cluster_spectrally(x, (size,), seed=0, parameters=SPECTRAL)
    assert found.notes["components"] == 3
    assert np.isfinite(found.notes["eigenvalues"]).all()
    if size == 3:
        assert adjusted_rand_score(found.labels, truth) == 1
    elif size > 3:  # no cluster reaches over two groups
        assert all(len(set(truth[found.labels == k])) == 1 for k in range(size))


def test_a_sweep_solves_once_and_each_size_is_as_alone(words: np.ndarray) -> None:
    several = cluster_spectrally(words, (3, 5, 8), seed=1, parameters=SPECTRAL)
    for size, partition in zip((3, 5, 8), several, strict=True):
        (alone,) = cluster_spectrally(words, (size,), seed=1, parameters=SPECTRAL)
        assert adjusted_rand_score(partition.labels, alone.labels) > 0.99
        assert partition.size == size


# --- the blurred affinity ---------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("n", [3, 7, 90, 300])
def test_low_rank_and_sparse_together_are_the_refined_affinity(words: np.ndarray, n: int, sigma: float) -> None:
    x = words[:n].astype(np.float64)
    found = diffused_affinity(x, BLURRED.model_copy(update={"sigma": sigma}), block=64)
    y = found.shrink * found.q @ found.q.T + found.s.toarray()
    expected = reference.refined_affinity(x, sigma=sigma, threshold=0.95, shrink=0.01)
    # Entries of at most 1 through four float64 products of n terms.
    np.testing.assert_allclose(y @ y / found.peaks[:, None], expected, atol=1e-12)


@pytest.mark.parametrize("sigma", [0.0, 1.0])
@pytest.mark.parametrize("size", [4, 20])
def test_blurred_clusters_are_those_of_the_released_steps(words: np.ndarray, sigma: float, size: int) -> None:
    x = words.astype(np.float64)
    (ours,) = cluster_by_blurred_affinity(x, (size,), seed=0, parameters=BLURRED.model_copy(update={"sigma": sigma}))
    theirs = reference.cluster(x, size, sigma=sigma, threshold=0.95, shrink=0.01, seed=0)
    assert ours.size == theirs.max() + 1
    assert adjusted_rand_score(ours.labels, theirs) == 1


def test_blurred_clusters_depend_on_the_order_of_the_words_and_without_the_blur_they_do_not(words: np.ndarray) -> None:
    order = np.random.default_rng(0).permutation(len(words))
    agreement = {}
    for sigma in (0.0, 1.0):
        parameters = BLURRED.model_copy(update={"sigma": sigma, "restarts": 20})
        (straight,) = cluster_by_blurred_affinity(words, (8,), seed=0, parameters=parameters)
        (shuffled,) = cluster_by_blurred_affinity(words[order], (8,), seed=0, parameters=parameters)
        agreement[sigma] = adjusted_rand_score(straight.labels[order], shuffled.labels)
    assert agreement[0.0] > 0.95
    assert agreement[1.0] < 0.8 < agreement[0.0]


def test_the_eigengap_may_add_clusters_and_the_partition_says_so() -> None:
    # Six plain groups, four asked for: the gap after the sixth eigenvalue wins.
    x, truth = make_blobs(240, centers=np.eye(6, 20) * 30, cluster_std=0.3, random_state=0)
    parameters = BLURRED.model_copy(update={"sigma": 0.0, "threshold": 0.9})
    (found,) = cluster_by_blurred_affinity(x, (4,), seed=0, parameters=parameters)
    assert (found.size, found.notes["asked"]) == (6, 4)
    assert adjusted_rand_score(found.labels, truth) == 1


@pytest.mark.parametrize(
    ("values", "largest", "chosen"),
    [
        ([10, 9, 3, 2, 1.9], 4, 2),
        ([10, 9, 3, 2, 1.9], 1, 1),
        ([10, 9, 8, 0.005, 1e-9], 4, 3),  # what follows a value below the stop is not looked at
        ([1.0], 5, 0),
        ([2.0, 1.0, 0.0], 5, 2),
    ],
)
def test_the_eigengap_by_hand(values: list[float], largest: int, chosen: int) -> None:
    assert choose_by_eigengap(np.array(values), largest=largest, stop=0.01) == chosen


def test_a_threshold_that_keeps_everything_is_refused_before_memory_is_full(
    words: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blurred, "MAX_KEPT", 50_000)
    with pytest.raises(ParameterError, match="keeps too much"):
        diffused_affinity(words, BLURRED.model_copy(update={"threshold": 0.0}))


def test_a_zero_vector_is_refused_by_cosine(words: np.ndarray) -> None:
    spoilt = words.copy()
    spoilt[3] = 0
    with pytest.raises(ParameterError, match="zero vector"):
        cluster_by_blurred_affinity(spoilt, (4,), seed=0, parameters=BLURRED)


# --- all of them ------------------------------------------------------------------------------------

METHODS: dict[str, Any] = {
    "kmeans": lambda x, size: cluster_by_kmeans(x, np.ones(len(x)), size, seed=0, parameters=KMEANS),
    "mixture": lambda x, size: cluster_by_mixture(x, size, seed=0, parameters=MIXTURE),
    "spectral": lambda x, size: cluster_spectrally(x, (size,), seed=0, parameters=SPECTRAL)[0],
    "blurred": lambda x, size: cluster_by_blurred_affinity(x, (size,), seed=0, parameters=BLURRED)[0],
}


@pytest.mark.parametrize("method", METHODS)
def test_more_clusters_than_words_are_refused_by_every_method(method: str, words: np.ndarray) -> None:
    with pytest.raises(ParameterError, match="the number of clusters is out of range"):
        METHODS[method](words[:20], 21)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("factor", [np.nan, 1e-170, 1e160])
def test_vectors_that_are_not_finite_or_cannot_be_squared_are_refused_by_every_method(
    method: str, factor: float, words: np.ndarray
) -> None:
    with pytest.raises(ParameterError, match="not finite, or cannot be squared"):
        METHODS[method](words[:40].astype(np.float64) * factor, 3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1, 20])
def test_one_cluster_and_one_word_each_are_partitions_too(method: str, size: int, words: np.ndarray) -> None:
    found = METHODS[method](words[:20], size)
    assert found.labels.dtype == np.int32
    assert found.size >= size
    assert found.labels.min() >= 0
    assert found.labels.max() < found.size


@pytest.mark.parametrize("method", METHODS)
def test_a_second_run_is_the_first(method: str, words: np.ndarray) -> None:
    first, second = (METHODS[method](words[:200], 6) for _ in range(2))
    np.testing.assert_array_equal(first.labels, second.labels)
    assert first.notes == second.notes


CLUSTER = """
import hashlib, sys
import numpy as np
from tests.clusterers.test_clusterers import METHODS
x = np.random.default_rng(0).standard_normal((700, 40)).astype(np.float32)
digest = hashlib.sha256()
for method in METHODS.values():
    found = method(x, 7)
    digest.update(found.labels.tobytes() + repr(found.notes).encode())
    digest.update(b"" if found.centroids is None else found.centroids.tobytes())
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_the_bytes_do_not_depend_on_the_number_of_threads() -> None:
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", CLUSTER],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads},
        )
        for threads in ("1", "2")
    ]
    first, second = (run.communicate(timeout=120)[0] for run in runs)
    assert first == second
    assert len(first.strip()) == 64


@pytest.mark.parametrize("power", [-83, 60, 83])
def test_the_unit_of_float32_words_does_not_matter_to_k_means(power: int) -> None:
    x = np.random.default_rng(0).standard_normal((40, 5)).astype(np.float32)
    chosen = kmeans.Settings(restarts=2, iterations=100, tolerance=1e-4)
    plain, scaled = (
        next(kmeans.cluster(vectors, np.ones(40), (4,), seed=0, settings=chosen)).labels
        for vectors in (x, np.ldexp(x, power))
    )
    assert len(set(scaled.tolist())) == 4
    np.testing.assert_array_equal(scaled, plain)


@pytest.mark.parametrize("vectors", [np.ones((1, 2)), np.array([[1.0, 0.0], [-1.0, 0.0]])])
def test_words_without_affinity_are_refused(vectors: np.ndarray) -> None:
    chosen = blurred.Settings(sigma=1, threshold=0.95, shrink=0.01, spare=5, stop=1e-2, restarts=2)
    with pytest.raises(ParameterError, match="no affinity"):
        next(blurred.cluster(vectors, np.ones(len(vectors)), (1,), seed=0, settings=chosen))
