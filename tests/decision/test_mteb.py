"""mteb's predictions give the intervals that the vectors give, and what is written is what mteb's own package reads."""

from __future__ import annotations

import json
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sentfold.cli import compare
from sentfold.data.datasets import Dataset, read_dataset
from sentfold.data.tables import DataError
from sentfold.decision.comparison import compare_predictions, compare_vectors
from sentfold.decision.mteb import item_values, read_predictions, write_task_results
from sentfold.errors import EncoderError
from sentfold.files import write_json

RNG = np.random.default_rng(3)
TEXTS = tuple(f"text {row}" for row in range(120))
X = RNG.normal(size=(120, 8))
Y = X + 0.7 * RNG.normal(size=X.shape)
ABSENT = "mteb is not installed: pip install 'sentfold[mteb]'"


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.fixture
def pairs() -> Dataset:
    rows = np.arange(120).reshape(2, 60).T
    scores = (unit(X)[rows[:, 0]] * unit(X)[rows[:, 1]]).sum(axis=1) + 0.1 * RNG.normal(size=60)
    return Dataset("pairs", "pairs", TEXTS, rows, scores)


@pytest.fixture
def queries() -> Dataset:
    """40 queries over 80 documents; the first 10 queries have the identifiers of documents."""
    names = (*(f"d{row}" for row in range(80)), *(f"d{row}" if row < 10 else f"q{row}" for row in range(40)))
    relevant = tuple({row: 2.0, 79 - row: 1.0} for row in range(40))
    same = np.where(np.arange(40) < 10, np.arange(40), -1).astype(float)
    return Dataset(
        "beir", "queries", TEXTS, np.arange(80, 120), same, documents=np.arange(80), relevant=relevant, names=names
    )


def saved(folder: Path, model: str, content: Any, *, task: str = "Own") -> Path:
    """A file as mteb writes it."""
    meta = {"model_name": model, "revision": "1"}
    write_json(folder / model / f"{task}_predictions.json", {"mteb_model_meta": meta, "default": {"test": content}})
    return folder / model


def predicted(x: np.ndarray, data: Dataset) -> Any:
    """What mteb saves of a model with these vectors."""
    if data.kind == "pairs":
        return {"cosine_scores": (unit(x)[data.rows[:, 0]] * unit(x)[data.rows[:, 1]]).sum(axis=1).tolist()}
    similar = unit(x)[data.rows] @ unit(x)[data.documents].T
    return {
        data.names[row]: {data.names[place]: float(similar[query, place]) for place in data.documents}
        for query, row in enumerate(data.rows)
    }


@pytest.mark.parametrize("kind", ["pairs", "queries"])
def test_predictions_give_the_comparison_that_the_vectors_give(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    data: Dataset = request.getfixturevalue(kind)
    one, two = (read_predictions(saved(tmp_path, name, predicted(x, data))) for name, x in (("x", X), ("y", Y)))
    by_vectors = compare_vectors(data, X, Y, names=("x", "y"))
    assert compare_predictions(data, one, two).to_json() == by_vectors.to_json()
    assert by_vectors.low < by_vectors.difference < by_vectors.high


def test_a_text_counts_by_the_share_of_experiments_that_class_it_right(tmp_path: Path) -> None:
    classes = RNG.integers(0, 2, 120)
    data = Dataset("texts", "labels", TEXTS, np.arange(120), classes.astype(float), classes=("0", "1"))
    wrong = [np.where(np.arange(120) % 10 == experiment, 1 - classes, classes).tolist() for experiment in range(4)]
    one = read_predictions(saved(tmp_path, "x", wrong))
    two = read_predictions(saved(tmp_path, "y", [classes.tolist()] * 4))
    assert item_values(one, data)[:12] == pytest.approx([0.75] * 4 + [1] * 6 + [0.75] * 2)
    found = compare_predictions(data, one, two)
    assert found.metric == "accuracy"
    assert found.scores == pytest.approx((90, 100))


def test_forms_of_a_text_are_one_group_of_predicted_labels(tmp_path: Path) -> None:
    """As for vectors: a model answers the forms of a question alike, so three forms tell as much as one."""
    texts = (*TEXTS[:30], *(text.upper() for text in TEXTS[:30]), *(f"{text} !" for text in TEXTS[:30]))
    classes = np.tile(RNG.integers(0, 2, 30), 3)
    data = Dataset("texts", "labels", texts, np.arange(90), classes.astype(float), classes=("0", "1"))
    two = [np.where(np.arange(90) % 30 < 8, 1 - classes, classes).tolist()]
    one, two = (read_predictions(saved(tmp_path, *named)) for named in (("x", [classes.tolist()]), ("y", two)))
    found = compare_predictions(data, one, two)
    once = compare_predictions(replace(data, rows=data.rows[:30], values=data.values[:30]), *(
        read_predictions(saved(tmp_path, name, [part.content[0][:30]])) for name, part in (("v", one), ("w", two))
    ))  # fmt: skip
    assert found.groups == once.groups == 30
    assert (found.low, found.high) == pytest.approx((once.low, once.high))
    assert any("60 texts differ from an earlier one" in note for note in found.notes)


def test_a_split_column_leaves_the_items_that_mteb_judged(pairs: Dataset, tmp_path: Path) -> None:
    splits = tuple("test" if item % 2 else "train" for item in range(60))
    kept = np.arange(1, 60, 2)
    half = replace(pairs, rows=pairs.rows[kept], values=pairs.values[kept])
    one, two = (read_predictions(saved(tmp_path, name, predicted(x, half))) for name, x in (("x", X), ("y", Y)))
    whole = compare_predictions(replace(pairs, splits=splits), one, two)
    assert whole == compare_predictions(half, one, two)
    assert whole.items == 30


def test_judgements_of_dev_and_test_leave_the_queries_that_mteb_judged(queries: Dataset, tmp_path: Path) -> None:
    """As BEIR's Quora and DBpedia have them: no part is called train, so all queries are judged otherwise."""
    kept = np.arange(0, 40, 2)
    half = replace(queries, rows=queries.rows[kept], values=queries.values[kept], relevant=queries.relevant[::2])
    one, two = (read_predictions(saved(tmp_path, name, predicted(x, half))) for name, x in (("x", X), ("y", Y)))
    whole = compare_predictions(replace(queries, parts=("test", "dev") * 20), one, two)
    assert whole == compare_predictions(half, one, two)
    assert compare_vectors(replace(queries, parts=("test", "dev") * 20), X, Y) == compare_vectors(queries, X, Y)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ({"cosine_scores": [0.5] * 59}, "59 values"),
        ({"cosine_scores": [float("nan")] * 60}, "60 finite values"),
        ({"cosine_scores": [10**400] * 60}, "no predictions of pairs"),
        ({"dot_scores": [0.5] * 60}, "KeyError: 'cosine_scores'"),
        ([["0"] * 60], "no predictions of pairs"),
    ],
)
def test_predictions_of_other_items_are_refused(content: Any, named: str, pairs: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "Own_predictions.json"
    meta = {"model_name": "x", "revision": "1"}
    path.write_text(json.dumps({"mteb_model_meta": meta, "default": {"test": content}}))
    with pytest.raises(DataError, match=named):
        item_values(read_predictions(path), pairs)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ([["0"]], "1 labels for 120 texts"),
        ([["cat"] * 120], "no label is a class of the data"),
        ([["0"] * 120, ["1"] * 119], "119 labels"),
    ],
)
def test_labels_of_other_texts_or_classes_are_refused(content: Any, named: str, tmp_path: Path) -> None:
    data = Dataset("texts", "labels", TEXTS, np.arange(120), np.arange(120) % 2.0, classes=("0", "1"))
    with pytest.raises(DataError, match=named):
        item_values(read_predictions(saved(tmp_path, "x", content)), data)


def test_a_label_that_mteb_wrote_as_a_float_is_the_class_of_its_whole_number(tmp_path: Path) -> None:
    data = Dataset("texts", "labels", TEXTS, np.arange(120), np.arange(120) % 2.0, classes=("0", "1"))
    found = item_values(read_predictions(saved(tmp_path, "x", [[0.0] * 120])), data)
    assert found.tolist() == [1.0, 0.0] * 60


@pytest.mark.parametrize("score", [float("nan"), "0.9", True, None])
def test_a_run_with_a_score_that_is_no_number_is_refused(score: Any, queries: Dataset, tmp_path: Path) -> None:
    run = predicted(X, queries)
    run["q20"]["d3"] = score
    path = tmp_path / "Own_predictions.json"
    path.write_text(json.dumps({"mteb_model_meta": {"model_name": "x"}, "default": {"test": run}}))
    with pytest.raises(DataError) as refused:
        item_values(read_predictions(path), queries)
    assert "no finite number" in refused.value.got


def test_a_split_without_items_is_refused(pairs: Dataset, tmp_path: Path) -> None:
    path = saved(tmp_path, "x", predicted(X, pairs)) / "Own_predictions.json"
    path.write_text(path.read_text().replace('"test"', '"validation"'))
    one = read_predictions(path)
    with pytest.raises(DataError, match="no item of the split"):
        compare_predictions(replace(pairs, splits=("train", "test") * 30), one, one)


@pytest.mark.parametrize("name", ["..", "", "a\0b", "a\nb"])
def test_a_model_whose_name_can_name_no_folder_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "Own_predictions.json"
    path.write_text(json.dumps({"mteb_model_meta": {"model_name": name}, "default": {"test": {"cosine_scores": [1]}}}))
    with pytest.raises(DataError, match="holds no predictions of mteb"):
        read_predictions(path)


def test_pairs_that_name_far_rows_take_no_memory_for_the_rows_between(pairs: Dataset, tmp_path: Path) -> None:
    far = replace(pairs, texts=(), rows=pairs.rows + 10**17 * (pairs.rows > 5))
    one, two = (read_predictions(saved(tmp_path, name, predicted(x, pairs))) for name, x in (("x", X), ("y", Y)))
    assert compare_predictions(far, one, two).to_json() == compare_predictions(pairs, one, two).to_json()


def test_predictions_do_not_take_the_place_of_an_installed_model(
    pairs: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("wordllama", "all-MiniLM-L6-v2", "usif", "sif"):
        saved(tmp_path, name, predicted(X, pairs))
    with pytest.raises(EncoderError, match="a folder here and an installed package are both called"):
        compare.command("wordllama", "all-MiniLM-L6-v2", on=tmp_path / "pairs.csv")
    with pytest.raises(EncoderError, match="a folder here and a method are both called"):
        compare.command("usif", "sif", on=tmp_path / "pairs.csv")


def test_one_of_several_tasks_has_to_be_named(pairs: Dataset, tmp_path: Path) -> None:
    for task in ("Own", "Other"):
        folder = saved(tmp_path, "x", predicted(X, pairs), task=task)
    assert read_predictions(folder, "Own").part == "Own/default/test"
    assert read_predictions(folder, "Other/default/test").task == "Other"
    for wanted in (None, "Own/default/dev", "Ow"):
        with pytest.raises(DataError, match="--task TASK/SUBSET/SPLIT"):
            read_predictions(folder, wanted)
    (folder / "Own_predictions.json").write_text("[1]")
    with pytest.raises(DataError, match="holds no predictions of mteb"):
        read_predictions(folder, "Own")


def test_mteb_reads_what_is_written(tmp_path: Path) -> None:
    mteb = pytest.importorskip("mteb", reason=ABSENT)
    record = {"metric": "Spearman of cosine", "difference": 1.5, "low": 0.5, "high": 2.5}
    write_task_results(tmp_path, "own", {"org/a b": 50.0, "c": 51.5}, record, data={"pairs.csv": "00"}, part="en/test")
    cache = mteb.ResultCache(tmp_path)
    results = cache.load_results(require_model_meta=False, include_remote=False)
    scores = {one.model_name: [task.get_score() for task in one.task_results] for one in results.model_results}
    assert scores == {"org/a_b": [0.5], "c": [0.515]}
    path = tmp_path / "results" / "c" / "no_revision_available" / "own.json"
    result = mteb.TaskResult.from_disk(path, load_historic_data=False)
    assert (result.task_name, result.eval_splits, result.hf_subsets) == ("own", ["test"], ["en"])
    assert json.loads((tmp_path / "own.org__a_b.c.intervals.json").read_text()) == record


class ByTable:
    """An encoder that mteb takes: the vectors of TEXTS."""

    def __init__(self, mteb: Any, name: str, x: np.ndarray) -> None:
        meta = mteb.get_model_meta("mteb/baseline-random-encoder")
        self.mteb_model_meta = meta.model_copy(update={"name": name, "revision": "1"})
        self.row, self.x = {text: row for row, text in enumerate(TEXTS)}, x.astype(np.float32)

    def encode(self, inputs: Any, **_: Any) -> np.ndarray:
        return self.x[[self.row[text.strip()] for batch in inputs for text in batch["text"]]]

    def similarity(self, one: Any, two: Any) -> Any:
        from mteb.similarity_functions import cos_sim

        return cos_sim(one, two)

    def similarity_pairwise(self, one: Any, two: Any) -> Any:
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(one, two)


def own_task(data: Dataset) -> Any:
    """The data as a task of mteb."""
    from datasets import Dataset as Rows
    from datasets import DatasetDict
    from mteb.mocks.mock_tasks import MockRetrievalTask, MockSTSTask

    if data.kind == "pairs":
        task = MockSTSTask()
        left, right = ([TEXTS[row] for row in data.rows[:, side]] for side in (0, 1))
        columns = {"sentence1": left, "sentence2": right, "score": data.values.tolist()}
        task.dataset = DatasetDict(test=Rows.from_dict(columns))
    else:
        task = MockRetrievalTask()
        task._eval_splits = ["test"]
        texts = [{"id": name, "title": "", "text": text} for name, text in zip(data.names, TEXTS, strict=True)]
        judged = [{data.names[row]: int(grade) for row, grade in grades.items()} for grades in data.relevant]
        task.dataset = {
            "default": {
                "test": {
                    "corpus": Rows.from_list(texts[:80]),
                    "queries": Rows.from_list([{"id": text["id"], "text": text["text"]} for text in texts[80:]]),
                    "relevant_docs": dict(zip(data.names[80:], judged, strict=True)),
                    "top_ranked": None,
                }
            }
        }
    task.data_loaded = True
    return task


@pytest.mark.parametrize("kind", ["pairs", "queries"])
def test_what_mteb_itself_saves_gives_the_comparison_that_the_vectors_give(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    mteb = pytest.importorskip("mteb", reason=ABSENT)
    data: Dataset = request.getfixturevalue(kind)
    for name, x in (("x", X), ("y", Y)):
        model = ByTable(mteb, f"own/{name}", x)
        mteb.evaluate(model, own_task(data), prediction_folder=tmp_path / name, cache=None, co2_tracker=False)
    found = compare_predictions(data, *(read_predictions(tmp_path / name) for name in ("x", "y")))
    expected = compare_vectors(data, X, Y)
    assert found.names == ("own/x", "own/y")
    # mteb's cosines are float32: a pair or a document may change its place by one.
    assert found.scores == pytest.approx(expected.scores, abs=0.05)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.1)


def test_models_whose_names_give_one_folder_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="one folder"):
        write_task_results(tmp_path, "own", {"org/a": 1.0, "org__a": 2.0}, {"metric": "accuracy"}, data={})
    assert not list(tmp_path.iterdir())


def test_a_result_that_mteb_wrote_is_not_lost(tmp_path: Path) -> None:
    scores, record = {"a": 50.0, "b": 51.5}, {"metric": "accuracy"}
    for _ in range(2):  # its own results may be written again, and stay private
        write_task_results(tmp_path, "own", scores, record, data={})
        files = [file for file in tmp_path.rglob("*") if file.is_file()]
        modes = {file.stat().st_mode & 0o777 for file in files}
        for file in files:
            file.chmod(0o600)
    assert modes == {0o600}
    path = tmp_path / "results/b/no_revision_available/own.json"
    content = json.loads(path.read_text()) | {"mteb_version": "2.1.0"}
    path.write_text(json.dumps(content))
    (tmp_path / "results/a/no_revision_available/own.json").unlink()
    with pytest.raises(DataError, match="another result would be lost"):
        write_task_results(tmp_path, "own", scores, record, data={})
    assert json.loads(path.read_text()) == content
    assert not (tmp_path / "results/a/no_revision_available/own.json").exists(), "nothing at all was written"


def test_results_of_other_data_or_of_another_procedure_are_not_lost_and_those_of_other_models_stand_beside(
    tmp_path: Path,
) -> None:
    """`decide` judges in folds, and `compare` on all items: in one table, the poorer model could come first."""
    here = {"a/test.csv": "1"}
    for _ in range(2):  # the same again changes nothing
        write_task_results(tmp_path, "test", {"a": 50.0, "b": 40.0}, {"metric": "accuracy"}, data=here)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.json")}
    for scores, data in (
        ({"a": 50.0, "b": 40.0}, {"b/test.csv": "2"}),
        ({"a": 30.0}, here),
        ({"c": 9.0, "b": 1.0}, here),
    ):
        with pytest.raises(DataError, match="another result would be lost"):
            write_task_results(tmp_path, "test", scores, {"metric": "accuracy"}, data=data)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*.json")} == before
    write_task_results(tmp_path, "test", {"a": 50.0, "c": 60.0}, {"metric": "accuracy"}, data=here)
    write_task_results(tmp_path, "test", {"d": 1.0, "d + pca": 2.0}, {"metric": "accuracy"}, data=here, about="d")
    assert {file.name for file in tmp_path.glob("*.json")} == {
        "test.a.b.intervals.json", "test.a.c.intervals.json", "test.d.intervals.json",
    }  # fmt: skip
    write_task_results(tmp_path, "test", {"e" * 200: 1.0}, {"metric": "accuracy"}, data=here)


def test_a_result_that_is_a_pipe_or_a_file_of_holes_is_refused_unread(pairs: Dataset, tmp_path: Path) -> None:
    record = {"metric": "spearman"}
    place = tmp_path / "Own.one.intervals.json"
    os.mkfifo(place)
    with pytest.raises(DataError, match="would be lost"):
        write_task_results(tmp_path, "Own", {"one": 50.0}, record, data={"p.csv": "0"})
    place.unlink()
    place.touch()
    os.truncate(place, 1 << 40)
    with pytest.raises(DataError, match="would be lost"):
        write_task_results(tmp_path, "Own", {"one": 50.0}, record, data={"p.csv": "0"})


def test_a_label_of_a_million_letters_takes_its_letters_once(tmp_path: Path) -> None:
    """numpy makes each text of an array as long as the longest: 5 GB of a file of a megabyte."""
    (tmp_path / "l.csv").write_text("text,label\n" + "".join(f"text {n},{'ab'[n % 2]}\n" for n in range(200)))
    data = read_dataset(tmp_path / "l.csv")
    labels = ["x" * 1_000_000, *("ab"[n % 2] for n in range(1, 200))]
    found = read_predictions(saved(tmp_path, "one", [labels]))
    tracemalloc.start()
    values = item_values(found, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert values.tolist() == [0.0, *[1.0] * 199]
    assert peak < 50_000_000
