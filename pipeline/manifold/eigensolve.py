"""Stage `eigensolve`: the bottom eigenvectors of the reconstruction weights, as a space."""

from __future__ import annotations

import numpy as np
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
from pipeline.manifold.certificate import certificate
from pipeline.manifold.eigensolver import bottom_eigenvectors, weight_matrix
from pipeline.manifold.manifolds import LleParameters, load_manifold
from pipeline.manifold.pool import DISCARDED
from pipeline.manifold.scaling import scale_eigenvectors
from pipeline.manifold.solver_bar import solver_bar
from pipeline.manifold.solver_parameters import SolverParameters
from pipeline.params import load_parameters


def eigensolve(suite: str, encoder: str, manifold: str, corpora: tuple[str, ...]) -> None:
    """Write the space `<encoder>-<manifold>` of every corpus, with the certificate of each solve."""
    solver = load_parameters(SolverParameters, "eigensolve")
    parameters = load_manifold(manifold, LleParameters)
    for corpus in corpora:
        source = weights_path(suite, f"{encoder}-{manifold}", corpus)
        target = space_path(suite, f"{encoder}-{manifold}", corpus)
        reason = absence(source, kind="weights")
        if reason:
            write_absence(target, reason, kind="vectors", inputs=[source])
            continue
        table = read_table(source, kind="weights")
        w = weight_matrix(read_lists(table, "neighbor", path=source), read_lists(table, "weight", path=source))
        with (
            threadpool_limits(1),
            located(f"corpus {corpus}, params.yaml: manifolds.{manifold}", state=DISCARDED),
            solver_bar(of=corpus) as progress,
        ):
            pairs = bottom_eigenvectors(w, parameters.components, **solver.model_dump(), progress=progress)
        y = scale_eigenvectors(pairs.vectors, pairs.values, parameters.scaling).astype(np.float32)
        write_vectors(
            target,
            y,
            parameters={**parameters.model_dump(), "eigensolve": solver.model_dump()},
            inputs=[source],
            notes={**certificate(pairs), "sentences": len(y)},
        )
