"""What a run over one huge corpus is to make."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.manifold.manifolds import LandmarkParameters, load_manifold
from pipeline.manifold.solver_parameters import SolverParameters
from pipeline.params import load_parameters, validate
from pipeline.partitions.plan import ROWS
from pipeline.partitions.text_encoders import TextEncoder, find_text_encoder


@dataclass(frozen=True)
class Request:
    """What a run is to make.

    encoder     of the source's texts; None: the source holds vectors
    parameters  of the landmarks; solver: of their eigenproblem
    rows        of a partition, at most, where row groups allow it
    """

    encoder: TextEncoder | None
    parameters: LandmarkParameters
    solver: SolverParameters
    rows: int = ROWS


def request_by_name(
    encoder: str | None, manifold: str, *, landmarks: int | None, tolerance: float | None, rows: int
) -> Request:
    """A request from blocks of params.yaml: an encoder, a manifold of method lle-landmark, and eigensolve.

    landmarks, tolerance  if given, in place of the blocks' own
    Raises ParameterError.
    """
    parameters = load_manifold(manifold, LandmarkParameters)
    solver = load_parameters(SolverParameters, "eigensolve")
    if landmarks is not None:
        block = {**parameters.model_dump(), "landmarks": landmarks}
        parameters = validate(LandmarkParameters, block, where="--landmarks")
    if tolerance is not None:
        solver = validate(SolverParameters, {**solver.model_dump(), "tolerance": tolerance}, where="--tolerance")
    return Request(find_text_encoder(encoder) if encoder else None, parameters, solver, rows)
