"""Write down each run of a stage, without getting in its way.

Imported by every command, so it imports nothing that costs: the rest is loaded when a stage runs.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shlex
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pipeline import preloaded

if TYPE_CHECKING:
    from pipeline.lineage.stages import Stage


@contextmanager
def recorded(arguments: Sequence[str]) -> Iterator[None]:
    """Record what runs inside, if the command line is a stage's; else do nothing.

    arguments  of the command line, the program's name left out

    Raises RunError if code or parameters of the stage are not what they were when it began: DVC would write down
    the new ones as those that made its outputs.

    Two lines go to .sentfold/runs/<suite>.jsonl: one at the start, which is all that is left of a run that was
    killed, and one at the end with everything. Whatever fails here is a warning; the stage goes on.
    """
    run = _guarded(lambda: start_run(Path.cwd(), arguments))
    if run is None:
        yield
        return
    code, said = 0, ""
    try:
        try:
            yield
        except SystemExit as left:  # how a command line that went well ends
            if exit_code(left) == 0:
                refuse_changes(run)
            raise
        refuse_changes(run)
    except BaseException as error:
        code = exit_code(error)
        said = "" if isinstance(error, SystemExit) else f"{type(error).__name__}: {error}".removesuffix(": ")
        raise
    finally:
        _guarded(lambda: end_run(run, code, said))


def exit_code(error: BaseException) -> int:
    """What the process will exit with."""
    from pipeline.errors import SentfoldError

    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, KeyboardInterrupt):
        return 130
    return 2 if isinstance(error, SentfoldError) else 1


@dataclass(frozen=True)
class Run:
    """A run of a stage that has begun.

    head     what both of its lines say
    sources  sha256 of the files of code that decide its result, by name; parameters: the values that do
    """

    root: Path
    head: dict[str, Any]
    began: datetime
    stage: Stage | None
    code: dict[str, Any]
    sources: dict[str, str]
    parameters: dict[str, Any]


def start_run(root: Path, arguments: Sequence[str]) -> Run | None:
    """Write a run's first line; None if the command is no stage's. Raises OSError, SentfoldError."""
    if not arguments or not _is_stage(root, arguments[0]):
        return None
    from pipeline.lineage.lines import append_line
    from pipeline.lineage.manifest import manifest_path

    suite = suite_of(arguments)
    if not _is_suite(root, suite):
        return None
    command = shlex.join(["python", "-m", "pipeline", *arguments])
    stage = find_stage(root, suite, arguments)
    began = datetime.now(UTC)
    head: dict[str, Any] = {
        "run": uuid.uuid4().hex,
        "suite": suite,
        # None: by hand, with options that no stage of dvc.yaml has.
        "stage": None if stage is None else stage.name,
        "command": command,
        "by_dvc": "DVC_STAGE" in os.environ,
        "pid": os.getpid(),
        # Then its peak memory is that of libraries it may not need, and its time has none of their import.
        "warm": preloaded.warm,
        "started": began.isoformat(timespec="milliseconds"),
    }
    append_line(manifest_path(root, suite), {"event": "started", **head})
    code = describe_code(root, stage)
    return Run(root, head, began, stage, code, _imported_sources(root, stage), _parameters(root, stage))


def refuse_changes(run: Run) -> None:
    """Raise RunError if what decides the result of a stage that DVC started is not what it was when it began."""
    from pipeline.errors import RunError

    if not run.head["by_dvc"]:
        return
    now, parameters = _sources(run.root, run.stage), _parameters(run.root, run.stage)
    changed = sorted(name for name in {*now, *run.sources} if now.get(name) != run.sources.get(name))
    changed += sorted(name for name, values in run.parameters.items() if parameters.get(name) != values)
    if changed:
        raise RunError(
            "code or parameters were changed while the stage ran",
            where=", ".join(changed),
            expected="what they were when it began: DVC would record the new ones beside what the old ones made",
            state="the stage is not recorded as done",
            remedy="run it again",
        )


def end_run(run: Run, code: int, said: str) -> None:
    """Write a run's last line. Cost: hashing the files it read and wrote, the big ones once in their lives."""
    from pipeline.lineage.lines import append_line
    from pipeline.lineage.machine import describe_machine, describe_packages, peak_memory
    from pipeline.lineage.manifest import manifest_path
    from pipeline.lineage.sha256 import Hashes

    ended, peak = datetime.now(UTC), peak_memory()
    hashes = Hashes(run.root)
    deps, outs = ((), ()) if run.stage is None else (run.stage.deps, run.stage.outs)
    record = {
        "event": "ended",
        **run.head,
        "ended": ended.isoformat(timespec="milliseconds"),
        "seconds": round((ended - run.began).total_seconds(), 3),
        "exit": code,
        "error": said,
        "peak_memory_bytes": peak,
        "code": run.code,
        "machine": describe_machine(),
        "packages": describe_packages(),
        "parameters": _parameters(run.root, run.stage),
        "inputs": {name: facts for dep in deps for name, facts in hashes.of(dep).items()},
        "outputs": {name: facts for out in outs for name, facts in hashes.of(out).items()},
    }
    append_line(manifest_path(run.root, run.head["suite"]), record)


def describe_code(root: Path, stage: Stage | None) -> dict[str, Any]:
    """The commit that is checked out, and which files that decide this stage's result differ from it.

    A copy that was sent to a worker has the commit and the changes of the checkout it was made of.
    """
    from pipeline.lineage.origin import kept_origin
    from pipeline.lineage.trees import git

    deciding = ["dvc.yaml", "pipeline/__main__.py", "params.yaml"]
    if stage is not None:
        deciding += [*stage.params, *(dep for dep in stage.deps if not dep.startswith(("data/", "reports/")))]
    # Before git is asked: a copy may lie inside a checkout, ignored, and git then answers for that one.
    if origin := kept_origin(root):
        if origin.commit is None:
            return {"commit": None, "dirty": None}
        places = set(deciding)
        dirty = [path for path in origin.changed if places & {path, *map(str, PurePosixPath(path).parents)}]
        return {"commit": origin.commit, "dirty": dirty}
    commit = git(root, "rev-parse", "HEAD")
    if commit is None:
        return {"commit": None, "dirty": None}
    words = ("--porcelain", "-z", "--no-renames", "--untracked-files=all")
    changed = git(root, "status", *words, "--", *sorted(set(deciding)))
    dirty = sorted(entry[3:] for entry in (changed or b"").decode("utf-8", "replace").split("\0") if entry[3:])
    return {"commit": commit.decode().strip(), "dirty": dirty}


def suite_of(arguments: Sequence[str]) -> str:
    """The suite that a command line names, quick by default."""
    for place, word in enumerate(arguments):
        if word.startswith("--suite="):
            return word.partition("=")[2]
        if word in ("--suite", "-s") and place + 1 < len(arguments):
            return arguments[place + 1]
    return "quick"


def _is_stage(root: Path, command: str) -> bool:
    try:
        return f"python -m pipeline {command} " in (root / "dvc.yaml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def _is_suite(root: Path, suite: str) -> bool:
    """Whether there is such a suite; the stage itself refuses a name that is none, and names become paths."""
    from pipeline.params import SLUG
    from pipeline.suite import suite_file

    return SLUG.fullmatch(suite) is not None and (root / suite_file(suite)).is_file()


def find_stage(root: Path, suite: str, arguments: Sequence[str]) -> Stage | None:
    """The stage of dvc.yaml with this command line. None where there is none, or where a file cannot be read.

    What cannot be read here the stage will complain of, in better words.
    """
    from pipeline.errors import SentfoldError
    from pipeline.lineage.stages import load_stages
    from pipeline.lineage.working_tree import WorkingTree

    try:
        stages = load_stages(WorkingTree(root), suite).values()
    except SentfoldError:
        return None
    return next((stage for stage in stages if shlex.split(stage.command)[3:] == list(arguments)), None)


def _sources(root: Path, stage: Stage | None) -> dict[str, str]:
    deps = () if stage is None else stage.deps
    files = [dep for dep in deps if not dep.startswith(("data/", "reports/")) and (root / dep).is_file()]
    return {name: hashlib.sha256((root / name).read_bytes()).hexdigest() for name in files}


def _imported_sources(root: Path, stage: Stage | None) -> dict[str, str]:
    """The same, but for files that this process had imported before, and that are others now: these equal nothing."""
    sources = _sources(root, stage)
    # After the hashes: whatever is edited from now on has another one at the end.
    others = preloaded.changed_since_imported()
    return {name: "" if str((root / name).absolute()) in others else digest for name, digest in sources.items()}


def _parameters(root: Path, stage: Stage | None) -> dict[str, Any]:
    from pipeline.errors import SentfoldError
    from pipeline.lineage.stages import read_yaml, tracked_values
    from pipeline.lineage.working_tree import WorkingTree

    tree = WorkingTree(root)
    wanted = {} if stage is None else stage.params
    try:
        return {file: tracked_values(read_yaml(tree, file) or {}, keys) for file, keys in wanted.items()}
    except SentfoldError:
        return {}


def _guarded(action: Any) -> Any:
    try:
        return action()
    except Exception as error:  # noqa: BLE001  (whatever it is, the stage's own work is worth more)
        # After whatever the stage itself has to say.
        atexit.register(print, f"warning: this run is not in the manifest: {_words(error)}", file=sys.stderr)
        return None


def _words(error: Exception) -> str:
    said = error.strerror if isinstance(error, OSError) else str(error)
    return f"{type(error).__name__}: {said}".splitlines()[0]
