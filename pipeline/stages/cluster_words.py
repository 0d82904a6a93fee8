"""Stage `cluster_words`: partitions of a vocabulary, their centroids, and the control partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.base.artifacts import fixed_lists, write_table
from pipeline.base.params import load_parameters
from pipeline.words.artifacts import (
    clusters_path,
    count_source_path,
    load_counts,
    load_vectors,
    partition_name,
    vectors_path,
)
from sentfold.clusterers.base import ClusteringParameters, make_partitions, with_controls
from sentfold.errors import located
from sentfold.words.counts import UniformWeights, word_weights
from sentfold.words.partition import Float64, Partition, centroids_of


def cluster_words(suite: str, clustering: str) -> dict[str, int]:
    """Write every partition of one clustering. Returns folder of the partition -> number of non-empty clusters.

    Raises ParameterError if the vocabulary has fewer words than clusters.
    """
    parameters = load_parameters(ClusteringParameters, f"clusterings.{clustering}")
    words, vectors = load_vectors(suite, parameters.vectors, parameters.tokenizer)
    rule = parameters.weights
    source = None if isinstance(rule, UniformWeights) else rule.counts
    corpus = load_counts(suite, parameters.tokenizer, source) if source else None
    weights = word_weights(words, corpus, rule)
    inputs = [vectors_path(suite, parameters.vectors, parameters.tokenizer)]
    if source:
        inputs.append(count_source_path(suite, parameters.tokenizer, source))
    written = {}
    with located(f"params.yaml: clusterings.{clustering}"):
        for size, seed, basis in make_partitions(vectors, weights, parameters):
            for control, partition in with_controls(basis, parameters.controls, seed=seed):
                folder = partition_name(size, seed, control)
                centroids = centroids_of(partition, vectors, weights, parameters.centroid_rule(control))
                made_with = {"clustering": clustering, "control": control, "seed": seed, "size": size}
                about = {"parameters": {**parameters.record(), **made_with}, "inputs": inputs}
                written[folder] = _write_partition(suite, clustering, folder, words, partition, centroids, about)
    return written


def _write_partition(
    suite: str,
    clustering: str,
    folder: str,
    words: tuple[str, ...],
    partition: Partition,
    centroids: Float64,
    about: dict[str, Any],
) -> int:
    """Write the labels and the centroids of one partition; return the number of non-empty clusters."""
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
