"""What one run is asked to do, and what it has to do for that."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import typer

from flows.check import check_suite
from flows.contention import BusyError
from flows.graph import StageGraph, read_graph, require_dvcfile, stage_groups, stale_stages
from flows.leftovers import clear_leftovers
from flows.profile import PROFILE_FILE, Retry, RunProfile, check_profile, read_profile
from flows.run_stage import pause
from flows.targets import select_stages
from flows.uptodate import remember, surely_up_to_date
from pipeline.errors import RunError

Runner = Literal["threads", "dask"]


@dataclass(frozen=True)
class RunRequest:
    """What the user asks for.

    suite    quick, or the name of a folder of suites/
    jobs     stages at a time
    targets  stages, groups or paths to bring up to date; none: everything
    profile  another file than run.yaml, from the root of the checkout
    runner   where stages run: in threads of this process, or on Dask workers
    address  of a Dask scheduler; none: a cluster of `jobs` processes on this machine for this run
    """

    suite: str = "quick"
    jobs: int = 2
    targets: tuple[str, ...] = ()
    profile: str | None = None
    runner: Runner = "threads"
    address: str | None = None

    def __post_init__(self) -> None:
        """Raise RunError if the runner is unknown, or has no use for the address."""
        if self.runner not in get_args(Runner) or (self.address and self.runner != "dask"):
            raise RunError(
                "there is no such runner" if not self.address else "only the runner 'dask' has an address",
                where="--runner",
                expected=f"one of: {', '.join(get_args(Runner))}",
                got=self.runner,
                state="no stage was started",
                remedy="--runner dask --address tcp://HOST:8786, or leave both out",
            )

    @property
    def command(self) -> str:
        """The command line that asks for this; run again, it takes up where a run stopped."""
        words = ["sentfold", "run", "--suite", self.suite, "--jobs", str(self.jobs)]
        for target in self.targets:
            words += ["--target", target]
        if self.profile:
            words += ["--profile", self.profile]
        if self.runner != "threads":
            words += ["--runner", self.runner]
        if self.address:
            words += ["--address", self.address]
        return shlex.join(words)


@dataclass(frozen=True)
class Plan:
    """A request held against the checkout.

    stale  the stages to bring up to date, a stage's parents before it
    """

    request: RunRequest
    root: Path
    dvcfile: Path
    graph: StageGraph
    profile: RunProfile
    stale: tuple[str, ...]


# A run from the command line has made its plan before it knows that it needs Prefect at all; the flow
# takes it from here. Prefect would show it among the parameters, and wants those as JSON.
_PREPARED: ContextVar[Plan | None] = ContextVar("prepared plan", default=None)


@contextmanager
def handed_on(plan: Plan) -> Iterator[None]:
    """Let `handed_plan` return `plan` for the length of a `with` block, in this thread."""
    token = _PREPARED.set(plan)
    try:
        yield
    finally:
        _PREPARED.reset(token)


def handed_plan() -> Plan | None:
    """The plan that whoever calls the flow has made already."""
    return _PREPARED.get()


def prepare(request: RunRequest, root: Path, *, check: bool) -> Plan | None:
    """The plan of a run that is about to begin; None if nothing can be stale, as no file was touched since.

    check  hold params.yaml, the suite file and the catalogue against each other first
    """
    # Targets have to be looked up, so they need the graph.
    touched = bool(request.targets) or not surely_up_to_date(request.suite, root)
    if check:
        check_suite(request.suite, touched=touched)
    if touched:
        # Before DVC is asked: a leftover in a folder that a stage reads makes that stage stale.
        clear_leftovers(request.suite, root)
    return make_plan(request, root) if touched else None


def make_plan(request: RunRequest, root: Path) -> Plan:
    """Read profile, graph and status; remember it if nothing at all is stale. Nothing is run.

    Raises RunError or ParameterError about what cannot be read, or is not there.
    """
    dvcfile = require_dvcfile(request.suite, root)
    profile = read_profile(root, Path(request.profile) if request.profile else None)
    graph = _read_patiently(dvcfile, root, profile.retries.contention)
    check_profile(profile, graph, stage_groups(root / dvcfile), where=request.profile or str(PROFILE_FILE))
    stale = stale_stages(graph)
    if not stale:
        remember(request.suite, graph, root)
    selected = select_stages(graph, request.targets)
    return Plan(request, root, dvcfile, graph, profile, tuple(name for name in stale if name in selected))


def _read_patiently(dvcfile: Path, root: Path, retry: Retry) -> StageGraph:
    for attempt in range(1, retry.attempts):
        try:
            return read_graph(dvcfile, root=root)
        except BusyError as error:
            typer.echo(f"{error.what}; attempt {attempt + 1} of {retry.attempts} in {retry.delay * attempt:g} s")
            pause(retry.delay * attempt)
    return read_graph(dvcfile, root=root)
