"""Find how small your vectors can get on your own pairs, labels or queries without losing more than a margin."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sentfold.cli.inputs import (
    WORDS,
    Columns,
    EncoderName,
    Seed,
    Source,
    Vectors,
    Words,
    print_notes,
    read_inputs,
    refuse_target,
)
from sentfold.numeric_profile import profile_name, use_profile


def command(
    source: Source,
    vectors: Vectors = None,
    encoder: EncoderName = None,
    words: Words = WORDS,
    columns: Columns = None,
    margin: Annotated[float, typer.Option(help="Points that may be lost; choose it before you look.")] = 1.0,
    to: Annotated[Path | None, typer.Option(help="A folder to write: verdict.json, and the map to use.")] = None,
    seed: Seed = 0,
) -> None:
    """Print the smallest form of the vectors that passes, and how many items would be needed where none does."""
    use_profile()  # before numpy is imported, so that other processors give the same bytes
    from dataclasses import replace

    from sentfold.decision.compress import compress_dataset
    from sentfold.decision.encoders import save_fit
    from sentfold.decision.use import renewed

    refuse_target(to, source, vectors, encoder, words, folder=True)
    data, x, hashes, fitted = read_inputs(source, vectors, encoder, columns, words)
    found = compress_dataset(data, x, margin=margin, seed=seed)
    print_notes(found.notes[len(data.notes) :])
    try:
        if to:
            found = replace(found, record={**found.record, "inputs": hashes, "numeric_profile": profile_name()})
            with renewed(to) as fresh:
                save_fit(fresh, fitted)
                found.write_files(fresh)
    finally:
        print(found.describe())
    if to:
        print(f"  {to}: verdict.json" + (", and the map for sentfold.load_space" if found.space else ""))
