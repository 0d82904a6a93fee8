"""Parameters of every eigensolve."""

from __future__ import annotations

from pydantic import Field

from pipeline.params import Parameters


class SolverParameters(Parameters):
    """tolerance, null_tolerance: see bottom_eigenvectors. seed: of the start vectors."""

    tolerance: float = Field(gt=0, lt=1)
    null_tolerance: float = Field(gt=0, lt=1e-3)
    seed: int = Field(ge=0, lt=2**32)
