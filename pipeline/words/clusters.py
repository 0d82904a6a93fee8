"""Stage `cluster_words`: partitions of a vocabulary, their centroids, and the control partitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.artifacts import fixed_lists, write_table
from pipeline.errors import located
from pipeline.params import load_parameters
from pipeline.words.blurred import cluster_by_blurred_affinity
from pipeline.words.clustering_parameters import CentroidRule, ClusteringParameters, Control
from pipeline.words.counts import CountSource, UniformWeights, word_weights
from pipeline.words.load import load_counts, load_vectors
from pipeline.words.model_clusters import cluster_by_kmeans, cluster_by_mixture
from pipeline.words.partition import Float64, Partition, centroids_of, frequency_partition, random_partition
from pipeline.words.paths import clusters_path, counts_path, partition_name, vectors_path, vocabulary_path
from pipeline.words.spectral import cluster_spectrally

Floats = npt.NDArray[np.floating[Any]]


def cluster_words(suite: str, clustering: str) -> dict[str, int]:
    """Write every partition of one clustering. Returns its folder -> number of clusters that hold a word.

    Raises ParameterError if the vocabulary has fewer words than clusters.
    """
    parameters = load_parameters(ClusteringParameters, f"clusterings.{clustering}")
    words, vectors = load_vectors(suite, parameters.vectors, parameters.tokenizer)
    source = _count_source(parameters)
    corpus = load_counts(suite, parameters.tokenizer, source) if source else None
    weights = word_weights(words, corpus, parameters.weights)
    inputs = [vectors_path(suite, parameters.vectors, parameters.tokenizer)]
    if source:
        inputs.append((vocabulary_path if source == "own" else counts_path)(suite, parameters.tokenizer))
    written = {}
    with located(f"params.yaml: clusterings.{clustering}"):
        for size, seed, found in make_partitions(vectors, weights, parameters):
            for control, partition in with_controls(found, parameters.controls, seed=seed):
                folder = partition_name(size, seed, control)
                centroids = centroids_of(partition, vectors, weights, centroid_rule(parameters, control))
                about = {"parameters": _record(clustering, parameters, size, seed, control), "inputs": inputs}
                written[folder] = _write_partition(suite, clustering, folder, words, partition, centroids, about)
    return written


def make_partitions(
    vectors: Floats, weights: Float64, parameters: ClusteringParameters
) -> Iterator[tuple[int, int, Partition]]:
    """(size, seed, partition) for every size and seed, by the one method that the parameters give.

    vectors  (v, d), most frequent word first; weights: (v,), which only k-means looks at
    """
    for seed in parameters.seeds:
        # A spectral method solves once for all sizes.
        spectral: list[Partition] = []
        if parameters.spectral is not None:
            spectral = cluster_spectrally(vectors, parameters.sizes, seed=seed, parameters=parameters.spectral)
        elif parameters.blurred is not None:
            spectral = cluster_by_blurred_affinity(vectors, parameters.sizes, seed=seed, parameters=parameters.blurred)
        for i, size in enumerate(parameters.sizes):
            if parameters.kmeans is not None:
                found = cluster_by_kmeans(vectors, weights, size, seed=seed, parameters=parameters.kmeans)
            elif parameters.mixture is not None:
                found = cluster_by_mixture(vectors, size, seed=seed, parameters=parameters.mixture)
            else:
                found = spectral[i]
            yield size, seed, found


def with_controls(
    found: Partition, controls: tuple[Control, ...], *, seed: int
) -> Iterator[tuple[Control | None, Partition]]:
    """(None, the partition itself), then each control of the same sizes; words are in the order of frequency."""
    yield None, found
    for control in controls:
        if control == "random":
            yield control, random_partition(found, seed=seed)
        else:
            yield control, frequency_partition(found, np.arange(len(found.labels)))


def centroid_rule(parameters: ClusteringParameters, control: Control | None) -> CentroidRule:
    """The rule for the centroids; a control has no model, and takes the mean that the model's centroids are."""
    if control is None or parameters.centroids != "model":
        return parameters.centroids
    return "weighted-mean" if parameters.kmeans is not None else "mean"


def _count_source(parameters: ClusteringParameters) -> CountSource | None:
    return None if isinstance(parameters.weights, UniformWeights) else parameters.weights.counts


def _record(
    clustering: str, parameters: ClusteringParameters, size: int, seed: int, control: Control | None
) -> dict[str, Any]:
    block = parameters.model_dump(exclude={"sizes", "seeds", "controls"}, exclude_none=True)
    return {**block, "clustering": clustering, "control": control, "seed": seed, "size": size}


def _write_partition(
    suite: str,
    clustering: str,
    folder: str,
    words: tuple[str, ...],
    partition: Partition,
    centroids: Float64,
    about: dict[str, Any],
) -> int:
    """Write the labels and the centroids of one partition; return the number of clusters that hold a word."""
    members = np.bincount(partition.labels, minlength=partition.size)
    held = int((members > 0).sum())
    notes = {**partition.notes, "clusters": partition.size, "empty": partition.size - held, "words": len(words)}
    tables: dict[str, tuple[pa.Table, Path]] = {
        part: (table, clusters_path(suite, clustering, folder, part))
        for part, table in (
            ("clusters", pa.table({"word": pa.array(words, pa.string()), "cluster": partition.labels})),
            (
                "centroids",
                pa.table(
                    {
                        "cluster": np.arange(partition.size, dtype=np.int32),
                        "vector": fixed_lists(centroids.astype(np.float32)),
                    }
                ),
            ),
        )
    }
    for part, (table, path) in tables.items():
        write_table(path, table, kind=part, notes=notes, **about)
    return held
