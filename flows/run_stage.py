"""Bring one stage up to date: `dvc repro --single-item` in a process of its own.

What happened is read from files: dvc's exit code, dvc.lock before and after, and the record that the stage writes of
its own run (pipeline/lineage/recorder.py).
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from flows.processes import Stop, dvc_command, dvc_environment, new_log, pause, start_guarded, wait_for
from flows.profile import Retries, Retry
from flows.recovery import read_lock
from pipeline.environment import stage_environment
from pipeline.lineage.runs import read_lines, runs_path
from pipeline.lineage.stages import load_stages
from pipeline.lineage.trees import WorkingTree
from sentfold.errors import RunError

LOG_FOLDER = Path(".dvc/tmp/sentfold-logs")

# How a stage ended. "restored": DVC had the result in its run cache. "unchanged": the stage's inputs came out as they
# were. "skipped": a stage that it needs failed.
Outcome = Literal["ran", "restored", "unchanged", "failed", "skipped"]

LAST_LINES = 15


@dataclass(frozen=True)
class Order:
    """What all stages of one run have in common.

    dvcfile  the suite's dvc.yaml, from the root of the checkout
    resume   the command that continues the run, for errors
    sent     environment variables that travel to the machine of the stage
    """

    suite: str
    dvcfile: Path
    root: Path
    resume: str
    retries: Retries = field(default_factory=Retries)
    sent: Mapping[str, str] = field(default_factory=dict)

    @property
    def lock(self) -> Path:
        """The suite's dvc.lock."""
        return self.root / self.dvcfile.with_suffix(".lock")


@dataclass(frozen=True)
class StageResult:
    """How one stage ended, and whether its outputs differ from those that dvc.lock had recorded."""

    stage: str
    outcome: Outcome
    seconds: float
    outputs_changed: bool


# A function that brings a stage up to date, and one that ends all stages which it is at.
Maker = tuple[Callable[[str], StageResult], Callable[[], None]]


@dataclass(frozen=True)
class Attempt:
    """One `dvc repro` of a stage.

    code        dvc's exit code
    has_begun   whether the stage's own command began
    stage_code  the exit code of that command; None: there was none, or it was killed
    """

    code: int
    has_begun: bool
    stage_code: int | None

    def reason_to_retry(self, retries: Retries) -> tuple[str, Retry] | None:
        """Why the stage is worth another attempt, and how often it is; None if it is not."""
        if self.stage_code == os.EX_TEMPFAIL:
            return "its server does not answer", retries.download
        # Another dvc process held a path that this one needs, or put equal content into the cache at the same moment.
        if self.stage_code == 0 or not self.has_begun:
            return "dvc failed, the stage did not", retries.contention
        return None


def run_stage(
    stage: str, order: Order, *, stop: Stop | None = None, say: Callable[[str], None] = lambda _text: None
) -> StageResult:
    """Bring one stage up to date, its inputs being up to date already; what the stage prints goes to its log.

    stage  address as DVC prints it: `embed@x`, `suites/other/dvc.yaml:embed@x`
    stop   ends the stage, and everything it started, when set
    say    is told in a line when the stage is tried again

    A stage is tried again if dvc failed although the stage's own command did not, or if the stage says that a server
    did not answer; any other failure would come again. Raises RunError if the stage fails.
    """
    log = new_log(log_file(stage, root=order.root))
    log.write_bytes(b"")
    before, start = _locked(stage, order), time.monotonic()
    number = 0
    while True:
        number += 1
        attempt = _repro(stage, order, log, stop)
        if attempt.code == 0:
            result = _result(stage, order, before, attempt, time.monotonic() - start)
            if result.outcome != "ran":
                require_recorded(stage, order)
            return result
        retry = attempt.reason_to_retry(order.retries)
        if retry is None or number >= retry[1].attempts or (stop and stop.is_set()):
            raise _failure(stage, order, log, attempt.code, number)
        why, seconds = retry[0], retry[1].delay * number
        say(f"{why}; attempt {number + 1} of {retry[1].attempts} in {seconds:g} s")
        pause(seconds, stop)


def log_file(stage: str, *, root: Path) -> Path:
    """The file with what a stage's latest run printed."""
    return root / LOG_FOLDER / (re.sub(r"[/:]", "-", stage) + ".log")


def _repro(stage: str, order: Order, log: Path, stop: Stop | None) -> Attempt:
    records = runs_path(order.root, order.suite)
    begin = records.stat().st_size if records.exists() else 0
    with log.open("ab") as output:
        command = dvc_command("repro", "--single-item", stage)
        environment = dvc_environment(order.root, stage_environment(order.sent))
        code = wait_for(start_guarded(command, cwd=order.root, env=environment, output=output), stop)
    events = [event for event in read_lines(records, begin)[0] if event.get("stage") == stage.rpartition(":")[2]]
    ended = [event.get("exit") for event in events if event.get("event") == "ended"]
    return Attempt(code, bool(events), ended[-1] if ended else None)


def _locked(stage: str, order: Order) -> Any:
    """What dvc.lock records of a stage; None: nothing, or another dvc process is writing the file."""
    try:
        return (read_lock(order.lock.read_bytes()) or {}).get(stage.rpartition(":")[2])
    except FileNotFoundError:
        return None


def _result(stage: str, order: Order, before: Any, attempt: Attempt, seconds: float) -> StageResult:
    after = _locked(stage, order)
    changed = before is None or after is None or before.get("outs") != after.get("outs")
    outcome: Outcome = "ran" if attempt.stage_code == 0 else "unchanged" if before == after else "restored"
    return StageResult(stage, outcome, seconds, changed)


def require_recorded(stage: str, order: Order) -> None:
    """Raise RunError if an output that DVC brought is not what dvc.lock records; that output is removed.

    DVC compares no read-only file of its cache with its hash, and a power cut can leave half of such a file. An output
    is what dvc.yaml says: dvc.lock can name any folder of the user's. One behind a link is named, and left.
    """
    tree, name = WorkingTree(order.root), stage.rpartition(":")[2]
    recorded = {out["path"]: out.get("md5") for out in (_locked(stage, order) or {}).get("outs", ())}
    for path in load_stages(tree, order.suite)[name].outs:
        here, place = tree.digest(path), order.root / path
        if path not in recorded or here is None or here.md5 == recorded[path]:
            continue
        is_inside = place.parent.resolve() == order.root.resolve() / Path(path).parent
        if is_inside and place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        elif is_inside:
            place.unlink()
        raise RunError(
            f"DVC brought a damaged output of the stage '{stage}'",
            where=path,
            expected=f"md5 {recorded[path]}, as dvc.lock records",
            got=f"md5 {here.md5}",
            state=f"{'the output was removed' if is_inside else 'the output is behind a link, and is still there'}; "
            "stages that finished are kept",
            remedy=f"{'' if is_inside else f'remove {place.resolve()}; '}chmod -R u+w the folder that `dvc cache dir` "
            f"names: DVC then compares each file with its hash; then: {order.resume}",
        )


def _failure(stage: str, order: Order, log: Path, code: int, attempts: int) -> RunError:
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return RunError(
        f"the stage '{stage}' failed with exit code {code}" + (f", {attempts} times" if attempts > 1 else ""),
        where=str(log.relative_to(order.root)),
        got="\n".join(["the last lines of its log:", *(f"    {line}" for line in lines[-LAST_LINES:])]),
        state="its outputs are gone or incomplete; stages that finished are kept",
        remedy=f"remove the cause, then: {order.resume}",
    )
