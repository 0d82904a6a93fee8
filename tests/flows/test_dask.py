"""Stages on Dask workers, each worker process with a checkout of its own."""

from pathlib import Path

import pytest
import yaml

from tests.flows.checkout import Checkout, processes_in

DASK = 'reproduce("quick", 2, root, runner="dask")'


@pytest.mark.slow
def test_a_run_on_two_workers_leaves_what_a_plain_run_leaves(fresh: Checkout, finished: Checkout) -> None:
    printed = fresh.run(DASK)
    assert "6 stages" in printed and "6 ran" in printed, printed
    assert (fresh.root / "dvc.lock").read_bytes() == (finished.root / "dvc.lock").read_bytes()
