"""Parameters of the stage `evaluate`."""

from __future__ import annotations

from pydantic import Field

from pipeline.params import Parameters


class EvaluateParameters(Parameters):
    """Settings of every protocol; see params.yaml."""

    resamples: int = Field(ge=100, le=1_000_000)
    confidence: float = Field(gt=0.5, lt=1)
    folds: int = Field(ge=2, le=100)
    knn_neighbors: int = Field(ge=1, le=1000)
    logistic_c: float = Field(gt=0)
    seed: int = Field(ge=0, lt=2**32)
