"""What one run is asked to do, and what the run has to do for that."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import typer

from flows.graph import StageGraph, build_graph, changed_stages, group_of, require_dvcfile, select_stages
from flows.processes import pause
from flows.profile import PROFILE_FILE, Retry, RunProfile, check_profile, read_profile
from flows.recovery import clear_leftovers
from pipeline.base.params import read_yaml
from pipeline.base.suite import plan_file
from pipeline.environment import stage_environment
from pipeline.lineage.stages import load_graph, require_suite
from pipeline.lineage.trees import WorkingTree
from sentfold.errors import RunError

MIRROR_VARIABLE = "SENTFOLD_MIRROR"
ERROR = "error: "  # how an error of sentfold begins on the command line


@dataclass(frozen=True)
class RunRequest:
    """What the user asks for.

    suite    quick, or the name of a folder of suites/
    jobs     stages at a time
    targets  stages, groups or paths to bring up to date; none: everything
    profile  another file than run.yaml, from the root of the checkout
    address  of a Dask scheduler, whose workers make the stages; none: threads of this process do
    remote   the DVC remote through which artifacts go to the workers and back
    """

    suite: str = "quick"
    jobs: int = 2
    targets: tuple[str, ...] = ()
    profile: str | None = None
    address: str | None = None
    remote: str | None = None

    def __post_init__(self) -> None:
        """Raise RunError if there is an address without a remote, or the reverse."""
        if bool(self.address) != bool(self.remote):
            raise RunError(
                "workers need an address and a remote",
                where="--address, --remote",
                expected="both, or neither",
                got=f"--address {self.address}" if self.address else f"--remote {self.remote}",
                state="no stage was started",
                remedy="--address tls://HOST:8786 --remote NAME, where `dvc remote list` has NAME; or leave both out",
            )

    @property
    def command(self) -> str:
        """The command line that asks for this; given again, the run continues where it stopped."""
        words = ["--suite", self.suite, "--jobs", str(self.jobs)]
        words += [word for target in self.targets for word in ("--target", target)]
        for option, value in (("--profile", self.profile), ("--address", self.address), ("--remote", self.remote)):
            words += [option, value] if value else []
        return shlex.join(["sentfold", "run", *words])


@dataclass(frozen=True)
class Plan:
    """A request compared with the checkout.

    changed  the stages that `dvc status` names
    stale    the stages to bring up to date, a stage's parents before it
    """

    request: RunRequest
    root: Path
    dvcfile: Path
    graph: StageGraph
    profile: RunProfile
    changed: frozenset[str]
    stale: tuple[str, ...]


def make_plan(request: RunRequest, root: Path, *, check: bool = True) -> Plan:
    """Find out what a run that is about to begin has to do. Only for the holder of the checkout.

    check  if anything is stale: bring the suite's plan.yaml up to date and check the suite, params.yaml and a mirror

    Removes what stages left that are gone: in a folder that a stage reads it would make that stage stale. Raises
    SentfoldError about what is wrong with the suite, its parameters or its mirror. Cost: that of `dvc status`, two
    seconds; of the checks, some more.
    """
    file = root / plan_file(request.suite)
    if not file.is_file():
        _run_pipeline("plan", request.suite, root)
    plan = _compare(request, root)
    if check and plan.stale:
        before = file.read_bytes()
        _run_pipeline("plan", request.suite, root)
        _run_pipeline("check", request.suite, root)
        plan = plan if file.read_bytes() == before else _compare(request, root)
        _require_mirror(plan)
        return plan
    if check and os.environ.get(MIRROR_VARIABLE):  # DVC does not see the mirror
        _run_pipeline("check", request.suite, root)
    return plan


class ToldError(RunError):
    """An error that another command of sentfold has written out, with all its lines."""

    def __str__(self) -> str:
        return self.what


def _run_pipeline(command: str, suite: str, root: Path) -> None:
    """Run a command of the checkout's pipeline. Raises RunError with what it printed if it fails."""
    words = [sys.executable, "-m", "pipeline", command, "--suite", suite]
    done = subprocess.run(words, cwd=root, env=stage_environment(), capture_output=True, text=True, check=False)
    if done.returncode and done.stderr.startswith(ERROR):
        raise ToldError(done.stderr.strip().removeprefix(ERROR))
    if done.returncode:
        raise RunError(
            f"suite '{suite}' cannot be run",
            where=f"sentfold {command} --suite {suite}",
            got="\n".join((done.stdout + done.stderr).strip().splitlines()[-15:]),
            state="no stage was started",
        )


def _require_mirror(plan: Plan) -> None:
    """Raise SourceError if corpora are to be read from a mirror and there is none: each download would fail by itself.

    On another machine a worker has an environment of its own.
    """
    reads_source = any(group_of(stage) == "download" for stage in plan.stale)
    source = read_yaml(plan.root / plan_file(plan.request.suite)).get("source")
    if source != "mirror" or plan.request.address or not reads_source:
        return
    from pipeline.corpora.mirror import mirror_folder

    mirror_folder()


def _compare(request: RunRequest, root: Path) -> Plan:
    tree, dvcfile = WorkingTree(root), require_dvcfile(request.suite, root)
    known = load_graph(tree, request.suite)
    graph = build_graph(known.stages, dvcfile)
    profile = read_profile(root, Path(request.profile) if request.profile else None)
    groups = {group_of(name) for name in graph.names} | set(require_suite(tree, request.suite).get("stages") or {})
    check_profile(profile, groups, where=request.profile or str(PROFILE_FILE))
    selected = select_stages(graph, request.targets)
    clear_leftovers(known, root)
    changed = _changed_patiently(dvcfile, root, profile.retries.contention)
    stale = tuple(name for name in graph.stale(changed) if name in selected)
    return Plan(request, root, dvcfile, graph, profile, changed, stale)


def _changed_patiently(dvcfile: Path, root: Path, retry: Retry) -> frozenset[str]:
    # dvc.yaml could be read, so most likely another dvc process, such as a user's `dvc repro`, writes an output.
    for attempt in range(1, retry.attempts):
        try:
            return changed_stages(dvcfile, root=root)
        except RunError as error:
            typer.echo(f"{error.what}: {error.got}")
            typer.echo(f"attempt {attempt + 1} of {retry.attempts} in {retry.delay * attempt:g} s")
            pause(retry.delay * attempt)
    return changed_stages(dvcfile, root=root)
