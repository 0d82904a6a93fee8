"""Stage cluster_words: what is written, what is read back, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.cluster import KMeans

from pipeline.base.artifacts import fixed_lists, read_record, write_table
from pipeline.base.params import load_parameters
from pipeline.stages.cluster_words import cluster_words
from pipeline.stages.vocabulary import vocabulary
from pipeline.stages.word_counts import word_counts
from pipeline.words.artifacts import (
    WordClusters,
    clusters_path,
    counts_path,
    load_clusters,
    load_counts,
    load_vectors,
    vectors_path,
)
from sentfold.clusterers.base import ClusteringParameters
from sentfold.errors import ArtifactError, ParameterError
from sentfold.files import sha256_of
from tests.words.conftest import CORPORA, make_suite, rows, write_params

KMEANS = {"restarts": 3, "iterations": 100, "tolerance": 0.0}
PLAIN: dict[str, Any] = {"vectors": "small", "tokenizer": "regex", "sizes": [3], "seeds": [0], "kmeans": KMEANS}
MIXTURE = {"covariance": "diag", "regularization": 0.001, "iterations": 50, "tolerance": 0.001}
SPECTRAL = {"neighbors": 4, "distance": "cosine", "rows": "unit", "restarts": 2}
BLURRED = {"sigma": 1.0, "threshold": 0.95, "shrink": 0.01, "spare": 5, "stop": 0.01, "restarts": 1}
METHODS: dict[str, dict[str, Any]] = {
    "kmeans": PLAIN,
    "mixture": {**PLAIN, "kmeans": None, "mixture": MIXTURE},
    "spectral": {**PLAIN, "kmeans": None, "spectral": SPECTRAL, "centroids": "mean"},
    "blurred": {**PLAIN, "kmeans": None, "blurred": BLURRED, "centroids": "scaled-mean"},
}


@pytest.fixture
def prepared(checkout: Path) -> Path:
    """The checkout with vocabulary, counts, and vectors of its 14 words."""
    suite = make_suite()
    vocabulary("mine", "regex", CORPORA)
    word_counts(suite, "regex")
    words = list(load_counts("mine", "regex").words)
    vectors = np.array(list(rows(words, 6).values()), dtype=np.float32)
    write_table(
        vectors_path("mine", "small", "regex"),
        pa.table({"word": words, "vector": fixed_lists(vectors)}),
        kind="word_vectors",
        parameters={},
    )
    return checkout


def run(block: dict[str, Any]) -> dict[str, int]:
    block = {key: value for key, value in block.items() if value is not None}
    write_params({"clusterings": {"it": block}})
    return cluster_words("mine", "it")


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("method", METHODS)
def test_every_method_writes_partitions_and_controls_for_every_size_and_seed(method: str) -> None:
    block = {**METHODS[method], "sizes": [2, 3], "seeds": [0, 7], "controls": ["random", "frequency"]}
    written = run(block)
    assert set(written) == {f"k{k}-s{s}{c}" for k in (2, 3) for s in (0, 7) for c in ("", "-random", "-frequency")}
    words, _ = load_vectors("mine", "small", "regex")
    for size in (2, 3):
        for seed in (0, 7):
            found = load_clusters("mine", "it", size=size, seed=seed)
            assert found.words == words
            assert found.labels.dtype == np.int32
            assert found.centroids.dtype == np.float32
            assert np.isfinite(found.centroids).all()
            assert len(found.centroids) >= size
            for control in ("random", "frequency"):
                other = load_clusters("mine", "it", size=size, seed=seed, control=control)
                assert np.bincount(other.labels).tolist() == np.bincount(found.labels).tolist()
            assert (np.diff(load_clusters("mine", "it", size=size, seed=seed, control="frequency").labels) >= 0).all()


@pytest.mark.usefixtures("prepared")
def test_s3es_clusters_are_weighted_kmeans_over_the_words() -> None:
    run({**PLAIN, "weights": {"rule": "sif", "a": 0.01, "counts": "suite"}})
    words, vectors = load_vectors("mine", "small", "regex")
    counts = load_counts("mine", "regex")
    weights = 0.01 / (0.01 + counts.of(words) / counts.total)
    theirs = KMeans(3, n_init=3, max_iter=100, tol=0, random_state=0).fit(vectors, sample_weight=weights)
    found = load_clusters("mine", "it", size=3)
    np.testing.assert_array_equal(found.labels, theirs.labels_)
    np.testing.assert_allclose(found.centroids, theirs.cluster_centers_, atol=1e-5)


@pytest.mark.usefixtures("prepared")
def test_the_controls_of_weighted_kmeans_have_weighted_means_for_centroids() -> None:
    run({**PLAIN, "weights": {"rule": "inverse", "counts": "own"}, "controls": ["random"]})
    words, vectors = load_vectors("mine", "small", "regex")
    counts = load_counts("mine", "regex", "own")
    weights = (counts.total + len(counts.words)) / (1 + counts.of(words))
    control = load_clusters("mine", "it", size=3, control="random")
    for k in range(3):
        member = control.labels == k
        expected = np.average(vectors[member].astype(np.float64), axis=0, weights=weights[member])
        np.testing.assert_allclose(control.centroids[k], expected, atol=1e-5)


@pytest.mark.usefixtures("prepared")
def test_weights_by_frequency_are_kmeans_over_tokens() -> None:
    run({**PLAIN, "weights": {"rule": "frequency"}})
    words, vectors = load_vectors("mine", "small", "regex")
    counts = load_counts("mine", "regex", "own").of(words)
    found = load_clusters("mine", "it", size=3)
    tokens, labels = np.repeat(vectors.astype(np.float64), counts, axis=0), np.repeat(found.labels, counts)
    for k in range(3):
        np.testing.assert_allclose(found.centroids[k], tokens[labels == k].mean(axis=0), atol=1e-5)


@pytest.mark.usefixtures("prepared")
def test_a_second_run_writes_the_same_bytes_and_another_seed_others() -> None:
    paths = [clusters_path("mine", "it", f"k3-s{seed}-random", "clusters") for seed in (0, 1)]
    digests = []
    for _ in range(2):
        run({**PLAIN, "seeds": [0, 1], "controls": ["random"]})
        digests.append([sha256_of(path) for path in paths])
    assert digests[0] == digests[1]
    first, second = (load_clusters("mine", "it", size=3, seed=seed, control="random") for seed in (0, 1))
    assert first.labels.tolist() != second.labels.tolist()


@pytest.mark.usefixtures("prepared")
def test_what_made_a_partition_is_recorded() -> None:
    run({**PLAIN, "weights": {"rule": "sif", "a": 0.01}, "controls": ["random"]})
    record = read_record(clusters_path("mine", "it", "k3-s0-random", "clusters"), kind="clusters")
    assert record["parameters"]["control"] == "random"
    assert (record["parameters"]["size"], record["parameters"]["seed"]) == (3, 0)
    assert record["parameters"]["weights"] == {"rule": "sif", "a": 0.01, "counts": "suite"}
    assert set(record["inputs"]) == {
        "data/mine/words/vectors/small/regex.parquet",
        "data/mine/words/counts/regex.parquet",
    }
    assert record["notes"]["words"] == 14


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("method", METHODS)
def test_fewer_words_than_clusters_is_one_clear_error(method: str) -> None:
    with pytest.raises(ParameterError) as caught:
        run({**METHODS[method], "sizes": [15]})
    for part in ("the number of clusters is out of range", "clusterings.it", "14 words", "15"):
        assert part in str(caught.value)


@pytest.mark.usefixtures("checkout")
def test_missing_vectors_are_refused_with_what_makes_them() -> None:
    with pytest.raises(ArtifactError, match="missing"):
        run(PLAIN)


@pytest.mark.usefixtures("prepared")
def test_a_partition_that_was_not_made_is_refused() -> None:
    run(PLAIN)
    with pytest.raises(ArtifactError, match="missing"):
        load_clusters("mine", "it", size=4)


@pytest.mark.usefixtures("prepared")
def test_centroids_of_another_partition_are_noticed() -> None:
    run({**PLAIN, "sizes": [2, 3]})
    two = clusters_path("mine", "it", "k2-s0", "centroids")
    three = clusters_path("mine", "it", "k3-s0", "centroids")
    three.write_bytes(two.read_bytes())
    with pytest.raises(ArtifactError):  # by the name inside it
        load_clusters("mine", "it", size=3)
    write_table(
        three,
        pa.table({"cluster": np.arange(2, dtype=np.int32), "vector": fixed_lists(np.zeros((2, 6), dtype=np.float32))}),
        kind="centroids",
        parameters={},
    )
    with pytest.raises(ArtifactError, match="do not match"):
        load_clusters("mine", "it", size=3)


def test_words_of_another_table_get_their_labels_and_strangers_none() -> None:
    clusters = WordClusters(("a", "b"), np.array([4, 2], dtype=np.int32), np.zeros((5, 3), dtype=np.float32))
    assert clusters.labels_of(("b", "c", "a")).tolist() == [2, -1, 4]
    assert clusters.labels_of(("a", "b")) is clusters.labels


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"kmeans": None}, "exactly one of"),
        ({"mixture": MIXTURE}, "exactly one of"),
        ({"kmeans": None, "spectral": SPECTRAL}, "returns no centroids"),
        ({"sizes": []}, "at least 1"),
        ({"sizes": [0]}, "greater than or equal to 1"),
        ({"sizes": [5, 5]}, "'sizes' has the same value twice"),
        ({"seeds": [-1]}, "seeds.0"),
        ({"seeds": []}, "seeds"),
        ({"controls": ["shuffled"]}, "controls.0"),
        ({"controls": ["random", "random"]}, "'controls' has the same value twice"),
        ({"tokenizer": "moses"}, "wordpunct"),
        ({"weights": {"rule": "sif"}}, "weights.sif.a"),
        ({"weights": {"rule": "tfidf"}}, "weights"),
        ({"weights": {"rule": "sif", "a": 0.1, "counts": "mine"}}, "counts"),
        ({"kmeans": {**KMEANS, "restarts": 0}}, "kmeans.restarts"),
        ({"size": 3}, "size"),
    ],
)
@pytest.mark.usefixtures("checkout")
def test_a_bad_block_is_refused_by_its_key(change: dict[str, Any], part: str) -> None:
    block = {key: value for key, value in {**PLAIN, **change}.items() if value is not None}
    write_params({"clusterings": {"it": block}})
    with pytest.raises(ParameterError) as caught:
        load_parameters(ClusteringParameters, "clusterings.it")
    assert part in str(caught.value)


def write_words(path: Path, kind: str, **columns: pa.Array) -> None:
    write_table(path, pa.table({"word": ["a", "b", "c"], **columns}), kind=kind, parameters={})


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize("labels", [[0, 1, None], [0, 1, -1_000_000_000], [0, 1, 1]])
def test_forged_labels_and_centroids_are_refused(labels: list[int | None]) -> None:
    write_words(clusters_path("mine", "it", "k2-s0", "clusters"), "clusters", cluster=pa.array(labels, pa.int32()))
    vectors = fixed_lists(np.full((2, 3), np.nan if labels[-1] == 1 else 0.0, dtype=np.float32))
    table = pa.table({"cluster": np.arange(2, dtype=np.int32), "vector": vectors})
    write_table(clusters_path("mine", "it", "k2-s0", "centroids"), table, kind="centroids", parameters={})
    with pytest.raises(ArtifactError, match=r"wrong numbers in 'cluster'|not finite"):
        load_clusters("mine", "it", size=2)


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize("count", [None, 0, -9, 2**60])
def test_forged_counts_are_refused(count: int | None) -> None:
    write_words(counts_path("mine", "regex"), "counts", count=pa.array([5, 1, count], pa.int64()))
    with pytest.raises(ArtifactError, match="wrong numbers in 'count'"):
        load_counts("mine", "regex")


@pytest.mark.usefixtures("checkout")
def test_forged_vectors_are_refused() -> None:
    vectors = fixed_lists(np.array([[1.0], [np.inf], [2.0]], dtype=np.float32))
    write_words(vectors_path("mine", "small", "regex"), "word_vectors", vector=vectors)
    with pytest.raises(ArtifactError, match="not finite"):
        load_vectors("mine", "small", "regex")
