"""A sweep and its space on made-up corpora: what the choice depends on, and what it does not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from pipeline.base.artifacts import (
    absence,
    corpus_path,
    kind_of,
    read_record,
    read_vectors,
    space_path,
    write_table,
    write_vectors,
)
from pipeline.base.suite import Suite
from pipeline.manifolds import sweep_folder
from pipeline.stages.knn_graph import knn_graph
from pipeline.stages.selected import selected
from pipeline.stages.sweep import scored_elsewhere, sweep
from sentfold.errors import ArtifactError, SuiteError
from sentfold.files import sha256_of

ROOT = Path(__file__).parents[2]

GRIDS = {
    "lp-selected": {
        "method": "lle-selected", "neighbors": [8, 12], "regularization": [0.01], "components": [4, 16, 90],
        "scaling": ["unit", "quarter"],
    },
    "smooth-selected": {"method": "smooth-selected", "neighbors": [5, 12], "amount": [-0.2, 0.3]},
}  # fmt: skip
CORPORA = ("dev", "test", "tiny")
SUITE = Suite(
    suite="made",
    root="../..",
    file="suites/made/plan.yaml",
    written="suites/made/suite.yaml",
    parent="suites/made/suite.yaml",
    counted="",
    source="package",
    skip_missing=False,
    counts="own",
    development="dev",
    baseline=None,
    corpora=CORPORA,
    wordless=(),
    spaces=("minilm", *(f"minilm-{name}" for name in GRIDS)),
    blanks={},
    sensitivities=(),
    paths={},
    stages={},
)


def write_texts(name: str, texts: list[str]) -> None:
    path, notes = corpus_path("made", name, "sentences"), {"corpus": name, "sentences": len(texts)}
    write_table(path, pa.table({"text": texts}), kind="sentences", parameters={}, notes=notes)


def write_corpus(name: str, n: int, seed: int, *, score_seed: int | None = None) -> None:
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((n, 5))
    x = hidden @ rng.standard_normal((5, 24)) + 0.8 * rng.standard_normal((n, 24))
    pairs = rng.permutation(n)[: n // 2 * 2].reshape(-1, 2)
    human = np.einsum("ij,ij->i", hidden[pairs[:, 0]], hidden[pairs[:, 1]])
    if score_seed is not None:
        human = np.random.default_rng(score_seed).permutation(human)
    items = {
        "row1": pairs[:, 0].astype(np.int32), "row2": pairs[:, 1].astype(np.int32), "score": human,
        "subset": pa.array([""] * len(pairs)), "split": pa.array(["test"] * len(pairs)),
    }  # fmt: skip
    notes = {"corpus": name, "resample": "items", "task": "similarity", "sentences": n}
    write_texts(name, [f"{name} {number}" for number in range(n)])
    path = corpus_path("made", name, "items")
    write_table(path, pa.table(items), kind="items.similarity", parameters={}, notes=notes)
    write_vectors(space_path("made", "minilm", name), x.astype(np.float32), parameters={}, notes=notes)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three corpora in one space with their graphs, the last too small for the larger points."""
    monkeypatch.chdir(tmp_path)
    content = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    content["manifolds"] = GRIDS
    content["knn_graph"]["neighbors"] = 12
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    for name, n, seed in (("dev", 150, 0), ("test", 140, 1), ("tiny", 20, 2)):
        write_corpus(name, n, seed)
    knn_graph("made", "minilm", CORPORA)
    return tmp_path


def made_files(selection: str) -> dict[str, str]:
    """sha256 of what the choice and its spaces are, the oracle left out."""
    choice = sweep_folder("made", "minilm", selection)
    files = [choice / "selected.json", choice / "surface.json"]
    files += [space_path("made", f"minilm-{selection}", corpus) for corpus in CORPORA]
    return {path.name: sha256_of(path) for path in files}


def run(selection: str) -> dict[str, str]:
    sweep(SUITE, "minilm", selection)
    selected("made", "minilm", selection, CORPORA)
    return made_files(selection)


@pytest.mark.parametrize("selection", GRIDS)
def test_changing_the_test_sets_scores_leaves_every_byte_of_the_choice_and_of_its_spaces(
    folder: Path, selection: str
) -> None:
    before = run(selection)
    oracle = (sweep_folder("made", "minilm", selection) / "oracle.json").read_bytes()
    write_corpus("test", 140, 1, score_seed=7)
    assert run(selection) == before
    assert (sweep_folder("made", "minilm", selection) / "oracle.json").read_bytes() != oracle


@pytest.fixture
def shared(folder: Path) -> list[int]:
    """Pairs of `dev` whose texts `test` scores too, in other letters and in the other order."""
    dev, test = (pq.read_table(corpus_path("made", name, "items")).to_pydict() for name in ("dev", "test"))
    texts, pairs = [f"test {number}" for number in range(140)], list(range(40))
    for number in pairs:
        texts[test["row1"][number]] = f"  DEV {dev['row2'][number]}."
        texts[test["row2"][number]] = f"Dev {dev['row1'][number]}!"
    write_texts("test", texts)
    return pairs


def read_scores(corpus: str) -> np.ndarray:
    return pq.read_table(corpus_path("made", corpus, "items"))["score"].to_numpy().copy()


def change_items(corpus: str, column: str, values: Any, kind: str = "items.similarity") -> None:
    path = corpus_path("made", corpus, "items")
    table, notes = pq.read_table(path).replace_schema_metadata(None), read_record(path, kind=kind_of(path))["notes"]
    table = table.set_column(table.column_names.index(column), column, pa.array(values))
    write_table(path, table, kind=kind, parameters={}, notes=notes)


def test_pairs_that_a_test_corpus_scores_choose_nothing(folder: Path, shared: list[int]) -> None:
    def change_scores(scores: np.ndarray) -> tuple[dict[str, str], list[float], list[float]]:
        change_items("dev", "score", scores)
        files = run("lp-selected")
        surface = json.loads((choice / "surface.json").read_text())
        del files["surface.json"]
        files["leads"] = str(surface["leads"])
        values, choosing = ([point[name] for point in surface["points"]] for name in ("value", "choosing"))
        return files, values, choosing

    choice, scores = sweep_folder("made", "minilm", "lp-selected"), read_scores("dev")
    before, values, choosing = change_scores(scores)
    found = json.loads((choice / "selected.json").read_text())
    assert (found["left_out"], found["pairs"], found["value"]) == (40, 35, max(choosing))
    others = scores.copy()
    others[shared] = np.random.default_rng(3).permutation(others[shared])
    assert change_scores(others)[0::2] == (before, choosing)
    assert change_scores(others)[1] != values  # `value` is by all pairs
    others[40:] = others[40:][::-1]  # pairs that `dev` alone has
    assert change_scores(others)[2] != choosing


def test_pairs_of_a_training_part_and_other_pairs_of_the_same_texts_stay(folder: Path) -> None:
    write_texts("test", [f"dev {number}" for number in range(140)])  # its pairs were drawn with another seed
    assert scored_elsewhere(SUITE, "dev").mean() < 0.1
    items = pq.read_table(corpus_path("made", "dev", "items"))
    write_texts("test", [f"dev {number}" for number in range(150)])
    for column in ("row1", "row2"):
        change_items("test", column, items[column].to_pylist()[:70])
    assert scored_elsewhere(SUITE, "dev").tolist() == [True] * 70 + [False] * 5
    change_items("test", "split", ["train", "dev"] * 35)
    assert scored_elsewhere(SUITE, "dev").sum() == 70  # the cosine is scored on all parts
    change_items("test", "split", ["test", "train"] * 35, kind="items.paraphrase")
    assert scored_elsewhere(SUITE, "dev").sum() == 35
    change_items("test", "split", ["dev", "test"] * 35, kind="items.paraphrase")
    assert scored_elsewhere(SUITE, "dev").sum() == 70  # without a training part, the folds are made of all


@pytest.mark.parametrize(("own", "scores"), [(9, range(9)), (75, [3.0] * 75)], ids=["nine pairs", "one score"])
def test_a_development_corpus_whose_own_pairs_cannot_choose_is_refused(
    folder: Path, own: int, scores: Sequence[float]
) -> None:
    if own < 75:
        write_corpus("test", 150, 0)
        write_texts("test", [f"dev {number}" for number in range(150)])
        items = pq.read_table(corpus_path("made", "test", "items"))
        change_items("test", "row1", items["row1"].to_pylist()[:-own] + items["row2"].to_pylist()[-own:])
    change_items("dev", "score", [*read_scores("dev")[: 75 - own], *map(float, scores)])
    with pytest.raises(SuiteError, match=f"(?s)too few pairs.*dev: {own} of 75 pairs"):
        sweep(SUITE, "minilm", "lp-selected")


def test_changing_the_test_sets_sentences_too_changes_no_space_but_their_own(folder: Path) -> None:
    before = run("lp-selected")
    write_corpus("test", 133, 9)
    knn_graph("made", "minilm", ("test",))
    after = run("lp-selected")
    assert {name for name in before if before[name] != after[name]} == {"test.parquet"}


def test_the_choice_is_the_surfaces_best_and_the_oracle_is_never_below_it(folder: Path) -> None:
    for selection in GRIDS:
        chosen = sweep(SUITE, "minilm", selection)
        home = sweep_folder("made", "minilm", selection)
        surface = json.loads((home / "surface.json").read_text())
        assert surface["corpus"] == chosen["corpus"] == "dev"
        assert chosen["value"] == max(point["value"] for point in surface["points"])
        assert chosen == json.loads((home / "selected.json").read_text())
        oracle = json.loads((home / "oracle.json").read_text())
        assert set(oracle["corpora"]) == {"test", "tiny"}  # never the development corpus
        assert "never made into a space" in oracle["label"]
        for found in oracle["corpora"].values():
            known = [value for value in found["surface"] if value is not None]
            assert found["oracle"]["value"] == max(known)
            if found["selected"]["value"] is not None:
                assert found["inflation"] == pytest.approx(max(known) - found["selected"]["value"], abs=1e-3)
                assert found["inflation"] >= 0


def test_both_rules_are_run_beside_the_grid_of_lle_and_choose_the_smallest_misfit(folder: Path) -> None:
    sweep(SUITE, "minilm", "lp-selected")
    surface = json.loads((sweep_folder("made", "minilm", "lp-selected") / "surface.json").read_text())
    for rule in ("residual_variance", "procrustes"):
        misfits = [point[rule] for point in surface["points"]]
        assert surface["rules"][rule][rule] == min(misfits)
        assert surface["rules"][rule]["value"] == surface["points"][misfits.index(min(misfits))]["value"]
    sweep(SUITE, "minilm", "smooth-selected")
    assert "rules" not in json.loads((sweep_folder("made", "minilm", "smooth-selected") / "surface.json").read_text())


def test_a_space_has_the_chosen_parameters_and_a_corpus_too_small_for_them_is_blank(folder: Path) -> None:
    point = {"neighbors": 12, "regularization": 0.01, "components": 90, "scaling": "quarter"}
    home = sweep_folder("made", "minilm", "lp-selected")
    home.mkdir(parents=True)
    (home / "selected.json").write_text(json.dumps({"corpus": "dev", "method": "lle", "parameters": point}))
    selected("made", "minilm", "lp-selected", CORPORA)
    path = space_path("made", "minilm-lp-selected", "test")
    assert read_vectors(path).shape == (140, 90)
    record = read_record(path, kind="vectors")
    assert {key: record["parameters"][key] for key in point} == point
    assert record["parameters"]["chosen_on"] == "dev"
    assert max(record["notes"]["residuals"]) <= 1e-8 * record["notes"]["eigenvalues"][-1]
    reason = absence(space_path("made", "minilm-lp-selected", "tiny"), kind="vectors")
    assert reason is not None and "20 sentences are too few" in reason


def test_a_suite_without_a_development_corpus_and_a_choice_that_is_none_are_refused(folder: Path) -> None:
    with pytest.raises(SuiteError, match="development"):
        sweep(SUITE.model_copy(update={"development": None}), "minilm", "lp-selected")
    with pytest.raises(ArtifactError, match="choice of a sweep"):
        selected("made", "minilm", "lp-selected", CORPORA)
    shutil.rmtree(folder / "data/made/corpora/dev")
    with pytest.raises(ArtifactError):
        sweep(SUITE, "minilm", "lp-selected")
