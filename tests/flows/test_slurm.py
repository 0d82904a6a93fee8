"""The example for Slurm, on a Slurm of two nodes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.checkout import SOURCE, Checkout
from tests.flows.slurm import missing, slurm
from tests.flows.test_dask import data_of, lock_of
from tests.flows.workers import commit, tls


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_nodes_of_slurm_leave_the_lock_and_the_bytes_of_one_machine(
    tmp_path: Path, fresh: Checkout, finished: Checkout
) -> None:
    if why := missing():
        pytest.skip(why)
    installed = Path(pytest.importorskip("dask_jobqueue").__file__).parents[1]
    remote = tmp_path / "remote"
    remote.mkdir()
    commit(fresh, remote=str(remote))
    with slurm(tmp_path / "slurm") as settings:
        environment = {
            **fresh.environment,
            **tls(tmp_path),
            **settings,
            "PYTHONPATH": f"{SOURCE}:{installed}",
            "DASK_JOBQUEUE__SLURM__MEMORY": "1GB",
            "DASK_JOBQUEUE__SLURM__INTERFACE": "lo",
            "DASK_JOBQUEUE__SLURM__LOG_DIRECTORY": str(tmp_path),
        }
        example = [sys.executable, f"{SOURCE}/flows/examples/slurm.py", str(fresh.root), "2", "--remote", "shared"]
        done = subprocess.run(
            example, cwd=fresh.root, env=environment, capture_output=True, text=True, check=False, timeout=1500
        )
    (tmp_path / "printed.txt").write_text(done.stdout)  # the transcript of docs/cluster.md
    jobs = "".join(log.read_text() for log in tmp_path.glob("dask-worker-*.err"))
    assert done.returncode == 0, done.stdout + done.stderr + jobs
    assert "6 ran" in done.stdout
    assert data_of(fresh.root) == data_of(finished.root)
    assert lock_of(fresh) == lock_of(finished)
    told = (tmp_path / "slurm/slurmctld.log").read_text()
    assert "NodeList=one" in told and "NodeList=two" in told, "both nodes had a job"
    assert fresh.ran() == set(), "the nodes made everything"
