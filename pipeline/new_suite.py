"""A suite of a user's own file: its corpus, described in the suite's folder, and the spaces of one encoder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.base.params import PARAMS_FILE, load_parameters, read_yaml
from pipeline.base.suite import known_suites, suite_folder
from pipeline.corpora.catalogue import load_catalogue, own_catalogue
from pipeline.lineage.stages import dump_yaml
from pipeline.manifolds import load_block, load_maker
from pipeline.plan import write_plan
from pipeline.stages.knn_graph import GraphParameters
from sentfold.compare.bootstrap import group_design
from sentfold.data.datasets import Dataset, read_dataset
from sentfold.data.tables import DataError
from sentfold.data.words import cut_words, refuse_other_languages, whole_words
from sentfold.decision.inputs import kin_of
from sentfold.errors import ParameterError, SuiteError
from sentfold.files import sha256_of, write_bytes_atomically
from sentfold.manifold.base.grid import SUFFIX
from sentfold.manifold.base.protocol import find_method
from sentfold.measures.base.classifiers import LogisticSettings
from sentfold.measures.registry import evaluate_parameters

MANIFOLDS = ("lp", "pca", "whitening", "abtt")  # of each new suite, unless the user names others
LARGEST_GROUP = 1 / 5  # share of the pairs; above it texts are resampled, as `sentfold decide` does


def write_suite(
    name: str, file: Path, encoder: str, *, columns: Mapping[str, str], manifolds: tuple[str, ...] = MANIFOLDS
) -> tuple[Path, tuple[str, ...]]:
    """Write suites/<name>/: suite.yaml, catalogue.yaml, the data as CSV, plan.yaml and the link to dvc.yaml.

    file       pairs with scores, or texts with labels, as `sentfold decide` reads them
    encoder    a block of encoders: or word_encoders: in params.yaml, or the name of the model behind one
    columns    role -> column; the others by their names
    manifolds  blocks of manifolds: in params.yaml
    Returns the suite's folder, and what is odd about the data, in words. For an encoder over word
    vectors the texts are written with composed letters. Raises DataError, SuiteError or ParameterError; then nothing
    is written.
    """
    _refuse_taken(name)
    params = read_yaml(PARAMS_FILE)
    block = find_encoder(encoder, params)
    if grids := [manifold for manifold in manifolds if load_block(manifold).is_grid]:
        raise ParameterError(
            "a grid of parameters is chosen on development data, which a suite of one file does not have",
            where="--manifolds", expected="blocks with one value for each parameter", got=", ".join(grids),
            remedy="`sentfold decide` chooses by cross-validation",
        )  # fmt: skip
    data = read_dataset(file, columns)
    by_words = (params.get("word_encoders") or {}).get(block)
    if by_words:
        texts = whole_words(data.texts, by_words["tokenizer"])
        first = {text: row for row, text in reversed([*enumerate(texts)])}
        data = replace(data, texts=tuple(texts), rows=np.array([first[text] for text in texts])[data.rows])
    task, frame, notes = tabulate(data)
    if task == "classification":
        _refuse_rare_classes(data, frame)
    columns_of_texts = [name for name in ("text", "sentence1", "sentence2") if name in frame.columns]
    texts = pl.concat([frame[name].rename("text") for name in columns_of_texts]).unique().to_list()
    if by_words:
        refuse_other_languages(texts, by_words["tokenizer"])
        notes += [f"{count} {what}" for what, count in cut_words(texts, by_words["tokenizer"]).items()]
    sentences = len(texts)
    fitting = [manifold for manifold in manifolds if _fits(manifold, sentences)]
    if left := ", ".join(manifold for manifold in manifolds if manifold not in fitting):
        sizes = f"add blocks with smaller sizes to manifolds: in {PARAMS_FILE}, and to suite.yaml"
        notes.append(f"{sentences} distinct sentences are too few for {left}; {sizes}")
    folder = suite_folder(name)
    written = {
        "suite": name,
        "source": "package",
        "corpora": [name],
        "spaces": [block, *(f"{block}-{manifold}" for manifold in fitting)],
    }
    try:
        folder.mkdir(parents=True)  # another command can have taken the name since
    except FileExistsError:
        _refuse_taken(name)
    except OSError:
        pass  # the first file says why it cannot be written
    try:
        for split, part in frame.group_by("split", maintain_order=True):
            write_bytes_atomically(folder / name / f"{split[0]}.csv", part.drop("split").write_csv().encode())
        _write_yaml(own_catalogue(name), {name: _describe(name, file, task, data, frame)})
        _write_yaml(folder / "suite.yaml", written)
        write_plan(name)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder, (*data.notes, *notes)


def find_encoder(name: str, params: Mapping[str, Any]) -> str:
    """The block of params.yaml that is called `name`, or whose model has that name.

    Raises ParameterError.
    """
    models: Mapping[str, Any] = params.get("encoders") or {}
    words: Mapping[str, Any] = params.get("word_encoders") or {}
    if name in models or name in words:
        return name
    for block, model in models.items():
        source = str(model.get("hub") or model.get("package")).lower()
        if name.lower() in (source, source.rpartition("/")[2], source.removeprefix("gt-")):
            return str(block)
    raise ParameterError(
        f"{PARAMS_FILE} has no encoder '{name}'",
        where="--encoder",
        expected=f"one of: {', '.join([*models, *words])}",
        got=name,
        remedy=f"correct the name, or add a block to encoders: in {PARAMS_FILE} (`sentfold pin-encoder` pins it)",
    )


def tabulate(data: Dataset) -> tuple[str, pl.DataFrame, list[str]]:
    """The task of a user's data, its items in the columns of the task and `split`, and what was left out, in words.

    Raises DataError for data that no task of a suite scores.
    """
    texts = np.array(data.texts, dtype=object)
    if data.kind == "labels":
        frame = pl.DataFrame({"text": texts[data.rows].tolist(), "label": data.values.astype(int)})
        frame = frame.with_columns(split=pl.Series(data.splits or ["all"] * len(data)))
        return "classification", *_drop_copies(data, frame)
    if data.kind != "pairs" or not data.texts:
        raise DataError(
            "a suite cannot score this data",
            where=data.name,
            expected="pairs of texts with scores, or texts with labels",
            got="pairs of rows of vectors" if data.kind == "pairs" else data.kind,
            remedy="`sentfold decide` takes it",
        )
    frame = pl.DataFrame({
        "sentence1": texts[data.rows[:, 0]].tolist(), "sentence2": texts[data.rows[:, 1]].tolist(),
        "score": data.values, "subset": [""] * len(data), "split": ["all"] * len(data),
    })  # fmt: skip
    notes = ["the parts of the split are one corpus: nothing is trained"] if data.splits else []
    kept, _ = _independent_pairs(data)
    if left_out := len(frame) - len(kept):
        notes.append(f"{left_out} pairs have texts of earlier ones but for case, punctuation and blanks: left out")
    return "similarity", frame[kept.tolist()], notes


def _independent_pairs(data: Dataset) -> tuple[npt.NDArray[np.int64], str]:
    """The pairs that a suite takes, and what its bootstrap draws: groups of pairs that share texts, or texts.

    Texts are drawn where one group holds too many pairs. A suite knows a text by its letters, and would take each form
    of it as a text of its own. So pairs are left out that would bring a form of a text into another group; where texts
    are drawn, all pairs with another form than the first. Raises DataError. Cost O(m).
    """
    kin = kin_of(np.arange(len(data.texts)), data.texts)
    kept = _joined_forms(data.rows, kin)
    group = group_design(data.rows[kept], [""] * len(kept)).members
    if np.bincount(group).max() <= LARGEST_GROUP * len(kept):
        return kept, "groups"
    rows = data.rows[kept]
    first = np.full(len(kin), len(kin))
    np.minimum.at(first, kin[rows], rows)
    kept = kept[(first[kin[rows]] == rows).all(axis=1)]
    if not len(kept):
        raise DataError(
            "all pairs have a text in two forms", where=data.name,
            expected="texts that differ in more than case, punctuation and blanks", got=f"{len(rows)} pairs",
            remedy="`sentfold decide` takes the file as it is",
        )  # fmt: skip
    return kept, "texts"


def _joined_forms(rows: npt.NDArray[np.int64], kin: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The pairs, taken in their order, but for those that would leave two forms of one text in two groups."""
    above, shown, kept = list(range(len(kin))), dict[int, int](), list[int]()

    def group_of(text: int) -> int:
        while above[text] != text:
            above[text] = text = above[above[text]]
        return text

    for number, pair in enumerate(rows.tolist()):
        left, right = map(group_of, pair)
        forms = kin[pair].tolist()
        if {group_of(shown.get(form, text)) for form, text in zip(forms, pair, strict=True)} <= {left, right}:
            above[left] = right
            shown |= dict(zip(forms, pair, strict=True))
            kept.append(number)
    return np.array(kept, dtype=np.int64)


def _drop_copies(data: Dataset, frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Each labelled text once, of the test part if it has the text; and how many are left out, in words.

    Folds and resamples of a suite take texts as independent: a copy would be learnt in one fold and judged in another.
    Raises DataError where a part has copies of texts of test alone.
    """
    kin = kin_of(np.arange(len(data.texts)), data.texts)[data.rows]
    test_first = np.argsort(np.array(frame["split"] != "test"), kind="stable")
    firsts = test_first[np.unique(kin[test_first], return_index=True)[1]]
    kept = frame[np.sort(firsts).tolist()]
    if set(kept["split"]) != set(frame["split"]):
        raise DataError(
            "a part has no text that the test part lacks", where=data.name, expected="parts of different texts",
            got=", ".join(sorted(set(frame["split"]))), remedy="make the parts anew",
        )  # fmt: skip
    label_of = dict(zip(kin[firsts].tolist(), frame["label"][firsts.tolist()], strict=True))
    other = sum(label_of[text] != label for text, label in zip(kin.tolist(), frame["label"], strict=True))
    note = f"{len(frame) - len(kept)} texts are those of others but for case, punctuation and blanks, and are left out"
    return kept, [f"{note} ({other} have another label)"] * (len(kept) < len(frame))


def _fits(manifold: str, sentences: int) -> bool:
    """Whether a manifold has fewer dimensions, neighbours and landmarks than there are sentences."""
    block = load_block(manifold)
    # The graph has so many neighbours for every manifold, however few of them this one reads.
    in_graph = load_parameters(GraphParameters, "knn_graph").neighbors
    if find_method(block.method.removesuffix(SUFFIX)).READS != "vectors" and in_graph >= sentences:
        return False
    settings = load_maker(manifold).settings
    return all(getattr(settings, size, 0) <= sentences - 2 for size in ("components", "neighbors", "landmarks"))


def _refuse_rare_classes(data: Dataset, frame: pl.DataFrame) -> None:
    """Raise DataError if a class has too few texts for the folds in which `evaluate` chooses a strength."""
    read = load_parameters(evaluate_parameters(), "evaluate").model_dump(include={"folds", "inner_folds"})
    settings = LogisticSettings(**read)
    splits = set(frame["split"].to_list())
    if frame["label"].n_unique() < 2:
        raise DataError(
            "all texts that a suite would have are of one class", where=data.name, expected="two classes or more",
            got=f"{len(frame)} texts of {data.classes[frame['label'][0]]}",
            remedy="texts that are others but for case, punctuation and blanks take the label of the first",
        )  # fmt: skip
    parted = {"train", "test"} <= splits
    if parted and "dev" in splits:
        return  # which chooses the strength
    fitted = frame.filter(pl.col("split") != "test") if parted else frame
    # Without parts, an outer fold takes its share of a class before the inner folds are made.
    needed = settings.inner_folds
    if not parted:
        needed = next(n for n in count(settings.folds) if n - -(-n // settings.folds) >= settings.inner_folds)
    texts = np.bincount(fitted["label"].to_numpy(), minlength=len(data.classes))
    rare = [f"{data.classes[label]}: {texts[label]}" for label in np.flatnonzero((texts > 0) & (texts < needed))]
    if rare:
        raise DataError(
            "a class has too few texts to be learnt in folds",
            where=data.name,
            expected=f"{needed} texts or more of each class{' outside of test' if parted else ''}",
            got=", ".join(rare[:10]) + (", ..." if len(rare) > 10 else ""),
            remedy="join rare classes or leave their texts out; `sentfold decide` takes the file as it is",
        )


BENCHMARKS = "benchmarks"  # the folder of measured times among the reports


def _refuse_taken(name: str) -> None:
    taken = {*known_suites(), *(corpus for dataset in load_catalogue().values() for corpus in dataset.corpora)}
    folders = [suite_folder(name), Path("data") / name, Path("reports") / name]  # a run replaces files in the last two
    there = [folder for folder in folders if os.path.lexists(folder)]
    if name in taken or name == BENCHMARKS or there:
        own = (suite_folder(name) / "catalogue.yaml").is_file()  # a suite that this command wrote
        again = f", or move {' and '.join(map(str, there))} away" if own or name not in taken else ""
        raise SuiteError(
            f"the name '{name}' is taken",
            where=str(there[0] if there else suite_folder(name)),
            expected="a name that no suite and no corpus of the catalogue has",
            got=name,
            remedy=f"choose another name{again}",
        )


def _describe(name: str, file: Path, task: str, data: Dataset, frame: pl.DataFrame) -> dict[str, Any]:
    """The block of the suite's own catalogue."""
    splits = {str(split): len(part) for (split,), part in frame.group_by("split", maintain_order=True)}
    classes = f"; labels: {', '.join(f'{i} = {label}' for i, label in enumerate(data.classes))}" if data.classes else ""
    origin = f" sha256 {sha256_of(file)}" if file.is_file() else ""
    return {
        "task": task,
        "title": f"{name}, the user's own data",
        "citation": f"{file.name}{origin}",
        "licence": "not stated",
        "splits": splits,
        "corpora": {name: list(splits)},
        "resample": _independent_pairs(data)[1] if task == "similarity" else "items",
        "text": f"as in {file.name}; rows with an empty text are left out{classes}",
        "folder": str(suite_folder(name) / name),
    }


def _write_yaml(path: Path, content: dict[str, Any]) -> None:
    write_bytes_atomically(path, dump_yaml(content).encode())
