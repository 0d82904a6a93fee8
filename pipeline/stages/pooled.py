"""Stage `pooled`: the space of one pooling, from the file that holds all poolings of its encoder."""

from __future__ import annotations

from pipeline.base.artifacts import (
    absence,
    read_lists,
    read_record,
    read_table,
    space_path,
    write_absence,
    write_vectors,
)
from pipeline.pooled import KIND, pooled_path


def pooled(suite: str, space: str, encoder: str, name: str, corpora: tuple[str, ...]) -> None:
    """Write the space `<encoder>-<name>` of every corpus: one column of what `pool` wrote."""
    for corpus in corpora:
        source, target = pooled_path(suite, encoder, corpus), space_path(suite, space, corpus)
        reason = absence(source, kind=KIND)
        if reason is not None:
            write_absence(target, reason, kind="vectors", inputs=[source])
            continue
        record = read_record(source, kind=KIND)
        parameters = {key: value for key, value in record["parameters"].items() if key != "spaces"}
        vectors = read_lists(read_table(source, kind=KIND), name, path=source)
        write_vectors(
            target,
            vectors,
            parameters={**parameters, **record["parameters"]["spaces"][name]},
            inputs=[source],
            notes={**record["notes"], "dimension": vectors.shape[1]},
        )
