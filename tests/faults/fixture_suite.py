"""A checkout whose quick suite is small: the project's own stages over sentences written for the tests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from pipeline.plan import COUNTED
from tests.checkout import FILES, ROOT, copy_code, write_plans

TEXTS = Path(__file__).with_name("texts.yaml")

# A transformer takes seconds to load, so every space is made from a word average.
ENCODER = "wl-average"

# Of dvc.yaml, the stages that such a suite has. `report` is left out: it wants the scores of every space.
STAGES = (
    "plan", "download", "vocabulary", "word_counts", "word_vectors", "encode", "knn_graph",
    "reconstruction_weights", "eigensolve", "transform", "evaluate",
)  # fmt: skip

# Instead of `foreach: ${stages.evaluate}`: one space, as each takes seconds.
EVALUATED = {f"{ENCODER}-lp": {"source": ENCODER}}

SUITE: dict[str, Any] = {
    "suite": "quick",
    "source": "package",
    "corpora": ["kitchen", "harbour"],
    "development": "kitchen",
    "spaces": [ENCODER, *(f"{ENCODER}-{maker}" for maker in ("lp", "pca", "whitening", "smooth"))],
}

# What params.yaml says otherwise, by its dotted key.
PARAMETERS: dict[str, Any] = {
    "knn_graph.neighbors": 8,
    "manifolds.lp.neighbors": 6,
    "manifolds.lp.components": 4,
    "manifolds.pca.components": 4,
    "manifolds.whitening.components": 4,
    "evaluate.resamples": 100,
    "evaluate.geometry_neighbors": 4,
}


def create_checkout(folder: Path) -> Path:
    """Write the checkout into `folder`: git and DVC set up, its own cache, nothing run."""
    folder.mkdir(parents=True)
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)
    copy_code(folder)
    _write_yaml(folder / "pipeline/catalogue.yaml", catalogue())
    _write_yaml(folder / "suite.yaml", SUITE)
    _write_yaml(folder / "dvc.yaml", _stages())
    _write_yaml(folder / "params.yaml", _parameters())
    write_plans(folder)
    (folder / "reports/quick").mkdir(parents=True)
    (folder / "reports/quick/summary.txt").write_text("The fixture suite has no report.\n")
    (folder / ".dvc").mkdir()
    for name in ("config", ".gitignore"):
        shutil.copy(ROOT / ".dvc" / name, folder / ".dvc" / name)
    writer = ("-c", "user.name=fixture", "-c", "user.email=fixture@localhost")
    for words in (("init", "-q"), ("add", "-A"), (*writer, "commit", "-q", "-m", "Fixture suite")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def catalogue() -> dict[str, Any]:
    """The texts as two corpora inside the catalogue itself, and the word counts that a stage's parameters name."""
    pairs: dict[str, list[list[Any]]] = yaml.safe_load(TEXTS.read_text(encoding="utf-8"))
    known = yaml.safe_load((ROOT / "pipeline/catalogue.yaml").read_text(encoding="utf-8"))
    corpora = {
        name: {
            "task": "similarity",
            "title": f"Sentences from the {name}",
            "citation": "written for these tests",
            "licence": "that of the repository",
            "splits": {"all": len(rows)},
            "corpora": {name: ["all"]},
            "inline": [
                {"sentence1": first, "sentence2": second, "score": score, "subset": ""} for first, second, score in rows
            ],
        }
        for name, rows in pairs.items()
    }
    return {COUNTED: known[COUNTED], **corpora}


def set_parameter(content: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key of what a YAML file held; it has to be there."""
    *groups, last = key.split(".")
    for group in groups:
        content = content[group]
    assert last in content, f"{key} is not there to be changed"
    content[last] = value


def change_parameter(checkout: Path, key: str, value: Any) -> None:
    """Change one number of a checkout's params.yaml."""
    path = checkout / "params.yaml"
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    set_parameter(content, key, value)
    _write_yaml(path, content)


def _parameters() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    for key, value in PARAMETERS.items():
        set_parameter(content, key, value)
    return content


def _stages() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))
    stages = {name: content["stages"][name] for name in STAGES}
    stages["evaluate"]["foreach"] = EVALUATED
    return {**content, "stages": stages}


def _write_yaml(path: Path, content: Any) -> None:
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
