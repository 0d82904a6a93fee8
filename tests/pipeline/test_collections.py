"""A suite of a collection of documents, from a hub on loopback to the table of retrieval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from pipeline.base.artifacts import read_vectors
from tests.checkout import make_checkout, repro, write_plans
from tests.corpora.hub_server import ID, REVISION, HubServer, serving

THINGS = ("kettle", "printer", "lamp", "bicycle", "clock", "radio", "stove", "mirror", "pillow", "ladder")
FAULTS = ("leaks", "stops", "rattles", "smells")
DOCUMENTS = [
    {"_id": f"d{i}", "title": f"The {thing}", "text": f"{fault} since number {i}."}
    for i, (thing, fault) in enumerate((thing, fault) for thing in THINGS for fault in FAULTS)
]
QUERIES = [
    {"_id": f"q{i}", "text": f"Which {row['title'][4:]} {row['text'].split()[0]}?"} for i, row in enumerate(DOCUMENTS)
]


def as_jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def judgements(numbers: range) -> list[dict[str, Any]]:
    return [{"query-id": f"q{i}", "corpus-id": f"d{i}", "score": 1} for i in numbers]


def write_suite(checkout: Path) -> None:
    """The suite `mine`: one collection, two spaces, and the project's searches over it."""
    folder = checkout / "suites/mine"
    folder.mkdir(parents=True)
    catalogue = checkout / "pipeline/catalogue.yaml"
    shared = yaml.safe_load(catalogue.read_text(encoding="utf-8"))["scifact"]
    for place in shared["hub"].values():
        place |= {"id": ID, "revision": REVISION}
    block = {**shared, "splits": {"test": 20, "train": 20}, "corpora": {"faults": ["test", "train"]}}
    with catalogue.open("a", encoding="utf-8") as stream:
        stream.write(yaml.safe_dump({"faults": block}))
    spaces = ["minilm", "minilm-truncation"]
    suite = {"suite": "mine", "source": "hub", "corpora": ["faults"], "spaces": spaces, "searched": spaces}
    (folder / "suite.yaml").write_text(yaml.safe_dump(suite), encoding="utf-8")
    file = checkout / "params.yaml"
    params = yaml.safe_load(file.read_text(encoding="utf-8"))
    params["pools"] = {
        "faults": {"split": "test", "column": "relevance", "development": {"corpus": "faults", "split": "train"}}
    }
    params["searches"] = {name: params["searches"][name] for name in ("cosine", "query-pca", "csls")}
    params["searches"]["query-pca"]["components"] = [8, 16]
    file.write_text(yaml.safe_dump(params, sort_keys=False), encoding="utf-8")


@pytest.mark.slow
def test_a_collection_from_the_hub_is_searched_and_its_table_has_the_nearest_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = make_checkout(tmp_path / "checkout")
    write_suite(checkout)
    server = HubServer()
    for path, rows in (
        ("corpus.jsonl", DOCUMENTS), ("queries.jsonl", QUERIES),
        ("qrels/test.jsonl", judgements(range(20))), ("qrels/train.jsonl", judgements(range(20, 40))),
    ):  # fmt: skip
        server.add(path, as_jsonl(rows))
    with serving(server):
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("SENTFOLD_CACHE", str(tmp_path / "cache"))
        write_plans(checkout, "mine")
        repro(checkout, "suites/mine/dvc.yaml")
    scores = json.loads((checkout / "reports/mine/scores/minilm-cosine.json").read_text())["corpora"]["faults"]
    assert (scores["documents"], scores["queries"], scores["development"]["documents"]) == (40, 20, 40)
    monkeypatch.chdir(checkout)
    x = read_vectors(Path("data/mine/spaces/minilm/faults.parquet")).astype(float)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    similar = x[40:60] @ x[:40].T  # the documents come first, then the queries of the test
    first = float(np.mean(similar.argmax(axis=1) == np.arange(20)))
    assert scores["scores"]["Recall@1"]["value"] == pytest.approx(100 * first, abs=0.01)
    table = (checkout / "reports/mine/tables/retrieval.md").read_text(encoding="utf-8")
    assert "minilm-truncation" in table and "faults" in table
