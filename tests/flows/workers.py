"""A Dask scheduler and workers with clones of their own, started by Dask's own commands; a DVC remote in a folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.flows.checkout import Checkout, settings_of, until

IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.org")

# In front of a folder and a command: the command sees another folder in its place, an empty one.
APART = ("unshare", "-rm", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"')


def commit(checkout: Checkout, *, remote: str) -> None:
    """Set up a DVC remote called `shared` as documented, and commit everything."""
    dvc = [sys.executable, "-m", "dvc", "remote"]
    for words in (
        [*dvc, "add", "--force", "--quiet", "shared", remote],
        [*dvc, "modify", "shared", "verify", "true"],
        ["git", "add", "--all"],
        ["git", *IDENTITY, "commit", "--quiet", "--message", "all"],
    ):
        subprocess.run(words, cwd=checkout.root, env=checkout.environment, check=True)


def clone(checkout: Checkout, folder: Path) -> Checkout:
    """Another checkout of the same commit, without data. Stages note there what they did."""
    subprocess.run(["git", "clone", "--quiet", str(checkout.root), str(folder)], check=True)
    for name in ("asked", "pids"):
        (folder / name).mkdir()
    return Checkout(folder, checkout.environment)


def tls(folder: Path) -> dict[str, str]:
    """The environment of dask-tls.sh, with a certificate of its own."""
    return settings_of("dask-tls.sh", {"PATH": os.environ["PATH"], "SENTFOLD_KEY": str(folder / "key")})


@contextmanager
def cluster(
    folder: Path, environment: Mapping[str, str], clones: Sequence[Path], *options: str, within: Sequence[str] = ()
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler, and its processes: the scheduler first, then a worker for each clone.

    within  a command in front of the workers'
    """
    file = folder / "scheduler.json"
    common = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)]
    work = ["worker", "--nthreads", "1", "--memory-limit", "0", "--local-directory", str(folder), *common]
    started = [_start(["scheduler", "--port", "0", *common, *options], folder, environment)]
    try:
        until(lambda: file.exists() and "://" in file.read_text(), "the scheduler", seconds=300)
        started += [_start(work, clone, environment, within) for clone in clones]
        yield json.loads(file.read_text())["address"], started
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
            process.wait(120)


def _start(
    words: list[str], folder: Path, environment: Mapping[str, str], within: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    with (folder / f"{words[0]}.log").open("ab") as log:
        return subprocess.Popen(
            [*within, sys.executable, "-m", "flows.launch", "dask", *words],
            cwd=folder,
            env=dict(environment),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
