"""Record each run of a stage, without getting in its way.

Every command imports this module, so it imports nothing that costs; the rest is loaded when a stage runs.
"""

from __future__ import annotations

import atexit
import os
import shlex
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sentfold.suggestions import hide_passwords

if TYPE_CHECKING:
    from pipeline.lineage.stages import Stage

T = TypeVar("T")


@contextmanager
def recorded(arguments: Sequence[str]) -> Iterator[None]:
    """Record what runs inside, if the command line is a stage's; else do nothing.

    arguments  of the command line, without the program's name

    Raises RunError if code or parameters of the stage are not what they were when it began: DVC would record the
    new ones as those that made the outputs.

    Two lines go to .sentfold/runs/<suite>.jsonl: one at the start, which is all that a killed run leaves, and one
    at the end with everything. A failure to record is a warning; the stage continues.
    """
    run = _guarded(lambda: start_run(Path.cwd(), arguments))
    if run is None:
        yield
        return
    code, message = 0, ""
    try:
        try:
            yield
        except SystemExit as left:  # how a successful command line ends
            if exit_code(left) == 0:
                refuse_changes(run)
            raise
        refuse_changes(run)
    except BaseException as error:
        code = exit_code(error)
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
        message = "" if isinstance(error, SystemExit) else hide_passwords(said)
        raise
    finally:
        _guarded(lambda: end_run(run, code, message))


def exit_code(error: BaseException) -> int:
    """The code that the process will exit with."""
    from sentfold.errors import SentfoldError

    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, KeyboardInterrupt):
        return 130
    return error.exit_code if isinstance(error, SentfoldError) else 1


@dataclass(frozen=True)
class Run:
    """A run of a stage that has begun.

    head        what both of its lines hold
    code        the commit, and the files that differ from it
    sources     md5 of each file of code that the stage declares, by name
    parameters  the values that the stage declares, by file
    stamps      bytes and time of change of the files of these values
    touched     size and time of change of the declared files that are no modules, such as tables
    """

    root: Path
    head: dict[str, Any]
    began: datetime
    stage: Stage | None
    code: dict[str, Any]
    sources: dict[str, str]
    parameters: dict[str, Any]
    stamps: dict[str, tuple[bytes, int]]
    touched: dict[str, tuple[int, int]]


def start_run(root: Path, arguments: Sequence[str]) -> Run | None:
    """Write the first line of a run; None if the command is no stage's. Raises OSError, SentfoldError."""
    if not arguments or not _is_stage(root, arguments[0]):
        return None
    from pipeline.lineage.machine import describe_code
    from pipeline.lineage.runs import append_line, runs_path

    suite = suite_of(arguments)
    if not _is_suite(root, suite):
        return None
    stage = find_stage(root, suite, arguments)
    began = datetime.now(UTC)
    head: dict[str, Any] = {
        "run": uuid.uuid4().hex,
        "suite": suite,
        "stage": None if stage is None else stage.name,  # None: by hand, with options that no stage of dvc.yaml has
        "command": shlex.join(["python", "-m", "pipeline", *arguments]),
        "by_dvc": "DVC_STAGE" in os.environ,
        "pid": os.getpid(),
        "started": began.isoformat(timespec="milliseconds"),
    }
    append_line(runs_path(root, suite), {"event": "started", **head})
    sources, parameters = _sources(root, stage), _parameters(root, stage)
    code, stamps, touched = describe_code(root, stage), _stamps(root, parameters), _touched(root, sources)
    return Run(root, head, began, stage, code, sources, parameters, stamps, touched)


def refuse_changes(run: Run) -> None:
    """Raise RunError if the code or the parameters of a stage that DVC started have changed since it began.

    A change that was taken back counts where a module was loaded in between, and of every other file that the stage
    declares: nothing says when the file was read. A file of parameters may change in lines of other stages.
    """
    from pipeline import SourceLoader
    from pipeline.lineage.stages import alike
    from sentfold.errors import RunError

    if not run.head["by_dvc"]:
        return
    now, parameters = _sources(run.root, run.stage), _parameters(run.root, run.stage)
    ran = {name: SourceLoader.loaded.get(os.path.realpath(run.root / name), md5) for name, md5 in now.items()}
    touched = _touched(run.root, now)
    changed = sorted(
        name
        for name in {*now, *run.sources}
        if {now.get(name), ran.get(name)} != {run.sources.get(name)} or touched.get(name) != run.touched.get(name)
    )
    stamps = _stamps(run.root, run.parameters)
    changed += sorted(
        name
        for name, values in run.parameters.items()
        if not alike(parameters.get(name), values) or _put_back(run.stamps.get(name), stamps.get(name))
    )
    if changed:
        raise RunError(
            "code or parameters were changed while the stage ran",
            where=", ".join(changed),
            expected="what they were when it began: DVC would record the new ones with the outputs of the old ones",
            state="the stage is not recorded as done",
            remedy="run it again",
        )


def end_run(run: Run, code: int, message: str) -> None:
    """Write the last line of a run. Cost: hashing the files that it wrote; dvc.lock has the hashes of what it read."""
    from pipeline.lineage.machine import describe_machine, describe_packages, hash_packages, keep_loaded, peak_memory
    from pipeline.lineage.runs import append_line, files_under, runs_path
    from sentfold.files import sha256_of

    ended, peak = datetime.now(UTC), peak_memory()
    files = [file for out in (run.stage.outs if run.stage else ()) for file in files_under(run.root, out)]
    record = {
        "event": "ended",
        **run.head,
        "ended": ended.isoformat(timespec="milliseconds"),
        "seconds": round((ended - run.began).total_seconds(), 3),
        "exit": code,
        "error": message,
        "peak_memory_bytes": peak,
        "code": keep_loaded(run.root, run.code),
        "machine": describe_machine(),
        "packages": describe_packages(),
        "files_of_packages_sha256": hash_packages(),
        "parameters": _parameters(run.root, run.stage),
        "outputs": {file: {"sha256": sha256_of(run.root / file)} for file in files},
    }
    append_line(runs_path(run.root, run.head["suite"]), record)


# --- which stage ------------------------------------------------------------------------------------


def suite_of(arguments: Sequence[str]) -> str:
    """The suite that a command line names, quick by default."""
    return _split_suite(arguments)[0]


def _split_suite(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The suite that a command line names, quick by default, and the other words."""
    suite, others, words = "quick", list[str](), iter(arguments)
    for word in words:
        if word in ("--suite", "-s"):
            suite = next(words, suite)
        elif word.startswith(("--suite=", "-s")):
            suite = word.removeprefix("--suite=").removeprefix("-s")
        else:
            others.append(word)
    return suite, others


def _is_stage(root: Path, command: str) -> bool:
    try:
        return f"python -m pipeline {command} " in (root / "dvc.yaml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def _is_suite(root: Path, suite: str) -> bool:
    """Whether there is such a suite. The stage itself refuses a name that is no name; names become paths."""
    from pipeline.base.suite import suite_file
    from sentfold.settings import SLUG

    return SLUG.fullmatch(suite) is not None and (root / suite_file(suite).with_name("dvc.yaml")).is_file()


def find_stage(root: Path, suite: str, arguments: Sequence[str]) -> Stage | None:
    """The stage of dvc.yaml with this command line, however that names the suite. None if there is none.

    None if a file cannot be read, too: the stage itself reports a file that cannot be read, in better words.
    """
    from pipeline.lineage.stages import load_stages
    from pipeline.lineage.trees import WorkingTree
    from sentfold.errors import SentfoldError

    try:
        stages = load_stages(WorkingTree(root), suite).values()
    except SentfoldError:
        return None
    called = _split_suite(arguments)
    return next((stage for stage in stages if _split_suite(shlex.split(stage.command)[3:]) == called), None)


# --- what decides its result --------------------------------------------------------------------------


def _sources(root: Path, stage: Stage | None) -> dict[str, str]:
    from pipeline.lineage.machine import DATA_FOLDERS
    from pipeline.lineage.trees import WorkingTree

    tree = WorkingTree(root)
    found: dict[str, str] = {}
    for dep in () if stage is None else stage.deps:
        digest = None if dep.startswith(DATA_FOLDERS) else tree.digest(dep)
        if digest is not None:
            found |= {f"{dep}/{name}": md5 for name, md5 in digest.files.items()} or {dep: digest.md5}
    return found


def _touched(root: Path, sources: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Size and time of change of each file that is no module; editors and git put a file back with another time."""
    facts = {name: (root / name).stat() for name in sources if not name.endswith(".py") and (root / name).is_file()}
    return {name: (fact.st_size, fact.st_mtime_ns) for name, fact in facts.items()}


def _stamps(root: Path, files: Iterable[str]) -> dict[str, tuple[bytes, int]]:
    there = [name for name in files if (root / name).is_file()]
    return {name: ((root / name).read_bytes(), (root / name).stat().st_mtime_ns) for name in there}


def _put_back(before: tuple[bytes, int] | None, after: tuple[bytes, int] | None) -> bool:
    """Whether a file has the same bytes with another time of change."""
    return before is not None and after is not None and before[0] == after[0] and before[1] != after[1]


def _parameters(root: Path, stage: Stage | None) -> dict[str, Any]:
    from pipeline.lineage.stages import read_yaml, tracked_values
    from pipeline.lineage.trees import WorkingTree
    from sentfold.errors import SentfoldError

    tree = WorkingTree(root)
    wanted = {} if stage is None else stage.params
    try:
        return {file: tracked_values(read_yaml(tree, file) or {}, keys) for file, keys in wanted.items()}
    except SentfoldError:
        return {}


def _guarded(action: Callable[[], T]) -> T | None:
    try:
        return action()
    except Exception as error:  # noqa: BLE001  (whatever it is, the stage's own work is worth more)
        # At exit: after everything that the stage itself prints.
        atexit.register(print, f"warning: this run is not in the manifest: {_words(error)}", file=sys.stderr)
        return None


def _words(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) else str(error)
    return f"{type(error).__name__}: {text}".splitlines()[0]
