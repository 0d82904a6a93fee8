"""The model of large runs in docs/cluster.md: formula against simulation, simulation against arithmetic."""

from __future__ import annotations

import re

import pytest

from benchmarks.cluster import Costs, formula, print_model, simulate
from tests.flows.checkout import SOURCE


def test_the_simulation_takes_what_can_be_counted_by_hand() -> None:
    costs = Costs(stage=10.0, worker=2.0, remote=0.0, server=0.0, entry=0.0)
    # Stages of one chain, one after another: each takes 12 s on average, by the fixed pattern of their lengths.
    lengths = [10.0 * (0.5 + (layer * 11 % 101) / 100) + 2.0 for layer in range(5)]
    assert simulate(5, 3, 5, costs) == pytest.approx(sum(lengths))
    # The server alone counts where the workers take no time.
    assert simulate(300, 7, 1, Costs(0.0, 0.0, 0.0, 0.5, 0.0)) == pytest.approx(150.0)
    assert simulate(300, 7, 1, Costs(0.0, 0.0, 0.5, 0.1, 0.0)) == pytest.approx(150.1), "the remote, then the server"
    assert simulate(4, 4, 1, Costs(0.0, 0.0, 0.0, 0.0, 1.0)) == pytest.approx(1 + 2 + 3 + 4)


@pytest.mark.parametrize(("stages", "workers"), [(200, 4), (1_000, 20), (10_000, 200), (10_000, 1_000)])
@pytest.mark.parametrize("server", [0.0, 0.1, 0.3, 1.0])
def test_the_formula_is_a_lower_bound_that_the_simulation_comes_near(stages: int, workers: int, server: float) -> None:
    costs = Costs(server=server)
    said, took = formula(stages, workers, 6, costs), simulate(stages, workers, 6, costs)
    # The pattern has a mean of 1.00, and up to one stage for each worker is at work when the last one begins.
    assert 0.97 * said <= took <= 1.25 * said + 2 * costs.stage


def test_the_table_of_the_page_is_what_the_model_prints(capsys: pytest.CaptureFixture[str]) -> None:
    print_model()
    rows = re.findall(r"^\|.*\|$", capsys.readouterr().out, re.MULTILINE)
    page = (SOURCE / "docs/cluster.md").read_text(encoding="utf-8")
    assert len(rows) == 6 and "\n".join(rows) in page
