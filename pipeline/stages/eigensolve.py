"""Stage `eigensolve`: the bottom eigenvectors of the reconstruction weights, as a space."""

from __future__ import annotations

from threadpoolctl import threadpool_limits

from pipeline.base.artifacts import (
    DISCARDED,
    absence,
    read_rows,
    read_table,
    read_values,
    space_path,
    weights_path,
    write_absence,
    write_vectors,
)
from pipeline.manifolds import load_solver, load_weigher
from sentfold.errors import located
from sentfold.manifold.solver.eigensolver import solver_bar, weight_matrix


def eigensolve(suite: str, encoder: str, manifold: str, corpora: tuple[str, ...]) -> None:
    """Write the space `<encoder>-<manifold>` of every corpus, with the certificate of each solve.

    Raises ArtifactError for weights that no stage writes.
    """
    maker, solver = load_weigher(manifold), load_solver()
    for corpus in corpora:
        source = weights_path(suite, f"{encoder}-{manifold}", corpus)
        target = space_path(suite, f"{encoder}-{manifold}", corpus)
        reason = absence(source, kind="weights")
        if reason:
            write_absence(target, reason, kind="vectors", inputs=[source])
            continue
        table = read_table(source, kind="weights")
        neighbors = read_rows(table, "neighbor", path=source)
        weights = weight_matrix(neighbors, read_values(table, "weight", path=source, shape=neighbors.shape))
        with (
            threadpool_limits(1),
            located(f"corpus {corpus}, params.yaml: manifolds.{manifold}", state=DISCARDED),
            solver_bar(of=corpus) as progress,
        ):
            made = maker.module.solve(weights, maker.settings, solver, progress)
        write_vectors(
            target,
            made.vectors,
            parameters=maker.record(solver),
            inputs=[source],
            notes={**made.notes, "sentences": len(made.vectors)},
        )
