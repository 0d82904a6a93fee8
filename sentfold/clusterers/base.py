"""The parameters of a clustering of words, a block of `clusterings:`, and the clusterer that the block names.

A clusterer is a file of this package, sentfold/clusterers/<method>.py. The file states

    TITLE            the name of the method in tables
    Settings         its parameters
    MODEL_CENTROIDS  the rule of the centroids that the clusterer returns, or None if it returns none
    cluster          (vectors, weights, sizes, *, seed, settings) -> one Partition per size, in the order of sizes
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from sentfold.settings import Parameters, Slug
from sentfold.words.counts import UniformWeights, WeightRule
from sentfold.words.partition import CentroidRule, Control, Float64, Partition, frequency_partition, random_partition
from sentfold.words.tokenizers import TokenizerName

if TYPE_CHECKING:
    from types import ModuleType

Floats = npt.NDArray[np.floating[Any]]


class Clusterer(Protocol):
    """The function `cluster` of a clusterer's file."""

    def __call__(
        self, vectors: Floats, weights: Float64, sizes: tuple[int, ...], *, seed: int, settings: Any
    ) -> Iterator[Partition]:
        """One partition per size.

        vectors  (v, d), most frequent word first
        weights  (v,) positive; a method may ignore them
        """


def known_clusterers() -> tuple[str, ...]:
    """The names of the files of this package that define `cluster`; the files are read as text, not imported."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return tuple(file.stem for file in files if "\ndef cluster(" in file.read_text(encoding="utf-8"))


def find_clusterer(name: str) -> ModuleType:
    """The module of the clusterer `name`, one of known_clusterers()."""
    return import_module(f"sentfold.clusterers.{name}")


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


Sizes = Annotated[tuple[Annotated[int, Field(ge=1, le=10_000)], ...], BeforeValidator(_tuple), Field(min_length=1)]
Seeds = Annotated[tuple[Annotated[int, Field(ge=0, lt=2**32)], ...], BeforeValidator(_tuple), Field(min_length=1)]
Controls = Annotated[tuple[Control, ...], BeforeValidator(_tuple)]


class ClusteringParameters(Parameters):
    """What is clustered, and how. In params.yaml the name of the clusterer is a key, with its settings as the value.

    vectors, tokenizer  the word vectors, and the vocabulary of words that are clustered
    weights             the weight of each word in k-means and in centroids
    sizes, seeds        a partition is made for each number of clusters and each seed
    centroids           see CentroidRule
    controls            control partitions into clusters of the same sizes: at random, or by frequency rank
    method, settings    the clusterer, and its settings
    A word of the vocabulary without a vector is in no cluster; the encoder lase has its own rule for such words.
    """

    vectors: Slug
    tokenizer: TokenizerName
    sizes: Sizes
    seeds: Seeds
    weights: WeightRule = UniformWeights(rule="uniform")
    centroids: CentroidRule = "model"
    controls: Controls = ()
    method: str
    settings: SerializeAsAny[Parameters]

    @model_validator(mode="before")
    @classmethod
    def _read_method(cls, block: Any) -> Any:
        if not isinstance(block, dict):
            return block
        known = known_clusterers()
        methods = [name for name in known if block.get(name) is not None]
        if len(methods) != 1:
            raise ValueError(f"give exactly one of: {', '.join(known)}")
        name = methods[0]
        rest = {key: value for key, value in block.items() if key not in known}
        return {**rest, "method": name, "settings": _read_settings(name, block[name])}

    @model_validator(mode="after")
    def _lists_agree(self) -> ClusteringParameters:
        if self.centroids == "model" and self.model_centroids is None:
            raise ValueError(
                f"the clusterer '{self.method}' returns no centroids: "
                "set `centroids` to weighted-mean, scaled-mean or mean"
            )
        for name, values in (("sizes", self.sizes), ("seeds", self.seeds), ("controls", self.controls)):
            if len(set(values)) != len(values):
                raise ValueError(f"'{name}' has the same value twice")
        return self

    @property
    def model_centroids(self) -> CentroidRule | None:
        """The rule of the centroids that the clusterer returns; None if it returns none."""
        rule: CentroidRule | None = find_clusterer(self.method).MODEL_CENTROIDS
        return rule

    def centroid_rule(self, control: Control | None) -> CentroidRule:
        """The rule for the centroids; a control replaces "model" by the rule of the model's centroids."""
        if control is None or self.centroids != "model":
            return self.centroids
        return self.model_centroids or "mean"

    def record(self) -> dict[str, Any]:
        """The block as in params.yaml, without `sizes`, `seeds` and `controls`."""
        block = self.model_dump(exclude={"sizes", "seeds", "controls", "method", "settings"})
        return {**block, self.method: self.settings.model_dump()}


def _read_settings(method: str, block: Any) -> Parameters:
    try:
        settings: Parameters = find_clusterer(method).Settings.model_validate(block)
    except ValidationError as error:
        # The same errors, located at the key that the user wrote.
        raise ValidationError.from_exception_data(
            method,
            [
                InitErrorDetails(
                    type=complaint["type"],
                    loc=(method, *complaint["loc"]),
                    input=complaint["input"],
                    ctx=complaint.get("ctx", {}),
                )
                for complaint in error.errors()
            ],
        ) from None
    return settings


def make_partitions(
    vectors: Floats, weights: Float64, parameters: ClusteringParameters
) -> Iterator[tuple[int, int, Partition]]:
    """(size, seed, partition) for every size and seed, from the clusterer that the parameters name.

    vectors  (v, d), most frequent word first
    weights  (v,) positive
    """
    cluster: Clusterer = find_clusterer(parameters.method).cluster
    for seed in parameters.seeds:
        partitions = cluster(vectors, weights, parameters.sizes, seed=seed, settings=parameters.settings)
        for size, partition in zip(parameters.sizes, partitions, strict=True):
            yield size, seed, partition


def with_controls(
    partition: Partition, controls: tuple[Control, ...], *, seed: int
) -> Iterator[tuple[Control | None, Partition]]:
    """(None, the partition), then (control, its partition) for each control; words are ordered by frequency."""
    yield None, partition
    for control in controls:
        if control == "random":
            yield control, random_partition(partition, seed=seed)
        else:
            yield control, frequency_partition(partition, np.arange(len(partition.labels)))
