"""Stage `eigensolve`: the bottom eigenvectors of the reconstruction weights, as a space."""

from __future__ import annotations

import numpy as np
from pydantic import Field
from threadpoolctl import threadpool_limits

from pipeline.artifacts import (
    absence,
    read_lists,
    read_table,
    space_path,
    weights_path,
    write_absence,
    write_vectors,
)
from pipeline.errors import located
from pipeline.manifold.eigensolver import Eigenpairs, bottom_eigenvectors, weight_matrix
from pipeline.manifold.manifolds import ManifoldParameters
from pipeline.manifold.pool import DISCARDED
from pipeline.params import Parameters, load_parameters


class SolverParameters(Parameters):
    """null_tolerance, residual_tolerance: see bottom_eigenvectors. seed: of the start vectors."""

    null_tolerance: float = Field(gt=0, lt=1e-3)
    residual_tolerance: float = Field(gt=0, lt=1)
    seed: int = Field(ge=0, lt=2**32)


def eigensolve(suite: str, encoder: str, manifold: str, corpora: tuple[str, ...]) -> None:
    """Write the space `<encoder>-<manifold>` of every corpus, with the certificate of each solve."""
    solver = load_parameters(SolverParameters, "eigensolve")
    components = load_parameters(ManifoldParameters, f"manifolds.{manifold}").components
    for corpus in corpora:
        source = weights_path(suite, f"{encoder}-{manifold}", corpus)
        target = space_path(suite, f"{encoder}-{manifold}", corpus)
        reason = absence(source, kind="weights")
        if reason:
            write_absence(target, reason, kind="vectors", inputs=[source])
            continue
        table = read_table(source, kind="weights")
        w = weight_matrix(read_lists(table, "neighbor", path=source), read_lists(table, "weight", path=source))
        with threadpool_limits(1), located(f"corpus {corpus}, params.yaml: manifolds.{manifold}", state=DISCARDED):
            pairs = bottom_eigenvectors(w, components, **solver.model_dump())
        # The paper's scale: Y^T Y / n = I, unit variance per dimension (SBERT-LP eq. 15).
        y = (pairs.vectors * np.sqrt(len(pairs.vectors))).astype(np.float32)
        write_vectors(
            target,
            y,
            parameters={"components": components, **solver.model_dump()},
            inputs=[source],
            notes={**certificate(pairs), "sentences": len(y)},
        )


def certificate(pairs: Eigenpairs) -> dict[str, object]:
    """What makes a solve checkable without solving again."""
    return {
        "degree": pairs.degree,
        "eigenvalues": pairs.values.tolist(),
        "largest_eigenvalue": pairs.largest,
        "nullity": pairs.nullity,
        "orthogonality": pairs.orthogonality,
        "products": pairs.products,
        "residuals": pairs.residuals.tolist(),
    }
