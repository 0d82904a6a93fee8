"""Run one stage: `dvc repro --single-item` in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from flows.contention import describe_blocker, is_collision, is_contention
from flows.graph import group_of
from flows.guard import start_guarded
from flows.lockfile import read_outputs
from flows.profile import Retries, Retry
from pipeline.errors import RunError

LOG_FOLDER = Path(".dvc/tmp/sentfold-logs")

# How a stage came to its end. "restored": DVC had the result in its run cache. "unchanged": its
# inputs came out as they were. "skipped": a stage that it needs failed.
Outcome = Literal["ran", "restored", "unchanged", "failed", "skipped"]

# What follows here in a log is DVC's own error, not something that a stage printed.
DVC_ERROR = re.compile(r"^ERROR:.*", re.MULTILINE | re.DOTALL)

# What a stage of a group prints when a server did not answer, and not when it answered wrongly. `embed` has one
# error for both, which quotes the hub's client: no connection, an end in the middle, 5xx, or too many requests.
INTERRUPTIONS = {
    "download": re.compile(r"^error: (an archive cannot be downloaded|the hub cannot be reached)", re.MULTILINE),
    "embed": re.compile(
        r"^error: encoder '[^'\n]*' cannot be fetched\n(?:  (?!got ).*\n)*  got .*"
        r"(?:Connect(?:Error|Timeout)|[Cc]onnection (?:refused|reset|aborted)|check your (?:internet )?connection"
        r"|disconnected|closed connection|timed out|Temporary failure|Server [Ee]rror|\b429 )",
        re.MULTILINE,
    ),
}

# How long a pause goes on after the run was told to stop, at most.
POLL_SECONDS = 0.2

LAST_LINES = 15

# Of a stage whose output another process put into the cache at the same moment. Not for the profile to say, as it is
# over in milliseconds; few, as the same error may be one that stays.
COLLISION = Retry(attempts=3, delay=0.5)


class Stop(Protocol):
    """Says whether a stage is to be ended: a threading.Event, or something like it."""

    def is_set(self) -> bool:
        """Whether to end it."""
        ...


def _quietly(_text: str) -> None:
    pass


@dataclass(frozen=True)
class StageResult:
    """How one stage ended, and whether what it left differs from what dvc.lock had recorded."""

    stage: str
    outcome: Outcome
    seconds: float
    outputs_changed: bool


def run_stage(
    stage: str,
    *,
    dvcfile: Path,
    root: Path,
    resume: str,
    stop: Stop | None = None,
    retries: Retries | None = None,
    say: Callable[[str], None] = _quietly,
) -> StageResult:
    """Bring one stage up to date, its inputs being so already; what it prints goes to its log.

    stage    address as DVC prints it: `embed@x`, `suites/other/dvc.yaml:embed@x`
    resume   the command that takes the run up again, for the error
    stop     ends the stage, and everything it started, when set
    retries  how often, and after how long, a stage is tried again that was in another dvc process's way,
             or whose server did not answer. No other failure is: it would fail again, hours later. (A stage
             whose output came into the cache from two processes at once is tried three times in any case.)
    say      is told in a line when it is tried again

    A stage dies with the process that called this (see guard.py). Raises RunError if it fails.
    """
    log = log_file(stage, root=root)
    log.parent.mkdir(parents=True, exist_ok=True)
    lock = root / dvcfile.with_suffix(".lock")
    name = stage.rpartition(":")[2]
    before = read_outputs(lock).get(name)
    start = time.monotonic()
    log.write_bytes(b"")
    attempt = 0
    while True:
        attempt += 1
        offset = log.stat().st_size
        code = _repro(stage, log, root=root, stop=stop)
        printed = log.read_bytes()[offset:].decode("utf-8", "replace")
        if code == 0:
            after = read_outputs(lock).get(name)
            return StageResult(stage, _outcome(printed), time.monotonic() - start, before is None or after != before)
        why, retry = _reason_to_retry(stage, printed, retries or Retries())
        if attempt >= retry.attempts or (stop and stop.is_set()):
            break
        say(f"{why}; attempt {attempt + 1} of {retry.attempts} in {retry.delay * attempt:g} s")
        pause(retry.delay * attempt, stop)
    raise RunError(
        f"the stage '{stage}' failed with exit code {code}" + (f", {attempt} times" if attempt > 1 else ""),
        where=str(log.relative_to(root)),
        got="\n".join(["the last lines of its log:", *_last_lines(printed)]),
        state="its outputs are gone or incomplete; stages that finished are kept",
        remedy=f"mend the cause, then: {resume}",
    )


def log_file(stage: str, *, root: Path) -> Path:
    """Where the output of a stage's latest run lies."""
    return root / LOG_FOLDER / (re.sub(r"[/:]", "-", stage) + ".log")


def dvc_command(*words: str) -> list[str]:
    """A dvc command line of this very interpreter's dvc, whatever `dvc` the PATH finds; see flows/dvc.py.

    `--wait-for-lock` stands before the subcommand: parallel commands then wait for each other's
    short locks; anywhere else, or without it, stages get lost.
    """
    return [sys.executable, "-m", "flows.dvc", "--wait-for-lock", *words]


def stage_environment() -> dict[str, str]:
    """The environment of dvc and of the stages: `python` is this interpreter, nobody phones home."""
    # No resolve(): a venv's python is a link, and its target does not know the venv's libraries.
    folder = str(Path(sys.executable).parent)
    return {
        **os.environ,
        "PATH": os.pathsep.join([folder, os.environ.get("PATH", os.defpath)]),
        "PYTHONUNBUFFERED": "1",
        "DVC_NO_ANALYTICS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }


def pause(seconds: float, stop: Stop | None = None) -> None:
    """Sleep, but end early if `stop` is set."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not (stop and stop.is_set()):
        time.sleep(min(POLL_SECONDS, seconds))


def wait_for(process: subprocess.Popen[bytes], stop: Stop | None = None) -> int:
    """The exit code of a guarded process; it is ended first if `stop` is set or we are interrupted."""
    try:
        while True:
            try:
                return process.wait(timeout=POLL_SECONDS)
            except subprocess.TimeoutExpired:
                if stop and stop.is_set():
                    process.terminate()
                    return process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise


def _repro(stage: str, log: Path, *, root: Path, stop: Stop | None) -> int:
    with log.open("ab") as output:
        process = start_guarded(
            dvc_command("repro", "--single-item", stage), cwd=root, env=stage_environment(), output=output
        )
        return wait_for(process, stop)


def _reason_to_retry(stage: str, printed: str, retries: Retries) -> tuple[str, Retry]:
    error = DVC_ERROR.search(printed)
    if error and is_contention(error[0]):
        return describe_blocker(error[0]), retries.contention
    if error and is_collision(error[0]):
        return "another dvc process wrote the same content to the cache", COLLISION
    interruption = INTERRUPTIONS.get(group_of(stage))
    if interruption and interruption.search(printed):
        return "its server does not answer", retries.download
    return "", Retry(attempts=1, delay=0)


def _outcome(printed: str) -> Outcome:
    # DVC says it in words only.
    if "is cached - skipping run" in printed:
        return "restored"
    if "didn't change, skipping" in printed and "Running stage" not in printed:
        return "unchanged"
    return "ran"


def _last_lines(printed: str) -> list[str]:
    lines = [line for line in printed.splitlines() if line.strip()]
    return [f"    {line}" for line in lines[-LAST_LINES:]]
