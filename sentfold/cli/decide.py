"""Decide which space of your vectors, if any, serves your own pairs, labels or queries better than cosine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sentfold.cli.inputs import (
    WORDS,
    Columns,
    EncoderName,
    Mteb,
    Seed,
    Source,
    Vectors,
    Words,
    hashes_of_data,
    print_notes,
    read_inputs,
    refuse_target,
    refuse_target_in_model,
)
from sentfold.numeric_profile import use_profile


def command(
    source: Source,
    vectors: Vectors = None,
    encoder: EncoderName = None,
    words: Words = WORDS,
    columns: Columns = None,
    to: Annotated[Path, typer.Option(help="The folder to write: verdict.html, verdict.json, the space.")] = Path(
        "verdict"
    ),
    mteb: Mteb = None,
    seed: Seed = 0,
) -> None:
    """Print the verdict in at most 12 lines. The same files give the same verdict.json."""
    use_profile()  # before numpy is imported, so that other processors give the same bytes
    from dataclasses import replace

    from sentfold.decision.decide import decide_dataset
    from sentfold.decision.encoders import VERDICT, save_fit
    from sentfold.decision.mteb import write_task_results
    from sentfold.decision.page import write_page
    from sentfold.decision.unlabelled import describe_sentences
    from sentfold.decision.use import renewed
    from sentfold.files import write_json

    refuse_target(to, source, vectors, encoder, words, folder=True)
    if mteb is not None and encoder is not None:
        refuse_target_in_model(mteb / "results", encoder)
    data, x, hashes, fitted = read_inputs(source, vectors, encoder, columns, words)
    if data.kind == "sentences":
        geometry = describe_sentences(x, seed=seed)
        try:
            with renewed(to) as fresh:
                write_json(fresh / VERDICT, {**geometry.to_json(), "inputs": hashes})
        finally:
            print(geometry.describe())
        untold = "; without scores or labels there is nothing to tell mteb" if mteb else ""
        print(f"  written to {to}/: verdict.json{untold}")
        return
    decision = decide_dataset(data, x, seed=seed)
    print_notes(decision.notes[len(data.notes) :])
    decision = replace(decision, record={**decision.record, "inputs": hashes})
    try:
        with renewed(to) as fresh:
            save_fit(fresh, fitted)
            write_page(fresh / "verdict.html", decision, data, x)
            decision.write_files(fresh)
        if mteb is not None:
            own = vectors.name if vectors else str(encoder)
            scores = {own: decision.cosine, **{f"{own} + {one.name}": one.score for one in decision.candidates}}
            told = hashes_of_data(source, data.files, hashes)
            write_task_results(mteb, source.resolve().stem, scores, decision.to_json(), data=told, about=own)
    finally:
        print(decision.describe())  # also where the folder cannot be written: it took minutes
    print(f"  written to {to}/: verdict.html, verdict.json, and the chosen space, which sentfold.load_space reads")
