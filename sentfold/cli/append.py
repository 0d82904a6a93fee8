"""Map new texts by a space without a refit, and add them to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sentfold.cli.inputs import WORDS, Words, print_notes, refuse_read_only, refuse_target_in_model, require_parquet
from sentfold.numeric_profile import use_profile


def command(
    source: Annotated[Path, typer.Argument(help="New texts: CSV, TSV, JSONL, Parquet, or one a line.")],
    target: Annotated[Path, typer.Argument(help="The Parquet file to begin or to add to: text, vector.")],
    encoder: Annotated[str, typer.Option(help="The encoder whose vectors the space was fitted on.")],
    space: Annotated[Path, typer.Option(help="The folder that `sentfold decide` or `sentfold compress` wrote.")],
    words: Words = WORDS,
    columns: Annotated[str | None, typer.Option(help="text=a.")] = None,
) -> None:
    """Texts that the file has are left out; the others are encoded, mapped and added."""
    use_profile()
    from sentfold.data.columns import parse_columns
    from sentfold.decision.encoders import count_notes, open_encoder, unnamed_encoder
    from sentfold.decision.spaces import load_space
    from sentfold.decision.use import (
        append_vectors,
        describe_distances,
        map_vectors,
        new_texts,
        read_texts,
        require_same_file,
    )

    refuse_target_in_model(target, encoder)
    refuse_read_only(target)
    if not (target.exists() and target.stat().st_size):  # to a file under another name can be added, too
        require_parquet(target)
    found, notes = read_texts(source, parse_columns(columns))
    print_notes(notes)
    texts = new_texts(target, found)
    if not texts:
        print(f"{target}: it has all of these texts already")
        return
    fitted = load_space(space)
    encode = open_encoder(encoder, words, space=space, fit_on=())
    require_same_file(target, fitted, lambda held: map_vectors(fitted, encode(held).vectors, space))
    print_notes(unnamed_encoder(space, encoder))
    encoded = encode(texts)
    print_notes(count_notes(encoder, encoded.fallbacks))
    added, total = append_vectors(target, texts, map_vectors(fitted, encoded.vectors, space))
    print(f"{target}: {added:,} texts added, {total:,} in all")
    if distances := describe_distances(fitted, encoded.vectors):
        print(f"  {distances}")
