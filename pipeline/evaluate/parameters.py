"""Parameters of the stage `evaluate`."""

from __future__ import annotations

from pydantic import Field, field_validator

from pipeline.params import Parameters, Slug


class EvaluateParameters(Parameters):
    """Settings of every protocol; see params.yaml.

    resamples, confidence  of the bootstrap
    folds                  outer folds, where a corpus has no test split
    inner_folds            folds that choose the strength inside what is fitted on
    knn_neighbors          k of the nearest-neighbour classifier
    strengths              C of logistic regressions and trained heads, ascending; one is chosen
    unfitted               spaces that no logistic regression or head is fitted on: these are most of the cost
    kmeans_seeds           starts of k-means; scores are their mean, and their spread is told
    geometry_sample        distinct sentences that the geometry is measured on, at most
    geometry_neighbors     k of hubness, trustworthiness and continuity
    seed                   of resampling, folds, k-means and samples
    """

    resamples: int = Field(ge=100, le=1_000_000)
    confidence: float = Field(gt=0.5, lt=1)
    folds: int = Field(ge=2, le=100)
    inner_folds: int = Field(ge=2, le=100)
    knn_neighbors: int = Field(ge=1, le=1000)
    strengths: tuple[float, ...] = Field(min_length=1)
    unfitted: tuple[Slug, ...] = ()
    kmeans_seeds: int = Field(ge=2, le=1000)
    geometry_sample: int = Field(ge=10, le=20_000)
    geometry_neighbors: int = Field(ge=1, le=1000)
    seed: int = Field(ge=0, lt=2**32)

    @field_validator("strengths", "unfitted", mode="before")
    @classmethod
    def _list_is_a_tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("strengths")
    @classmethod
    def _ascending_and_positive(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if min(value) <= 0 or list(value) != sorted(set(value)):
            raise ValueError("positive numbers, ascending: the smallest of equally good ones is taken")
        return value
