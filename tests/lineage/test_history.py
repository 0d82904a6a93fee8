"""DVC's own experiments work on our layout."""

from __future__ import annotations

import json

import pytest

from tests.lineage.small import Small

SCORES = "reports/quick/scores/mini-lp.json"


def value_of(metrics: dict[str, object], corpus: str = "first") -> dict[str, float]:
    score = metrics["corpora"]  # type: ignore[index]
    for key in (corpus, "scores", "spearman.all.cosine", "value"):
        score = score[key]  # type: ignore[index]
    return score  # type: ignore[return-value]


@pytest.mark.slow
def test_an_experiment_changes_a_parameter_and_can_be_shown_and_applied(small: Small) -> None:
    before = (small.root / SCORES).read_text()
    small.run("dvc", "exp", "run", "-q", "--name", "steps", "--temp", "-S", "fold.step=0.6")
    assert (small.root / SCORES).read_text() == before, "the checkout is as it was"
    assert small.run("git", "status", "--porcelain").stdout == ""
    branches = json.loads(small.run("dvc", "exp", "show", "--json").stdout)
    (named,) = (
        revision["data"]
        for branch in branches
        for experiment in branch["experiments"] or ()
        for revision in experiment["revs"]
        if revision["name"] == "steps"
    )
    (metrics,) = (file["data"] for name, file in named["metrics"].items() if name.endswith(SCORES))
    assert value_of(metrics) == 18.1
    small.run("dvc", "exp", "apply", "-q", "steps")
    applied = json.loads((small.root / SCORES).read_text())
    assert value_of(applied) == 18.1
    done = small.run("dvc", "repro")
    assert "Running stage" not in done.stdout + done.stderr, "what was applied is fresh"


@pytest.mark.slow
def test_data_status_names_the_altered_file_of_a_folder_as_an_audit_says(small: Small) -> None:
    path = "data/quick/spaces/mini-lp/first.txt"
    (small.root / path).chmod(0o644)
    small.edit(path, "1.9", "1.8")
    status = json.loads(small.run("dvc", "data", "status", "--granular", "--json").stdout)
    assert path in status["uncommitted"]["modified"]
