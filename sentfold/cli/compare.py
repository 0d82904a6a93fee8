"""Compare two models or files of vectors on your own data: the paired difference, and whether the data bears it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentfold.cli.inputs import (
    WORDS,
    Columns,
    Mteb,
    Seed,
    Words,
    hash_inputs,
    hashes_of_data,
    print_notes,
    read_inputs,
    refuse_odd_names,
    refuse_other_record,
    refuse_target,
    refuse_target_in_model,
)
from sentfold.errors import escape_controls
from sentfold.numeric_profile import use_profile

if TYPE_CHECKING:
    from sentfold.data.datasets import Dataset
    from sentfold.decision.comparison import Comparison


def command(
    first: Annotated[
        str, typer.Argument(metavar="A", help="A file of vectors, an encoder, or a folder of predictions by mteb.")
    ],
    second: Annotated[str, typer.Argument(metavar="B", help="Another one; the difference is B minus A.")],
    on: Annotated[Path, typer.Option(help="Pairs with scores, texts with labels, or a BEIR folder.")],
    words: Words = WORDS,
    columns: Columns = None,
    task: Annotated[str | None, typer.Option(help="Which of mteb's predictions: TASK/SUBSET/SPLIT.")] = None,
    to: Annotated[Path | None, typer.Option(help="A JSON file to write, with all numbers.")] = None,
    mteb: Mteb = None,
    seed: Seed = 0,
) -> None:
    """Print the difference with its 95% interval, and the smallest difference that this data could show."""
    use_profile()  # before numpy is imported, so that other processors give the same bytes
    from sentfold.data.tables import DataError, unchanged
    from sentfold.decision.comparison import compare_vectors
    from sentfold.decision.mteb import prediction_files, write_task_results
    from sentfold.decision.use import write_numbers
    from sentfold.fold.texts import refuse_two_meanings

    refuse_target(to, first, second, on, words)
    refuse_other_record(to, "inputs", "scores", "verdict")
    if mteb is not None:
        for name in (first, second):
            refuse_target_in_model(mteb / "results", name)
    by_mteb = [bool(prediction_files(Path(name))) for name in (first, second)]
    if any(by_mteb):
        for name in (first, second):
            refuse_two_meanings(name)
        if not all(by_mteb):
            raise DataError("predictions are compared with predictions", where="A, B", expected="two folders of mteb")
        data, comparison, named, inputs = _compare_predictions(first, second, on, columns, task, seed)
    else:
        with unchanged(on) as read:
            one = read_inputs(on, *_vectors_or_encoder(first), columns, words)
            two = read_inputs(on, *_vectors_or_encoder(second), columns, words, quiet=True)
            read.extend(one.data.files)
        data = one.data
        comparison = compare_vectors(data, one.vectors, two.vectors, names=(first, second), seed=seed)
        named, inputs = {"task": on.resolve().stem}, {first: one.hashes, second: two.hashes}
    print_notes(comparison.notes)
    record = {**comparison.to_json(), "inputs": inputs}
    try:
        if to is not None:
            write_numbers(to, record)
        if mteb is not None:
            scores = dict(zip(comparison.names, comparison.scores, strict=True))
            hashes = hashes_of_data(on, data.files, inputs[first])
            write_task_results(mteb, scores=scores, record=record, data=hashes, **named)
    finally:
        print(escape_controls(comparison.describe()))


def _compare_predictions(
    first: str, second: str, on: Path, columns: str | None, task: str | None, seed: int
) -> tuple[Dataset, Comparison, dict[str, str], dict[str, dict[str, str]]]:
    """The data, the comparison of two folders of mteb, what names the task, and the hashes of the files."""
    from sentfold.data.columns import parse_columns
    from sentfold.data.datasets import read_dataset
    from sentfold.data.tables import unchanged
    from sentfold.decision.comparison import compare_predictions
    from sentfold.decision.mteb import prediction_files, read_predictions

    refuse_odd_names(on, Path(first), Path(second))
    with unchanged(on, Path(first), Path(second)) as read:
        data = read_dataset(on, parse_columns(columns))
        one, two = (read_predictions(Path(name), task) for name in (first, second))
        inputs = {
            name: hash_inputs((on, data.files), (Path(name), prediction_files(Path(name)))) for name in (first, second)
        }
        read.extend([*data.files, *prediction_files(Path(first)), *prediction_files(Path(second))])
    names = (one.model, two.model) if one.model != two.model else (first, second)
    print_notes(data.notes)
    comparison = compare_predictions(data, one, two, names=names, seed=seed)
    return data, comparison, {"task": one.task, "part": f"{one.subset}/{one.split}"}, inputs


def _vectors_or_encoder(name: str) -> tuple[Path | None, str | None]:
    """A file is vectors; a folder, and a name of no file, is an encoder."""
    looks_like_file = Path(name).suffix.lower() in (".npy", ".npz", ".safetensors", ".parquet")
    return (Path(name), None) if Path(name).is_file() or looks_like_file else (None, name)
