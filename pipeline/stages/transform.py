"""Stage `transform`: a space made from vectors, and from their neighbour graph where the method reads it."""

from __future__ import annotations

from threadpoolctl import threadpool_limits

from pipeline.base.artifacts import DISCARDED, space_path, write_absence, write_vectors
from pipeline.manifolds import inputs_of, load_maker, load_solver, read_source, why_absent
from sentfold.errors import located


def transform(suite: str, encoder: str, name: str, corpora: tuple[str, ...]) -> None:
    """Write the space `<encoder>-<name>` of every corpus, each fitted on that corpus's own sentences."""
    maker, solver = load_maker(name), load_solver()
    for corpus in corpora:
        target = space_path(suite, f"{encoder}-{name}", corpus)
        inputs = inputs_of(suite, encoder, corpus, maker.module)
        reason = why_absent(inputs)
        if reason:
            write_absence(target, reason, kind="vectors", inputs=inputs)
            continue
        with threadpool_limits(1), located(f"corpus {corpus}, params.yaml: manifolds.{name}", state=DISCARDED):
            made = maker.module.embed(read_source(inputs, solver), maker.settings)
        write_vectors(
            target,
            made.vectors,
            parameters=maker.record(solver),
            inputs=inputs,
            notes={**made.notes, "sentences": len(made.vectors)},
        )
