"""The sweep by k-means on made-up classes: its score is the one of `evaluate`, and test labels choose nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

from pipeline.base.artifacts import corpus_path, space_path, write_table, write_vectors
from pipeline.base.cases import load_case
from pipeline.manifolds import sweep_folder
from pipeline.stages.evaluate import score_case
from pipeline.stages.knn_graph import knn_graph
from pipeline.stages.selected import selected
from pipeline.stages.sweep_clusters import sweep_clusters
from sentfold.errors import SuiteError
from sentfold.files import sha256_of
from sentfold.manifold import lle
from sentfold.measures.base.case import Case
from sentfold.measures.registry import evaluate_parameters
from tests.selection.test_sweep import ROOT, SUITE, change_items, write_texts
from tests.selection.test_sweep import write_corpus as write_pairs

SEEDS = 3
GRIDS = {
    "lp-clustered": {"method": "lle-selected", "neighbors": [8, 12], "regularization": [0.01],
                     "components": [2, 4, 60], "scaling": ["unit"]},
    "pca-clustered": {"method": "pca-selected", "components": [2, 4, 20]},
}  # fmt: skip
CORPORA = ("pairs", "dev", "test", "tiny")
CHOSEN = SUITE.model_copy(
    update={
        "corpora": CORPORA,
        "development": "pairs",
        "spaces": ("minilm", *(f"minilm-{name}" for name in GRIDS)),
        "stages": {"sweep_clusters": {f"minilm-{name}": {"development": "dev"} for name in GRIDS}},
    }
)


def write_corpus(name: str, n: int, seed: int, *, label_seed: int | None = None) -> None:
    """Sentences around five centres; with `label_seed`, the classes are dealt again by chance."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 5, n)
    x = rng.standard_normal((5, 24))[labels] + 0.9 * rng.standard_normal((n, 24))
    if label_seed is not None:
        labels = np.random.default_rng(label_seed).permutation(labels)
    order = rng.permutation(n)  # items are in another order than sentences
    items = {
        "row": order.astype(np.int32), "label": labels[order], "label_name": [f"c{label}" for label in labels[order]],
        "split": ["test"] * n,
    }  # fmt: skip
    notes = {"corpus": name, "resample": "items", "task": "clustering", "sentences": n, "text": "whole"}
    write_texts(name, [f"{name} {number}" for number in range(n)])
    path = corpus_path("made", name, "items")
    write_table(path, pa.table(items), kind="items.clustering", parameters={}, notes=notes)
    write_vectors(space_path("made", "minilm", name), x.astype(np.float32), parameters={}, notes=notes)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A similarity corpus and three of classes with their graphs, the last too small for the larger points."""
    monkeypatch.chdir(tmp_path)
    content = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    content["manifolds"] = GRIDS
    content["knn_graph"]["neighbors"] = 12
    content["evaluate"] |= {"kmeans_seeds": SEEDS, "resamples": 100}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    write_pairs("pairs", 60, 5)
    for name, n, seed in (("dev", 150, 0), ("test", 140, 1), ("tiny", 20, 2)):
        write_corpus(name, n, seed)
    knn_graph("made", "minilm", CORPORA)
    return tmp_path


def written(selection: str, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((sweep_folder("made", "minilm", selection) / f"{name}.json").read_text())
    return content


def case_of(space: str, corpus: str) -> Case:
    case = load_case("made", space, corpus)
    assert isinstance(case, Case)
    return case


@pytest.mark.parametrize("selection", GRIDS)
def test_the_choice_is_the_best_point_and_scores_what_evaluate_gives_the_space_made_of_it(
    folder: Path, selection: str
) -> None:
    chosen = sweep_clusters(CHOSEN, "minilm", selection)
    surface = written(selection, "surface")
    assert chosen == written(selection, "selected")
    assert (surface["corpus"], surface["protocol"]) == (chosen["corpus"], chosen["protocol"]) == ("dev", "nmi.kmeans")
    assert chosen["value"] == max(point["value"] for point in surface["points"])
    selected("made", "minilm", selection, CORPORA)
    parameters = evaluate_parameters().model_validate(yaml.safe_load(Path("params.yaml").read_text())["evaluate"])
    for corpus, value in (("dev", chosen["value"]), ("test", written(selection, "oracle")["corpora"]["test"])):
        scored = score_case(case_of(f"minilm-{selection}", corpus), parameters, source=None).scores["nmi.kmeans"]
        known = value if corpus == "dev" else value["selected"]["value"]
        # The sweep rounds to three decimals; nested eigenvectors differ from those of one solve by less than float32.
        assert known == pytest.approx(100 * scored, abs=1e-3)


def test_a_point_has_the_score_of_scikit_learns_k_means_and_nmi(folder: Path) -> None:
    sweep_clusters(CHOSEN, "minilm", "pca-clustered")
    case = case_of("minilm", "dev")
    centred = case.vectors.astype(np.float64) - case.vectors.mean(axis=0, dtype=np.float64)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    for point in written("pca-clustered", "surface")["points"]:
        x = (centred @ axes[: point["parameters"]["components"]].T).astype(np.float32)
        # Starts are drawn by distances alone, so an axis of the other sign draws the same rows.
        found = [KMeans(5, n_init=1, random_state=seed).fit(x).labels_[case.items["row"]] for seed in range(SEEDS)]
        each = [normalized_mutual_info_score(case.labels, labels) for labels in found]
        assert point["value"] == pytest.approx(100 * np.mean(each), abs=1e-3)  # of three decimals


def test_the_test_corpora_s_labels_change_the_oracle_and_no_byte_of_the_choice(folder: Path) -> None:
    def files() -> Iterator[str]:
        sweep_clusters(CHOSEN, "minilm", "lp-clustered")
        selected("made", "minilm", "lp-clustered", CORPORA)
        choice = sweep_folder("made", "minilm", "lp-clustered")
        yield from (sha256_of(choice / f"{name}.json") for name in ("surface", "selected"))
        yield from (sha256_of(space_path("made", "minilm-lp-clustered", corpus)) for corpus in CORPORA)

    before, oracle = list(files()), written("lp-clustered", "oracle")
    write_corpus("test", 140, 1, label_seed=7)
    assert list(files()) == before
    again = written("lp-clustered", "oracle")
    assert again["corpora"]["test"] != oracle["corpora"]["test"]
    assert again["corpora"]["tiny"] == oracle["corpora"]["tiny"]


def test_texts_that_another_corpus_has_choose_nothing(folder: Path) -> None:
    items = pq.read_table(corpus_path("made", "dev", "items")).to_pydict()
    shared = set(range(60))
    write_texts("test", [f"DEV {number}." if number in shared else f"test {number}" for number in range(140)])
    before = sweep_clusters(CHOSEN, "minilm", "pca-clustered")
    points = written("pca-clustered", "surface")["points"]
    assert (before["left_out"], before["texts"], before["value"]) == (60, 90, max(p["choosing"] for p in points))
    labels = np.array(items["label"])
    seen = np.array([row in shared for row in items["row"]])
    labels[seen] = np.random.default_rng(1).permutation(labels[seen])
    change_items("dev", "label", labels.astype(np.int64), kind="items.clustering")
    assert sweep_clusters(CHOSEN, "minilm", "pca-clustered") == before
    after = written("pca-clustered", "surface")["points"]
    assert [point["choosing"] for point in after] == [point["choosing"] for point in points]
    assert [point["value"] for point in after] != [point["value"] for point in points]
    write_texts("test", [f"dev {number}" for number in range(145)])
    with pytest.raises(SuiteError, match=r"(?s)too few texts.*dev: 5 of 150 texts"):
        sweep_clusters(CHOSEN, "minilm", "pca-clustered")


def test_the_oracle_has_the_other_clustering_corpora_alone_and_no_score_where_a_point_does_not_fit(
    folder: Path,
) -> None:
    sweep_clusters(CHOSEN, "minilm", "lp-clustered")
    oracle = written("lp-clustered", "oracle")
    assert set(oracle["corpora"]) == {"test", "tiny"}
    for corpus, n in (("test", 140), ("tiny", 20)):
        for point, value in zip(oracle["points"], oracle["corpora"][corpus]["surface"], strict=True):
            assert (value is None) == (point["components"] > n - 2)
    assert oracle["corpora"]["test"]["inflation"] >= 0


def test_the_solver_runs_once_for_each_k_with_the_largest_p(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solve, asked = lle.bottom_eigenvectors, list[tuple[int, int]]()

    def counted(matrix: Any, count: int, **settings: Any) -> Any:
        asked.append((matrix.shape[0], count))
        return solve(matrix, count, **settings)

    monkeypatch.setattr(lle, "bottom_eigenvectors", counted)
    sweep_clusters(CHOSEN, "minilm", "lp-clustered")
    assert asked == [(150, 60)] * 2 + [(140, 60)] * 2 + [(20, 4)] * 2


def test_a_corpus_without_classes_is_refused(folder: Path) -> None:
    stages = {"sweep_clusters": {"minilm-pca-clustered": {"development": "pairs"}}}
    with pytest.raises(SuiteError, match="its task is similarity"):
        sweep_clusters(CHOSEN.model_copy(update={"stages": stages}), "minilm", "pca-clustered")
    assert not sweep_folder("made", "minilm", "pca-clustered").exists()
