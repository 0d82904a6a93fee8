"""Run a suite on Slurm. Each worker is a job, in a clone that the job makes of this checkout's commit.

    . flows/examples/dask-tls.sh
    export DASK_JOBQUEUE__SLURM__MEMORY=4GB DASK_JOBQUEUE__SLURM__INTERFACE=eth0
    python flows/examples/slurm.py REPOSITORY 2 --suite quick --remote shared

REPOSITORY is what `git clone` takes on a node, 2 the number of workers; the rest goes to `sentfold run`. Memory,
network interface, partition and time are settings of dask-jobqueue, which docs/cluster.md installs.
"""

import shlex
import subprocess
import sys

from dask_jobqueue.slurm import SLURMCluster


def main(repository: str, workers: int, words: list[str]) -> int:
    """Start a scheduler here and the workers as jobs, run, and end them; the exit code is that of `sentfold run`."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    prologue = [
        "set -euo pipefail",
        'clone="$(mktemp -d)"',
        "trap 'rm -rf \"$clone\"' EXIT",
        f'git clone --quiet {shlex.quote(repository)} "$clone"',
        'cd "$clone"',
        f"git checkout --quiet {commit}",
        'export DASK_TEMPORARY_DIRECTORY="$clone/.dvc/tmp"',  # see dask-tls.sh
    ]
    with SLURMCluster(
        cores=1,
        processes=1,
        protocol="tls://",
        job_script_prologue=prologue,
        scheduler_options={"dashboard_address": None},
    ) as cluster:
        cluster.scale(jobs=workers)
        to_workers = ["--address", cluster.scheduler_address, "--jobs", str(workers)]
        return subprocess.run([sys.executable, "-m", "flows", "run", *to_workers, *words], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
