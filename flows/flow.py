"""The flows `sentfold`, `sentfold-append` and `sentfold-audit`: what a command or a schedule runs.

Prefect decides nothing that DVC decides: a task is one `dvc repro` of one stage. DVC alone knows what is stale, what
is cached, and what dvc.lock records.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import Event
from typing import Any, BinaryIO

import typer
from prefect import flow, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext
from prefect.logging import get_run_logger
from prefect.task_runners import ThreadPoolTaskRunner

from flows.lock import hold_checkout
from flows.plan import Plan, RunRequest, make_plan
from flows.processes import start_guarded, wait_for
from flows.progress import Progress, Summary, shown, unfinished, usual_seconds
from flows.recovery import keep_unknown_files, recover
from flows.run_stage import Maker, StageResult, run_stage
from flows.schedule import End, Start, end_of, execute, order_of
from pipeline.environment import stage_environment
from pipeline.lineage.runs import ended_runs
from pipeline.lineage.stages import load_graph
from pipeline.lineage.trees import WorkingTree
from pipeline.summary import summary_text
from sentfold.data.tables import DataError, refuse_holes
from sentfold.errors import RunError, first_line

# What `open` says of a link, a socket, a folder, and a file that is gone.
COPIES = "sentfold-append-"  # what folders of private copies begin with
COPY = re.compile(rf"\S*/{COPIES}\w+/")
NO_FILE = (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.ENOENT)


@flow(name="sentfold", flow_run_name="{suite}", persist_result=False)
def sentfold(
    suite: str = "quick",
    jobs: int = 2,
    targets: list[str] | None = None,
    profile: str | None = None,
    address: str | None = None,
    remote: str | None = None,
    wait: bool = True,
    check: bool = True,
) -> Summary:
    """Bring a suite of the checkout in the working folder up to date.

    suite    quick, or the name of a folder of suites/
    jobs     stages at a time
    targets  stages, groups or output paths; none: everything
    profile  another file than run.yaml
    address  of a Dask scheduler, whose workers make the stages; none: threads of this process do
    remote   the DVC remote through which artifacts go to the workers and back
    wait     for another run that holds the checkout; false: fail at once
    check    the suite, params.yaml and a mirror first

    Raises RunError if stages failed, naming each with cause and log; what does not need them is finished.
    """
    start = time.monotonic()
    request, root, say = RunRequest(suite, jobs, tuple(targets or ()), profile, address, remote), Path.cwd(), _lines()
    with hold_checkout(root, wait=wait, purpose=request.command, say=say):
        if request.remote:
            from flows.dask_route import pull_recorded

            pull_recorded(request, root)
        plan = make_plan(request, root, check=check)
        progress = Progress(plan.stale, usual_seconds(root, suite, plan.stale), say)
        try:
            with shown(progress), stage_tasks(plan, progress) as start_stage:
                execute(plan, progress, start_stage)
        finally:
            recover(root)
    summary = Summary(tuple(progress.results.values()), time.monotonic() - start)
    say(str(summary))
    _publish(suite, summary, root)
    if progress.errors:
        raise unfinished(progress.errors, summary, resume=request.command)
    return summary


@flow(name="sentfold-audit", flow_run_name="audit of {suite}", persist_result=False)
def audit(suite: str = "quick", options: list[str] | None = None) -> None:
    """Run `sentfold audit` on the checkout in the working folder, in a process of its own.

    suite    quick, or the name of a folder of suites/
    options  more of its options, such as ["--recompute", "sample"] or ["--strict"]

    What it prints becomes the artifact `sentfold-<suite>-audit`. An audit only reads the checkout, so it takes no
    lock. Raises RunError unless the audit exits 0.
    """
    _run_commands([["pipeline", "audit", "--suite", suite, *(options or [])]], key=f"sentfold-{suite}-audit")


@flow(name="sentfold-append", flow_run_name="texts of {texts}", persist_result=False)
def append(texts: str, target: str, encoder: str, space: str, suite: str | None = None, jobs: int = 2) -> None:
    """Run `sentfold append` on each file of a folder where new sentences arrive; then bring a suite up to date.

    texts    the folder
    target   the Parquet file of texts and vectors to begin or to add to
    encoder  whose vectors the space was fitted on
    space    the folder that `sentfold decide` or `sentfold compress` wrote
    suite    whose stale stages run afterwards; none: no suite

    A file that cannot be read stops no other, nor the suite, but fails the run. A text that the target has is left out,
    so a firing that was missed, or comes twice, changes nothing; the lock of the checkout keeps two apart. What
    `append` prints becomes the artifact `sentfold-append`. Raises RunError.
    """
    root, options = Path.cwd(), ["--encoder", encoder, "--space", space]
    with hold_checkout(root, wait=True, purpose=f"sentfold append {texts} {target}", say=_lines()):
        unread: list[str] = []
        copies = private_copies(arrived_files(root / texts), unread)
        commands = (["flows.launch", "sentfold.cli.main", "append", copy, target, *options] for copy in copies)
        failed: RunError | None = None
        try:
            _run_commands(commands, key="sentfold-append", unread=unread)
        except RunError as error:
            failed = error
    if suite:
        sentfold(suite=suite, jobs=jobs)
    if failed is not None:
        raise failed


def arrived_files(folder: Path) -> list[str]:
    """The files of a folder in the order of their names; no links, pipes and folders.

    Whoever may put files there could make a link to a file that only the account of the flow may read.
    """
    return sorted(str(file) for file in folder.iterdir() if file.is_file() and not file.is_symlink())


def private_copies(files: Iterable[str], unread: list[str]) -> Iterator[str]:
    """A copy of each file in a folder that nobody else can open, there until the next is asked for.

    unread  takes the files that cannot be opened or copied, each with the reason

    What is no regular file any more is left out: whoever may put files there can make a link of one at any moment.
    """
    for file in files:
        try:
            stream = os.fdopen(os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
        except OSError as error:
            if error.errno not in NO_FILE:
                unread.append(f"{file}: {error.strerror}")
            continue
        with stream, tempfile.TemporaryDirectory(prefix=COPIES) as folder:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                continue
            copy = Path(folder) / Path(file).name
            try:
                refuse_holes(Path(f"/proc/self/fd/{stream.fileno()}"))
                with copy.open("wb") as target:
                    _copy(stream, target)
            except (OSError, DataError) as error:
                unread.append(f"{file}: {first_line(error)}")
                continue
            yield str(copy)


def _copy(source: BinaryIO, target: BinaryIO) -> None:
    """Copy a file as large as it is now. Raises OSError for one that grows meanwhile: it could fill the disk."""
    left = os.fstat(source.fileno()).st_size
    while left > 0 and (block := source.read(min(left, 1 << 20))):
        target.write(block)
        left -= len(block)
    if source.read(1):
        raise OSError("the file grew while it was copied")


def _run_commands(commands: Iterable[list[str]], *, key: str, unread: Sequence[str] = ()) -> None:
    """Run modules with arguments, one after the other; what they print is an artifact.

    unread  files for which there is no command, as they cannot be read; complete after the last command
    Raises RunError if a command failed, or if there are such files.
    """
    ended: list[tuple[int, str]] = []
    with tempfile.TemporaryFile() as output:
        for words in commands:
            started = start_guarded(
                [sys.executable, "-m", *words], cwd=Path.cwd(), env=stage_environment(), output=output
            )
            ended.append((wait_for(started), " ".join(words)))
        for file in unread:
            output.write(f"error: a file cannot be read: {file}\n".encode("utf-8", "backslashreplace"))
            ended.append((1, f"to read {file}"))
        output.seek(0)
        printed = COPY.sub("", output.read().decode("utf-8", "replace")).rstrip() or "nothing"
    failures = [one for one in ended if one[0]]
    get_run_logger().info(printed)
    create_markdown_artifact(fenced(printed), key=key, description=f"{len(failures)} of {len(ended)} failed")
    if failures:
        code, command = failures[0]
        raise RunError(
            f"a command ended with exit code {code}, and {len(failures) - 1} of {len(ended) - 1} others failed",
            where=COPY.sub("", command),
            got="\n".join(printed.splitlines()[-15:]),
            state="what it had finished is kept",
            remedy=f"its whole output is the artifact {key} of this run",
        )


def fenced(text: str) -> str:
    """A text as a block of Markdown that no row of backticks in the text can end."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}\n"


# DVC keeps the results and knows which of them hold; a second memory could only disagree.
@task(name="stage", task_run_name="{stage}", persist_result=False, cache_policy=NO_CACHE)
def reproduce_stage(stage: str, make: Callable[[str], StageResult]) -> StageResult:
    """Bring one stage up to date, here or on a worker. Raises RunError if the stage fails."""
    return make(stage)


@contextmanager
def stage_tasks(plan: Plan, progress: Progress) -> Iterator[Start]:
    """Start stages as Prefect tasks, in as many threads as the plan has jobs. An error ends those that still run."""
    runner: Any = ThreadPoolTaskRunner(max_workers=plan.request.jobs)
    with _maker(plan, progress) as (make, stop), runner:

        def make_after_copies(stage: str) -> StageResult:
            keep_unknown_files(stage, plan.request.suite, plan.root, say=lambda text: progress.note(stage, text))
            return make(stage)

        def start(stage: str, done: Callable[[End], None]) -> None:
            future = runner.submit(reproduce_stage, {"stage": stage, "make": make_after_copies})
            future.add_done_callback(lambda ended: done(end_of(stage, ended)))

        try:
            yield start
        except BaseException:
            # Prefect waits for its threads before an interrupt gets through, and the threads wait for their stages.
            stop()
            raise


def _maker(plan: Plan, progress: Progress) -> AbstractContextManager[Maker]:
    if not plan.request.address:
        order, stop = order_of(plan), Event()

        def make(stage: str) -> StageResult:
            return run_stage(stage, order, stop=stop, say=lambda text: progress.note(stage, text))

        return nullcontext((make, stop.set))
    # In the function: importing Dask takes a second.
    from flows.dask_route import stages_on_workers

    return stages_on_workers(plan)


def _lines() -> Callable[[str], None]:
    """Where lines go: to Prefect's pages always, and to standard output if no worker already sends them there."""
    logger = get_run_logger()
    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None and context.flow_run.deployment_id is not None:
        return logger.info

    def both(line: str) -> None:
        typer.echo(line)
        logger.info(line)

    return both


def _publish(suite: str, summary: Summary, root: Path) -> None:
    """Put the suite's table, the times of the stages, and what each wrote where, on Prefect's pages.

    The artifacts are `sentfold-<suite>-{results,stages,lineage}`.
    """
    if (root / "reports" / suite / "summary.txt").is_file():
        text = fenced(summary_text(root, suite))
        create_markdown_artifact(text, key=f"sentfold-{suite}-results", description=str(summary))
    rows = [
        {"stage": result.stage, "outcome": result.outcome, "seconds": round(result.seconds, 1)}
        for result in summary.results
    ]
    if rows:
        create_table_artifact(rows, key=f"sentfold-{suite}-stages", description=str(summary))
        create_table_artifact(_lineage(suite, summary, root), key=f"sentfold-{suite}-lineage")


def _lineage(suite: str, summary: Summary, root: Path) -> list[dict[str, str]]:
    """Each output of the stages of a run: its hash in dvc.lock, and the last recorded run of its stage."""
    locked, runs = load_graph(WorkingTree(root), suite).locked, {run["stage"]: run for run in ended_runs(root, suite)}
    names = [result.stage.rpartition(":")[2] for result in summary.results]
    rows = []
    for name in names:
        run = runs.get(name, {"machine": {"host": ""}, "code": {"commit": ""}, "started": ""})
        made = {"host": run["machine"]["host"], "commit": str(run["code"]["commit"]), "started": run["started"]}
        outs = locked[name].outs.values() if name in locked else ()
        rows += [{"stage": name, "output": out.path, "md5": out.md5, **made} for out in outs]
    return rows
