"""What a sweep says of its cost, and that the cost stands in no file."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from flows.run_stage import StageResult, log_file
from flows.summary import Summary
from flows.sweep_costs import sweep_costs
from pipeline.errors import ParameterError
from pipeline.params import read_yaml
from pipeline.selection.budget import describe_cost
from pipeline.selection.grids import GRIDS, load_grid
from tests.checkout import ROOT


@pytest.fixture
def params(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A params.yaml with a grid that has a budget, and one without."""
    grid = {"method": "pca-selected", "components": [4, 8]}
    blocks = {"mine": {**grid, "budget_seconds": 60}, "free": grid, "wrong": {**grid, "budget_seconds": 0}}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump({"manifolds": blocks}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_sweep_prints_its_cpu_time_beside_its_budget_and_warns_above_it(params: Path) -> None:
    assert describe_cost("minilm", "mine", 12.34) == "sweep minilm-mine: 12.3 s of CPU time of a budget of 60 s"
    over = describe_cost("minilm", "mine", 61.0)
    assert "Warning: over it by 1.0 s" in over
    assert "manifolds.mine.budget_seconds" in over
    assert describe_cost("minilm", "free", 5.0).endswith("and no budget")
    with pytest.raises(ParameterError, match="greater than 0"):
        describe_cost("minilm", "wrong", 5.0)


def test_a_budget_is_no_point_of_the_grid(params: Path) -> None:
    assert list(load_grid("mine").points()) == list(load_grid("free").points())


def test_every_grid_that_is_shipped_has_a_budget() -> None:
    blocks = read_yaml(ROOT / "params.yaml")["manifolds"].values()
    assert all(block["budget_seconds"] > 0 for block in blocks if block["method"] in GRIDS)


def test_a_run_repeats_what_its_sweeps_said_and_not_what_older_logs_say(tmp_path: Path) -> None:
    names = ("sweep@minilm-pca-selected", "suites/paper/dvc.yaml:sweep@minilm-lp-selected", "evaluate@minilm")
    for name in (*names, "sweep@minilm-abtt-selected"):
        log = log_file(name, root=tmp_path)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"Running stage\nsweep {name}: 1.0 s of CPU time, and no budget\n", encoding="utf-8")
    results = [StageResult(name, "ran", 1.0, outputs_changed=True) for name in names]
    results.append(StageResult("sweep@minilm-abtt-selected", "skipped", 0.0, outputs_changed=False))
    said = list(sweep_costs(Summary(tuple(results), 2.0), tmp_path))
    assert [line.split(":")[-2].rpartition("@")[2] for line in said] == ["minilm-pca-selected", "minilm-lp-selected"]
