"""mteb's files: predictions that it saved are read, item by item, and outcomes are written as its task results.

Read: TASK_predictions.json, which `mteb.evaluate(..., prediction_folder=FOLDER)` writes (mteb 2). It holds no scores
or labels of the data, so these come from the user's file, whose rows are in mteb's order.
Written: `mteb.TaskResult`, in the folders that `mteb.ResultCache(FOLDER)` reads. mteb itself is not imported.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.data.datasets import Dataset, class_name
from sentfold.data.tables import SPLITS, DataError, read_text
from sentfold.decision.inputs import copy_notes, first_copies, task_of
from sentfold.decision.tasks import TOP, LabelsTask, Task, join_cosines, ndcg
from sentfold.files import json_bytes, write_json

Float64 = npt.NDArray[np.float64]

SUFFIX = "_predictions.json"
MODEL = "mteb_model_meta"  # the key of a file of predictions that is no subset
LANGUAGE = "und-Zyyy"  # undetermined, in ISO 639-3 and 15924; mteb finds no score without a language
REVISION = "no_revision_available"  # mteb's words for a model without a revision


@dataclass(frozen=True)
class Predictions:
    """What one model predicted for one part of one task: `content`, as mteb wrote it."""

    model: str
    task: str
    subset: str
    split: str
    content: Any

    @property
    def part(self) -> str:
        """TASK/SUBSET/SPLIT."""
        return f"{self.task}/{self.subset}/{self.split}"


@dataclass(frozen=True)
class PredictedLabels(LabelsTask):
    """Labels that a classifier predicted, fitted by mteb on texts that are not judged here."""

    metric = "accuracy"
    independent = True


# --- reading ------------------------------------------------------------------------------------------


def prediction_files(path: Path) -> list[Path]:
    """The files of predictions of a folder, or the file itself; none for anything else."""
    if path.is_dir():
        return sorted(path.glob(f"[!.]*{SUFFIX}"))
    return [path] if path.name.endswith(SUFFIX) and path.is_file() else []


def read_predictions(path: Path, wanted: str | None = None) -> Predictions:
    """The predictions of one part of a task.

    wanted  TASK, TASK/SUBSET or TASK/SUBSET/SPLIT; needed where the files hold several parts
    Raises DataError unless exactly one part fits.
    """
    task = (wanted or "").partition("/")[0]
    files = [file for file in prediction_files(path) if task in ("", file.name.removesuffix(SUFFIX))]
    found = [part for file in files for part in _read_file(file)]
    fitting = [part for part in found if not wanted or f"{part.part}/".startswith(f"{wanted}/")]
    if len(fitting) != 1:
        held = [part.part for part in found] or [file.name for file in prediction_files(path)]
        raise DataError(
            "predictions of one task are needed", where=str(path), expected=wanted or "one task, subset and split",
            got=", ".join(held[:8]) or "no predictions", remedy="name one: --task TASK/SUBSET/SPLIT",
        )  # fmt: skip
    return fitting[0]


def _read_file(path: Path) -> list[Predictions]:
    text = read_text(path)
    try:
        content = json.loads(text)
        model = str(content[MODEL]["model_name"])
        if not model.isprintable() or model in ("", ".", ".."):  # it becomes the name of a folder
            raise ValueError("a model without a name")
        return [
            Predictions(model, path.name.removesuffix(SUFFIX), subset, split, predicted)
            for subset, splits in content.items()
            if subset != MODEL
            for split, predicted in splits.items()
        ]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(
            "a file holds no predictions of mteb", where=str(path),
            expected=f"{MODEL}, and predictions by subset and split",
            got=f"{type(error).__name__}: {error}",
        ) from None  # fmt: skip


def keep_split(data: Dataset, split: str) -> Dataset:
    """The items of mteb's split, where the data have a column of splits or several files of judgements; else all.

    Raises DataError where that split has no item.
    """
    parts = data.parts or data.splits
    if not parts:
        return data
    kept = [item for item, part in enumerate(parts) if part == SPLITS.get(split, "test")]
    if not kept:
        raise DataError(
            "the data have no item of the split that was predicted", where=data.name, expected=f"items of {split}",
            got=", ".join(sorted(set(parts))),
        )  # fmt: skip
    relevant = tuple(data.relevant[item] for item in kept) if data.relevant else ()
    return replace(data, rows=data.rows[kept], values=data.values[kept], splits=(), parts=(), relevant=relevant)


def predicted_task(data: Dataset) -> tuple[Task, tuple[str, ...]]:
    """The task that predictions are judged by, and notes on copies of texts.

    The task is that of vectors, but labels are judged as they were predicted.
    """
    data = data if data.texts else replace(data, rows=data.numbered_rows)
    copies = first_copies(texts=data.texts) if data.texts else np.arange(int(data.rows.max()) + 1)
    task = task_of(data, copies)[0]
    if isinstance(task, LabelsTask):
        task = PredictedLabels(task.rows, task.labels, task.kin)
    return task, copy_notes(copies, data.texts)


def item_values(found: Predictions, data: Dataset) -> Float64:
    """(m,) value of each item: cosine of a pair, share of right classifiers of a text, nDCG@10 of a query.

    Raises DataError for predictions of another kind, or of other items.
    """
    kinds = {"pairs": _cosines, "labels": _right_classes, "queries": _gains}
    try:
        values = kinds[data.kind](found.content, data)
    except (TypeError, KeyError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(
            f"these are no predictions of {data.kind}", where=found.part, expected=f"predictions for {data.name}",
            got=f"{type(error).__name__}: {error}",
        ) from None  # fmt: skip
    if values.shape != (len(data),) or not np.isfinite(values).all():
        raise DataError(
            "predictions do not fit the data", where=found.part, expected=f"{len(data)} finite values for {data.name}",
            got=f"{values.size} values", remedy="give the rows that mteb judged, all of them and in its order",
        )  # fmt: skip
    return values


def _cosines(content: Any, data: Dataset) -> Float64:
    """Without the last digits, as PairsTask has them."""
    return join_cosines(np.asarray(content["cosine_scores"], dtype=np.float64))


def _right_classes(content: Any, data: Dataset) -> Float64:
    """The mean over mteb's experiments, each a list of classes."""
    names = [data.classes[number] for number in data.values.astype(np.int64)]
    predicted = [[class_name(label) for label in labels] for labels in content]
    counts = {len(labels) for labels in predicted} - {len(names)}
    if counts:
        raise ValueError(f"{min(counts)} labels for {len(names)} texts")
    if not {label for labels in predicted for label in labels} & set(data.classes):
        raise ValueError(f"no label is a class of the data, such as {data.classes[0]}")
    # An array of texts would take the longest text in each place.
    right = [[label == name for label, name in zip(labels, names, strict=True)] for labels in predicted]
    return np.asarray(np.mean(right, axis=0), dtype=np.float64)


def _gains(content: Any, data: Dataset) -> Float64:
    """nDCG@10 of each query. Equal scores are ordered by identifier, descending, as trec_eval orders them."""
    row_of = {name: row for row, name in enumerate(data.names[: len(data.documents)])}
    gains = []
    for row, same, relevant in zip(data.rows, data.values, data.relevant, strict=True):
        run = content[data.names[row]]
        odd = [score for score in run.values() if type(score) not in (int, float) or not np.isfinite(score)]
        if odd:
            raise ValueError(f"a score that is no finite number: {odd[0]!r}")
        best = sorted(run, key=lambda name: (run[name], name), reverse=True)[: TOP + 1]
        found = [row_of[name] for name in best]
        gains.append(ndcg(np.array([place for place in found if place != same][:TOP], dtype=np.int64), relevant))
    return np.array(gains, dtype=np.float64)


# --- writing ------------------------------------------------------------------------------------------


def write_task_results(
    folder: Path,
    task: str,
    scores: Mapping[str, float],
    record: Mapping[str, Any],
    *,
    data: Mapping[str, str],
    part: str = "default/test",
    about: str | None = None,
) -> None:
    """One TaskResult per model, and TASK.MODELS.intervals.json: the record, with all else that is known.

    scores  model -> score x100; record: has the key `metric`
    data    file -> sha256, from which the revision of the data is made; part: mteb's subset and split
    about   the model of the record, if not all
    Raises ArtifactError, and DataError for models whose names would be those of one folder, or where a file is there
    that is not the same: it would be lost, and scores of one model by two procedures do not belong into one table.
    """
    subset, _, split = part.partition("/")
    folders = {model: model.replace("/", "__").replace(" ", "_") for model in scores}
    if len(set(folders.values())) < len(folders):
        raise DataError(
            "two models would be written to one folder", where="--mteb", expected="names that differ by other signs",
            got=", ".join(folders), remedy="rename one of the models",
        )  # fmt: skip
    files = {model: folder / "results" / name / REVISION / f"{task}.json" for model, name in folders.items()}
    revision = hashlib.sha256("\n".join(sorted(data.values())).encode()).hexdigest()
    contents: dict[Path, dict[str, Any]] = {}
    for model, score in scores.items():
        entry = {
            "main_score": round(score / 100, 8),
            "metric": record["metric"],
            "hf_subset": subset,
            "languages": [LANGUAGE],
        }
        result = {
            "dataset_revision": revision,
            "task_name": task,
            "mteb_version": None,  # mteb did not evaluate
            "scores": {split: [entry]},
            "evaluation_time": None,
            "kg_co2_emissions": None,
        }
        contents[files[model]] = result
    own = ".".join(folders.values() if about is None else [folders[about]])
    own = own if len(own.encode()) < 150 else hashlib.sha256(own.encode()).hexdigest()  # a name has at most 255 bytes
    contents[folder / f"{task}.{own}.intervals.json"] = {**record, "dataset_revision": revision, "mteb_version": None}
    for file, content in contents.items():
        if os.path.lexists(file) and not _holds(file, json_bytes(content)):
            raise DataError(
                "another result would be lost", where=str(file), expected="no such file, or the same result",
                state="no result was written", remedy="name another folder: --mteb",
            )  # fmt: skip
    for file, content in contents.items():
        if not file.exists():  # what is there is the same, and may be private
            write_json(file, content)


def _holds(file: Path, content: bytes) -> bool:
    return file.is_file() and file.stat().st_size == len(content) and file.read_bytes() == content
