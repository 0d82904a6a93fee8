"""Stage `selected`: the space of the parameters that a sweep chose on development data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from pipeline.base.artifacts import DISCARDED, read_json, space_path, write_absence, write_vectors
from pipeline.manifolds import (
    Maker,
    inputs_of,
    load_solver,
    make_maker,
    read_source,
    sweep_folder,
    why_absent,
)
from sentfold.errors import located


def selected(suite: str, encoder: str, selection: str, corpora: tuple[str, ...]) -> Maker:
    """Write the space `<encoder>-<selection>` of every corpus. Returns the method and settings it was made with.

    Of the sweep it reads selected.json and nothing else. A corpus too small for the chosen k or p is
    blank with its reason: nobody chose them for it.
    """
    choice_file = sweep_folder(suite, encoder, selection) / "selected.json"
    choice, solver = read_choice(choice_file), load_solver()
    maker = make_maker(selection, choice["method"], choice["parameters"], where=str(choice_file))
    for corpus in corpora:
        target = space_path(suite, f"{encoder}-{selection}", corpus)
        inputs = inputs_of(suite, encoder, corpus, maker.module)
        reason = why_absent(inputs)
        if reason:
            write_absence(target, reason, kind="vectors", inputs=inputs)
            continue
        source = read_source(inputs, solver)
        if not maker.module.fits(maker.settings, source.vectors.shape, source.held):
            reason = f"{len(source.vectors)} sentences are too few for the parameters chosen on {choice['corpus']}"
            write_absence(target, reason, kind="vectors", inputs=inputs)
            continue
        with threadpool_limits(1), located(f"corpus {corpus}, {choice_file}", state=DISCARDED):
            made = maker.module.embed(source, maker.settings)
        write_vectors(
            target,
            made.vectors,
            parameters={**maker.record(solver), "chosen_on": choice["corpus"]},
            inputs=inputs,
            notes={**made.notes, "sentences": len(made.vectors)},
        )
    return maker


def read_choice(path: Path) -> dict[str, Any]:
    """The content of selected.json. Raises ArtifactError if it is missing or is not what a sweep writes."""
    return read_json(path, "the choice of a sweep", corpus=str, method=str, parameters=dict)
