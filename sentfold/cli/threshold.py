"""Find from which cosine on two texts of yours match: precision and recall there, and where to ask a person."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sentfold.cli.inputs import (
    WORDS,
    Columns,
    EncoderName,
    Seed,
    Vectors,
    Words,
    print_notes,
    read_inputs,
    refuse_other_record,
    refuse_target,
)
from sentfold.numeric_profile import profile_name, use_profile


def command(
    source: Annotated[Path, typer.Argument(help="Pairs with scores: CSV, TSV, JSONL, Parquet.")],
    vectors: Vectors = None,
    encoder: EncoderName = None,
    words: Words = WORDS,
    columns: Columns = None,
    match_from: Annotated[float | None, typer.Option(help="Least score of a match, where scores are graded.")] = None,
    base_rate: Annotated[
        float | None, typer.Option(help="Share of matches where you will use the threshold; default: as in the data.")
    ] = None,
    few: Annotated[float, typer.Option(help="Largest share of matches in the lower band.")] = 0.02,
    most: Annotated[float, typer.Option(help="Least share of matches in the upper band.")] = 0.95,
    to: Annotated[Path | None, typer.Option(help="A JSON file to write, with all numbers and hashes.")] = None,
    seed: Seed = 0,
) -> None:
    """Print the threshold, its precision and recall, and the bands, with 95% intervals."""
    use_profile()  # before numpy is imported, so that other processors give the same bytes
    from sentfold.compare.bootstrap import group_design
    from sentfold.data.columns import parse_columns
    from sentfold.data.datasets import read_dataset
    from sentfold.data.tables import DataError
    from sentfold.decision.inputs import copy_notes, first_copies, kin_of
    from sentfold.decision.threshold import find_threshold, matches_from, require_groups
    from sentfold.decision.use import write_numbers
    from sentfold.measures.base.pairs import cosines

    refuse_target(to, source, vectors, encoder, words)
    refuse_other_record(to, "inputs", "match_from")
    data = read_dataset(source, parse_columns(columns))  # refused here, before an encoder takes minutes
    if data.kind != "pairs":
        raise DataError(
            "a threshold needs pairs", where=data.name, expected="pairs with scores", got=data.kind,
            remedy="give a table of pairs, and name its columns: --columns left=a,right=b,score=c",
        )  # fmt: skip
    matches_from(data.values, match_from)
    require_groups(group_design(data.numbered_rows, [""] * len(data)), len(data))
    data, x, hashes, _ = read_inputs(source, vectors, encoder, columns, words)
    match = matches_from(data.values, match_from)  # of the rows that are judged, if the file was written in between
    copies = first_copies(x, texts=data.texts)
    notes = copy_notes(copies, data.texts)
    if data.splits:
        notes = (*notes, "all pairs are taken: the column of parts is not used")
    print_notes(notes)
    found = find_threshold(
        cosines(x, data.rows)[0],
        match,
        rows=kin_of(copies, data.texts)[data.rows],
        base_rate=base_rate,
        few=few,
        most=most,
        seed=seed,
    )
    try:
        if to:
            record = {"inputs": hashes, "match_from": match_from, "seed": seed, "numeric_profile": profile_name()}
            write_numbers(to, {**found.to_json(), **record, "notes": [*data.notes, *notes]})
    finally:
        print(found.describe())
    if to:
        print(f"  {to}: all numbers")
