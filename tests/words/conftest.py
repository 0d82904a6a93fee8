"""A checkout of two small corpora of our own sentences, and files of word vectors beside it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

from pipeline.base.artifacts import corpus_path, write_absence, write_table
from pipeline.base.suite import Suite

ROOT = Path(__file__).parents[2]

HARBOUR = ["The dog naps.", "the dog naps , the cat naps", "Snow falls on the harbour."]
BREAD = ["the dog naps , the cat naps", "Nine kettles, nine loaves!", ""]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: params.yaml with one source of vectors, three corpora, one of them a blank."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SENTFOLD_VECTORS", str(tmp_path / "vectors"))
    monkeypatch.delenv("SENTFOLD_MIRROR", raising=False)
    (tmp_path / "vectors").mkdir()
    for corpus, sentences in (("harbour", HARBOUR), ("bread", BREAD)):
        write_table(
            corpus_path("mine", corpus, "sentences"),
            pa.table({"text": pa.array(sentences, pa.string())}),
            kind="sentences",
            parameters={},
            notes={"task": "similarity"},
        )
    write_absence(corpus_path("mine", "lost", "sentences"), "the mirror lacks it", kind="sentences")
    write_params({})
    return folder


CORPORA = ("harbour", "lost", "bread")


def write_params(groups: dict[str, Any]) -> None:
    """The project's own word parameters, with some replaced."""
    shipped = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    content = {name: shipped[name] for name in ("vocabulary", "word_vectors", "clusterings")}
    Path("params.yaml").write_text(yaml.safe_dump({**content, **groups}, allow_unicode=True), encoding="utf-8")


TOKENIZERS = ("regex", "whitespace")


def make_suite(**changes: Any) -> Suite:
    """The suite of the checkout, as its plan has it."""
    content: dict[str, Any] = {
        "suite": "mine",
        "root": "../..",
        "file": "suites/mine/plan.yaml",
        "written": "suites/mine/suite.yaml",
        "parent": "suites/mine/suite.yaml",
        "counted": "word-freq",
        "source": "package",
        "skip_missing": True,
        "counts": "own",
        "development": None,
        "baseline": None,
        "corpora": CORPORA,
        "wordless": (),
        "spaces": (),
        "blanks": {},
        "sensitivities": (),
        "paths": {},
        "stages": {"vocabulary": {name: {} for name in TOKENIZERS}},
    }
    return Suite.model_validate({**content, **changes})


class Shelf:
    """A folder of files of word vectors, and the list of their locations."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.locations = folder / "locations.yaml"
        self.entries: dict[str, dict[str, Any]] = {}

    def put(self, name: str, vectors: dict[str, list[float]], *, sha256: str | None = "right") -> Path:
        """A text file with a header, and its entry in the list."""
        dimension = len(next(iter(vectors.values())))
        lines = [f"{len(vectors)} {dimension}", *(" ".join([w, *map(str, v)]) for w, v in vectors.items())]
        return self.put_bytes(name, "\n".join([*lines, ""]).encode(), dimension=dimension, sha256=sha256)

    def put_bytes(self, name: str, data: bytes, *, dimension: int, sha256: str | None = "right") -> Path:
        path = self.folder / f"{name}.txt"
        path.write_bytes(data)
        digest = hashlib.sha256(data).hexdigest() if sha256 == "right" else sha256
        self.entries[name] = {
            "title": name,
            "citation": "ours",
            "licence": "ours",
            "url": f"http://127.0.0.1:9/{name}.txt",
            "file": path.name,
            "sha256": digest,
            "dimension": dimension,
        }
        self.locations.write_text(yaml.safe_dump(self.entries), encoding="utf-8")
        return path


@pytest.fixture
def shelf(checkout: Path) -> Shelf:
    return Shelf(checkout.parent / "vectors")


def rows(words: list[str], dimension: int, *, seed: int = 0) -> dict[str, list[float]]:
    """Vectors of these words, with few digits, so that text and float32 hold the same number."""
    values = np.random.default_rng(seed).integers(-64, 64, (len(words), dimension)) / 8
    return dict(zip(words, values.tolist(), strict=True))
