"""The parameters of a manifold: one block of `manifolds:` in params.yaml."""

from __future__ import annotations

from pydantic import Field

from pipeline.params import Parameters


class ManifoldParameters(Parameters):
    """neighbors: k. regularization: fraction of the Gram trace. components: p."""

    neighbors: int = Field(ge=1, le=10_000)
    regularization: float = Field(gt=0, le=100)
    components: int = Field(ge=1, le=10_000)
