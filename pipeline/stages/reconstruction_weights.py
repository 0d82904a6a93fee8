"""Stage `reconstruction_weights`: every sentence as an affine combination of its neighbours."""

from __future__ import annotations

import pyarrow as pa
from threadpoolctl import threadpool_limits

from pipeline.base.artifacts import DISCARDED, fixed_lists, weights_path, write_absence, write_table
from pipeline.manifolds import inputs_of, load_weigher, read_source, why_absent
from sentfold.errors import located

NAMED = 20  # number of degenerate rows that the notes list


def reconstruction_weights(suite: str, encoder: str, manifold: str, corpora: tuple[str, ...]) -> None:
    """Write the reconstruction weights of every corpus for one manifold over one encoder."""
    maker = load_weigher(manifold)
    made_with = maker.settings.model_dump(include={"neighbors", "regularization"})
    for corpus in corpora:
        target = weights_path(suite, f"{encoder}-{manifold}", corpus)
        inputs = inputs_of(suite, encoder, corpus, maker.module)
        reason = why_absent(inputs)
        if reason:
            write_absence(target, reason, kind="weights", inputs=inputs[:1])
            continue
        with threadpool_limits(1), located(f"corpus {corpus}, params.yaml: manifolds.{manifold}", state=DISCARDED):
            neighbors, weights = maker.module.reconstruct(read_source(inputs), maker.settings)
        write_table(
            target,
            pa.table({"neighbor": fixed_lists(neighbors), "weight": fixed_lists(weights.values)}),
            kind="weights",
            parameters=made_with,
            inputs=inputs,
            notes={
                "degenerate_rows": len(weights.degenerate),
                "first_degenerate_rows": weights.degenerate[:NAMED].tolist(),
                "negative_share": round(float((weights.values < 0).mean()), 4),
                "repaired_rows": weights.repaired,
                "sentences": len(neighbors),
            },
        )
