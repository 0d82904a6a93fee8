"""The stage `search`: pools from pairs of texts, choices on development pairs alone, and its plan."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from pydantic import ValidationError

from pipeline.base.artifacts import (
    corpus_path,
    read_table,
    read_vectors,
    resamples_path,
    scores_path,
    space_path,
    write_absence,
    write_table,
    write_vectors,
)
from pipeline.base.params import read_yaml
from pipeline.plan import SuiteFile
from pipeline.report.evidence import Evidence
from pipeline.report.retrieval import load_searches, retrieval_table
from pipeline.searches import PoolBlock, load_pool, load_search, read_pairs
from pipeline.stages.search import search
from sentfold.errors import ParameterError, SuiteError
from sentfold.files import sha256_of
from tests.checkout import ROOT, make_suite

POOLS = {
    "near": {"column": "score", "least": 4.0, "development": {"corpus": "near-dev"}, "remark": "made up"},
    "split": {
        "split": "test",
        "column": "label",
        "relevant": [1],
        "development": {"corpus": "split", "split": "train"},
    },
    "half": {"column": "label", "relevant": [1]},
}
SEARCHES = {
    "cosine": {"method": "cosine"},
    "nnn": {"method": "nnn", "neighbors": [2, 8], "weight": [0.0, 0.5, 3.0]},
    "adapter": {"method": "adapter", "ridge": [1.0, 1e6]},
}
CORPORA = ("near", "near-dev", "split", "half")
SUITE = make_suite(
    {"pools": POOLS, "searches": SEARCHES}, suite="made", corpora=CORPORA, spaces=("minilm", "minilm-pca"),
    searched=("minilm", "minilm-pca"),
)  # fmt: skip


def write_corpus(name: str, seed: int, *, n: int = 80, splits: tuple[str, ...] = ("test",)) -> None:
    """Pairs of a query and a document near it; every fourth pair is of unrelated texts."""
    rng = np.random.default_rng(seed)
    queries = rng.standard_normal((n, 12))
    documents = queries + rng.standard_normal((n, 12))
    related = np.arange(n) % 4 > 0
    documents[~related] = rng.standard_normal((int((~related).sum()), 12))
    items = {
        "row1": np.arange(n), "row2": n + np.arange(n), "label": related.astype(int),
        "score": np.where(related, 4.5, 1.0), "split": [splits[i * len(splits) // n] for i in range(n)],
    }  # fmt: skip
    notes = {"corpus": name, "task": "similarity"}
    texts = {"text": [f"{name} {i}" for i in range(2 * n)]}
    write_table(corpus_path("made", name, "sentences"), pa.table(texts), kind="sentences", parameters={}, notes=notes)
    write_table(
        corpus_path("made", name, "items"), pa.table(items), kind="items.similarity", parameters={}, notes=notes
    )
    x = np.vstack([queries, documents]).astype(np.float32)
    write_vectors(space_path("made", "minilm", name), x, parameters={}, notes=notes)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    content = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    content |= {"pools": POOLS, "searches": SEARCHES}
    content["evaluate"] |= {"resamples": 100}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    for seed, name in enumerate(CORPORA):
        write_corpus(name, seed, splits=("train", "test") if name == "split" else ("test",))
    return tmp_path


def ndcg_of_single(space: np.ndarray, rows: np.ndarray, relevant: np.ndarray) -> float:
    """nDCG@10 by its definition, for queries with one relevant document each and no ties."""
    x = space / np.linalg.norm(space, axis=1, keepdims=True)
    gains = []
    for pair in np.flatnonzero(relevant):
        similar = x[rows[:, 1]] @ x[rows[pair, 0]]
        place = int((similar > similar[pair]).sum()) + 1
        gains.append(1 / np.log2(1 + place) if place <= 10 else 0.0)
    return float(np.mean(gains))


def test_cosine_scores_each_pool_by_the_definition_of_ndcg(folder: Path) -> None:
    facts = search(SUITE, "minilm-cosine")
    assert list(facts) == ["near", "split", "half"]
    assert json.loads(scores_path("made", "minilm-cosine").read_text())["corpora"] == facts
    x = np.array(read_table(space_path("made", "minilm", "near"), kind="vectors").column("vector").to_pylist())
    rows = np.column_stack([np.arange(80), 80 + np.arange(80)])
    found = facts["near"]
    assert found["scores"]["nDCG@10"]["value"] == pytest.approx(
        100 * ndcg_of_single(x, rows, rows[:, 0] % 4 > 0), abs=0.006
    )
    assert (found["documents"], found["queries"], found["judgements"]) == (80, 60, 60)
    assert found["queries_without_relevant"] == 20
    replicates = read_table(resamples_path("made", "minilm-cosine", "near"), kind="resamples")
    assert replicates.num_rows == 100
    low, high = found["scores"]["MAP"]["low"], found["scores"]["MAP"]["high"]
    assert low < found["scores"]["MAP"]["value"] < high


def test_a_pool_of_one_corpus_is_cut_so_that_no_text_is_on_both_sides(folder: Path) -> None:
    for name in ("split", "half"):
        pairs = read_pairs("made", name, PoolBlock.model_validate(POOLS[name]))
        assert not isinstance(pairs, str)
        test, development = pairs
        assert not set(test.rows.ravel()) & set(development.rows.ravel())
        assert 0 < len(development.rows) <= len(test.rows) + 6
    assert len(test.rows) + len(development.rows) == 80


def test_development_pairs_with_a_text_of_the_test_are_left_out(folder: Path) -> None:
    shared = pa.table({"text": [f"near {i}" if i == 5 else f"near-dev {i}" for i in range(160)]})
    path = corpus_path("made", "near-dev", "sentences")
    write_table(path, shared, kind="sentences", parameters={}, notes={"corpus": "near-dev"})
    pairs = read_pairs("made", "near", load_pool("near"))
    assert not isinstance(pairs, str)
    assert len(pairs[1].rows) == 79
    assert 5 not in pairs[1].rows[:, 0]


def test_the_grid_is_chosen_on_development_pairs_and_the_oracle_is_apart(folder: Path) -> None:
    before = search(SUITE, "minilm-nnn")["near"]
    assert before["points"] == 6
    best = int(np.argmax(before["development"]["values"]))
    assert before["chosen"] == load_search("nnn").points[best].model_dump()
    assert before["oracle"]["value"] >= before["scores"]["nDCG@10"]["value"]
    write_corpus("near", 99)  # other test pairs: the same choice
    after = search(SUITE, "minilm-nnn")["near"]
    assert after["chosen"] == before["chosen"]
    assert after["development"]["values"] == before["development"]["values"]
    assert after["scores"] != before["scores"]


def test_an_adapter_never_fits_the_judgements_that_it_is_scored_by(folder: Path) -> None:
    """Pairs without any relation: whoever fits the relevant documents of the test finds them, others do not."""
    rng = np.random.default_rng(3)
    for name in ("near", "near-dev"):
        notes = {"corpus": name, "task": "similarity"}
        noise = rng.standard_normal((160, 48)).astype(np.float32)
        write_vectors(space_path("made", "minilm", name), noise, parameters={}, notes=notes)
    found = search(SUITE, "minilm-adapter")["near"]
    assert found["scores"]["Recall@10"]["value"] < 30  # by chance 12.5; a fit to all 60 pairs finds nearly all


def test_the_same_inputs_give_the_same_bytes(folder: Path) -> None:
    def files() -> list[str]:
        search(SUITE, "minilm-nnn")
        return [sha256_of(p) for p in (scores_path("made", "minilm-nnn"), resamples_path("made", "minilm-nnn", "half"))]

    assert files() == files()


def test_an_absent_corpus_is_a_blank_with_its_reason(folder: Path) -> None:
    write_absence(space_path("made", "minilm", "near-dev"), "the mirror lacks it", kind="vectors")
    facts = search(SUITE, "minilm-cosine")
    assert facts["near"] == {"absent": "the mirror lacks it", "task": "retrieval"}
    assert "scores" in facts["split"]


def test_the_table_has_each_score_its_difference_to_cosine_and_the_oracle(folder: Path) -> None:
    for name in CORPORA:
        x = read_vectors(space_path("made", "minilm", name))
        write_vectors(space_path("made", "minilm-pca", name), x[:, :3], parameters={}, notes={"corpus": name})
    keys = ("minilm-cosine", "minilm-nnn", "minilm-adapter", "minilm-pca-cosine")
    made = SUITE.model_copy(update={"stages": {**SUITE.stages, "search": {k: SUITE.stages["search"][k] for k in keys}}})
    found = {key: search(made, key) for key in keys}
    results = load_searches(made, confidence=0.95)
    assert results is not None
    sizes = {"dimension": 3, "documents": 5}
    timed = {key: [1.0, 2.0, 3.0] for key in ("prepare_us_per_document", "ms_per_query", "ratio_to_cosine")}
    costs = {"processor": "one", "searches": {"nnn": {**timed, "bytes_per_document": 12}}, "sizes": sizes}
    table = retrieval_table(Evidence(results=results, searches=results, search_costs=costs))
    assert table is not None
    cells = {(c.line.name, c.head.corpus, c.protocol): c.entry for c in table.cells()}
    for key, facts in found.items():
        for pool in ("near", "split", "half"):
            assert cells[key, pool, "nDCG@10"].value == facts[pool]["scores"]["nDCG@10"]["value"]
            assert cells[key, pool, "nDCG@10"].link == f"score/{key}/{pool}/nDCG@10"
    less = "nDCG@10, less the baseline's"
    own, plain = (found[key]["near"]["scores"]["nDCG@10"]["value"] for key in ("minilm-pca-cosine", "minilm-cosine"))
    lost = cells["minilm-pca-cosine − minilm-cosine", "near", less]
    assert lost.value == pytest.approx(own - plain, abs=0.011)
    assert lost.sign == -1  # three of twelve coordinates
    oracle = cells["minilm-nnn", "near", "nDCG@10: oracle, chosen on near itself"]
    assert oracle.value == found["minilm-nnn"]["near"]["oracle"]["value"]
    assert cells["near", "", "count"].value == found["minilm-cosine"]["near"]["development"]["queries"]
    assert cells["nnn", "", "ms per query"].value == 2.0
    assert cells["adapter", "", "bytes"].blank
    assert any("made up" in line for panel in table.panels for line in panel.shows)


def test_a_plan_searches_encoders_by_everything_and_derived_spaces_by_cosine() -> None:
    made = SUITE.stages["search"]
    known = read_yaml(ROOT / "params.yaml")["searches"]
    assert set(made) == {f"minilm-{name}" for name in {*known, *SEARCHES}} | {"minilm-pca-cosine"}
    assert made["minilm-nnn"]["against"] == made["minilm-pca-cosine"]["against"] == "minilm-cosine"
    assert made["minilm-nnn"]["pools"] == ("near", "split", "half")


def test_a_pool_needs_its_development_corpus_in_the_suite() -> None:
    params = {"pools": POOLS, "searches": SEARCHES}
    made = make_suite(params, suite="made", corpora=("near", "half"), spaces=("minilm",), searched=("minilm",))
    assert made.stages["search"]["minilm-cosine"]["pools"] == ("half",)
    with pytest.raises(SuiteError, match="no pool to search in"):
        make_suite(params, suite="made", corpora=("near",), spaces=("minilm",), searched=("minilm",))


def test_a_pool_of_the_corpus_that_chose_a_spaces_parameters_does_not_test_the_space() -> None:
    names = {"suite": "made", "corpora": ("near", "near-dev", "split", "half")}
    both = ("minilm", "minilm-pca-selected")
    params = {"pools": POOLS, "searches": SEARCHES}
    with pytest.raises(SuiteError, match="on pairs that chose its parameters"):
        make_suite(params, **names, spaces=both, development="near", searched=both)
    made = make_suite(params, **names, spaces=both, development="near", searched=("minilm",))
    assert "minilm-cosine" in made.stages["search"]
    made = make_suite(
        {**params, "pools": {name: POOLS[name] for name in POOLS if name != "near"}},
        **names, spaces=both, development="near", searched=both,
    )  # fmt: skip
    assert made.stages["search"]["minilm-pca-selected-cosine"]["pools"] == ("split", "half")


@pytest.mark.parametrize(("pool", "split", "sound"), [
    ("stsb-trained", None, False), ("stsb-trained", "test", True), ("mrpc", None, False), ("mrpc", "test", True),
    ("stsb", None, True), ("snli", None, True),
])  # fmt: skip
def test_a_pool_of_all_parts_of_the_data_that_chose_does_not_test_the_space(
    pool: str, split: str | None, sound: bool
) -> None:
    block = {"column": "score", "least": 4.0, **({"split": split} if split else {})}
    params = {"pools": {pool: block}, "searches": SEARCHES}
    names = {"corpora": ("stsb-dev", pool), "spaces": ("minilm", "minilm-pca-selected"), "development": "stsb-dev"}
    with nullcontext() if sound else pytest.raises(SuiteError, match="split: test"):
        make_suite(params, suite="made", **names, searched=("minilm-pca-selected",))


def test_an_unknown_search_is_one_clear_error() -> None:
    with pytest.raises(SuiteError, match="no search 'minilm-bm25'") as caught:
        search(SUITE, "minilm-bm25")
    assert "minilm-nnn" in str(caught.value)
    without = make_suite(suite="made", corpora=("near",), spaces=("minilm",))
    with pytest.raises(SuiteError, match="searched"):
        search(without, "minilm-cosine")


def test_a_suite_without_searches_needs_no_pool() -> None:
    assert make_suite(suite="made", corpora=("near",), spaces=("minilm",)).stages["search"] == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"column": "nothing"}, "no nothing"),
        ({"split": "dev"}, "splits test"),
        ({"column": "split"}, "no numbers"),
    ],
)
def test_a_corpus_that_does_not_fit_its_pool_is_one_clear_error(
    folder: Path, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(ParameterError) as caught:
        read_pairs("made", "half", PoolBlock.model_validate({**POOLS["half"], **change}))
    for part in ("pools", "half", said):
        assert part in str(caught.value)


def test_a_pool_says_in_one_way_what_is_relevant() -> None:
    with pytest.raises(ValidationError, match="either"):
        PoolBlock.model_validate({"column": "label", "relevant": [1], "least": 1.0})


def test_a_collection_is_searched_whole_by_test_and_development_and_no_query_is_on_both_sides(folder: Path) -> None:
    """Rows 0 to 4 are the documents, of which the last is not judged; the query of row 6 occurs in both splits."""
    texts = {"text": [f"text {row}" for row in range(9)]}
    notes = {"corpus": "many", "task": "retrieval", "documents": 5}
    items = {
        "row1": [5, 5, 6, 6, 7, 8], "row2": [0, 1, 2, 0, 3, 1], "relevance": [2, 0, 1, 1, 1, 1],
        "split": ["test", "test", "test", "dev", "dev", "dev"],
    }  # fmt: skip
    for part, table in (("sentences", texts), ("items", items)):
        kind = part if part == "sentences" else "items.retrieval"
        write_table(corpus_path("made", "many", part), pa.table(table), kind=kind, parameters={}, notes=notes)
    block = PoolBlock.model_validate(
        {"split": "test", "column": "relevance", "development": {"corpus": "many", "split": "dev"}}
    )
    pairs = read_pairs("made", "many", block)
    assert not isinstance(pairs, str)
    test, development = (side.pool for side in pairs)
    assert test.documents.tolist() == development.documents.tolist() == [0, 1, 2, 3, 4]
    assert (test.queries.tolist(), development.queries.tolist()) == ([5, 6], [7, 8])
    assert test.grade.tolist() == [2.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("block", "said"),
    [({"method": "nosuch"}, "nosuch"), ({"method": "csls", "neighbors": [0]}, "neighbors"),
     ({"method": "csls", "neighbors": []}, "at least one"), ({"method": "csls", "width": 3}, "width")],
)  # fmt: skip
def test_a_wrong_search_is_one_clear_error(folder: Path, block: dict[str, Any], said: str) -> None:
    content = yaml.safe_load(Path("params.yaml").read_text())
    Path("params.yaml").write_text(yaml.safe_dump({**content, "searches": {"mine": block}}))
    with pytest.raises(ParameterError, match=said):
        load_search("mine")


def test_a_suite_searches_its_own_spaces_only() -> None:
    with pytest.raises(ValidationError, match="no spaces of the suite"):
        SuiteFile.model_validate(
            {"suite": "made", "source": "package", "corpora": ("lee",), "spaces": ("minilm",), "searched": ("wl-sif",)}
        )
