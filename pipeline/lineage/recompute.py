"""Run stages again, each in a folder that holds its declared inputs alone, and compare every byte that they write.

The code that runs is the audited tree's: to recompute a stranger's commit is to run the stranger's code.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import random
import re
import shutil
import tempfile
import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pyarrow as pa

from pipeline.corpora.unpack import unpack_gzip
from pipeline.lineage.checks import StageChecks
from pipeline.lineage.hashes import LineageError
from pipeline.lineage.isolated_stage import lay_out, run_command
from pipeline.lineage.machine import describe_differences, describe_packages, pins_in
from pipeline.lineage.runs import parse_object
from pipeline.lineage.scope import Cause, Scope, brief, listed
from pipeline.lineage.stages import Entry, Graph, Stage
from pipeline.lineage.trees import Tree, WorkingTree
from pipeline.lineage.witnesses import REQUIREMENTS
from sentfold.errors import SourceError, first_line
from sentfold.files import read_parquet
from sentfold.numeric_profile import NAME, is_supported

Which = Literal["report", "sample", "all"]
REFUSED = 2  # the exit code of an error of sentfold
Outcome = Literal["equal", "within bound", "differs", "failed", "skipped"]

# By how much a printed number may differ on a processor outside of the numeric profile, on the scale of the page.
BOUND = 0.05
SAMPLE = 4
SCRATCH = "sentfold-audit-"
LOCK = "lock"
MARK = b"An audit holds this lock while it lives. A later audit removes a folder whose lock is free.\n"

NUMBER = re.compile(r"[-+−]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
PACKED = re.compile(r"\bH4sI[A-Za-z0-9+/]+={0,2}")  # base64 of what gzip writes
HASH = re.compile(r"\b[0-9a-f]{32,64}(?:\.dir)?\b")
AROUND = 30  # characters that a message shows on either side of a difference


@dataclass(frozen=True)
class Remade:
    """What came of running one stage again.

    about     the first difference, or why it was skipped or failed
    packages  those of other versions than the audited code pins, in words
    """

    stage: str
    outcome: Outcome
    about: str = ""
    seconds: float = 0.0
    packages: str = ""


def recompute(
    scope: Scope,
    *,
    which: Which,
    seed: int = 0,
    exact: bool | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Remade]:
    """Run stages again, away from the checkout, which is only read.

    which  all: every stage, from nothing, each on what the ones before it made anew. report: what writes the tables and
           pages; sample: a few stages drawn with `seed`; both on the recorded artifacts that are here
    exact  whether every byte must be equal; None: yes under the numeric profile. Where it cannot be had, every
           number of a reported file must agree within BOUND, and all text around the numbers must be equal
    tell   gets a line per stage

    Raises LineageError, before anything runs, if dvc.lock disagrees with dvc.yaml.
    Cost: that of the stages.
    """
    require_agreement(scope)
    exact = is_supported() if exact is None else exact
    tell(f"the code of {scope.tree.name} runs now, with your rights")
    if not exact:
        tell(f"this processor lacks the numeric profile {NAME}: reported numbers may differ by up to {BOUND}")
    with scratch_folder() as folder:
        bench = Bench(scope, folder, exact=exact, tell=tell)
        if which == "all":
            return bench.remake_all()
        return bench.remake_report() if which == "report" else bench.remake_sample(seed)


def report_writers(graph: Graph) -> list[str]:
    """The stages that write something of a report, but for the scores and sweeps that it is made of.

    They are the stage report alone, unless dvc.yaml hands one of its pages to another stage.
    """
    folder = f"reports/{graph.suite}/"
    sources = (f"{folder}scores/", f"{folder}sweeps/")
    return sorted(
        {
            name
            for out, name in graph.producers.items()
            if (f"{out}/".startswith(folder) or folder.startswith(f"{out}/")) and not out.startswith(sources)
        }
    )


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder with a lock that is held for the length of the block; first, abandoned folders are removed.

    The lock is flock's: it is free the moment its holder dies, and other containers of the machine see it too.
    """
    remove_abandoned(Path(tempfile.gettempdir()))
    with (
        tempfile.TemporaryDirectory(prefix=SCRATCH) as folder,
        Path(folder, LOCK).open("wb", buffering=0) as lock,
    ):
        # The mark comes after the lock, so no audit removes the folder in between. Where a file system has no locks,
        # there is no mark either, and the folder is never removed.
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(MARK)
        yield Path(folder)


def remove_abandoned(folder: Path) -> None:
    """Remove the scratch folders of this user's audits that were killed: those with the mark and a free lock."""
    for place in folder.glob(f"{SCRATCH}*"):
        # Folders of other users are left alone: to remove one that nests thousands of levels would end this audit.
        with suppress(OSError):  # another audit has removed it, or it is no scratch folder
            if place.lstat().st_uid != os.getuid() or place.is_symlink():
                continue
            with (place / LOCK).open("r+b") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if lock.read(len(MARK) + 1) == MARK:
                    shutil.rmtree(place, ignore_errors=True)


def require_agreement(scope: Scope) -> None:
    """Raise LineageError unless dvc.lock has the commands, paths and parameters that dvc.yaml defines."""
    graph, checks = scope.graph, StageChecks(scope)
    for name, stage in graph.stages.items():
        for cause in checks.agreement(stage, graph.locked[name]) if name in graph.locked else ():
            if cause.state in ("wrong", "unmade"):
                raise LineageError(
                    f"{graph.lockfile} disagrees with {graph.dvcfile}",
                    where=f"stage {name}",
                    expected="one command, the same paths and parameters",
                    got=cause.message,
                    state="nothing was run again",
                    remedy="`sentfold audit` without --recompute names every disagreement",
                )


def _remove(path: Path) -> None:
    """Remove a file, a link, or a folder with what is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class Bench:
    """A scratch folder: `made` holds what stages wrote anew, and each stage gets a new folder of its inputs."""

    def __init__(self, scope: Scope, folder: Path, *, exact: bool, tell: Callable[[str], None]) -> None:
        self.scope = scope
        self.graph = scope.graph
        self.alone = folder / "alone"
        self.made = folder / "made"
        self.exact = exact
        self.tell = tell
        pins = pins_in((scope.tree.read(REQUIREMENTS) or b"").decode("utf-8", "replace"))
        self.packages = listed(describe_differences(pins, describe_packages()))

    def remake_all(self) -> list[Remade]:
        """Every stage in order, from nothing."""
        done: dict[str, Remade] = {}
        for name in self.graph.in_order():
            broken = [parent for parent in self.graph.parents(name) if done[parent].outcome in ("failed", "skipped")]
            about = f"it reads what {broken[0]} would have made" if broken else ""
            done[name] = Remade(name, "skipped", about) if broken else self._remake(name, self.made)
        return list(done.values())

    def remake_sample(self, seed: int) -> list[Remade]:
        """A few stages, each on the recorded artifacts."""
        able = [name for name in self.graph.in_order() if self._inputs_here(name)]
        return [self._remake(name, self.scope.root) for name in draw(able, seed)]

    def remake_report(self) -> list[Remade]:
        """The stages that write what is read of a report, on the recorded artifacts."""
        about = "what it reads is not here: run the suite"
        return [
            self._remake(name, self.scope.root) if self._inputs_here(name) else Remade(name, "skipped", about)
            for name in report_writers(self.graph)
        ]

    def _inputs_here(self, name: str) -> bool:
        if name not in self.graph.locked:
            return False
        made = [entry for path, entry in self.graph.locked[name].deps.items() if self.graph.makers_of(path)]
        here = [self.scope.artifacts.digest(entry.path) for entry in made]
        return all(found is not None and found.md5 == entry.md5 for entry, found in zip(made, here, strict=True))

    def _remake(self, name: str, artifacts: Path) -> Remade:
        """Run one stage on artifacts, compare what it writes, and keep it for the stages after it."""
        if name not in self.graph.locked:
            return Remade(name, "skipped", f"{self.graph.lockfile} has no entry of it")
        stage = self.graph.stages[name]
        shutil.rmtree(self.alone, ignore_errors=True)
        try:
            lay_out(self.scope.tree, self.graph, stage, artifacts=artifacts, folder=self.alone)
            # As DVC does: a file that is called an input and an output of a stage would count as written.
            for out in stage.outs:
                _remove(self.alone / out)
        except OSError as error:
            return Remade(name, "skipped", f"{self.alone.parent}, a folder of TMPDIR: {first_line(error)}")
        began = time.monotonic()
        code, said = run_command(stage.command, self.alone)
        seconds = time.monotonic() - began
        if code == 0:
            remade = self._compared(stage, seconds)
        else:
            # An error of sentfold, such as no mirror or a full disk, says nothing of the recorded bytes.
            outcome: Outcome = "skipped" if code in (os.EX_TEMPFAIL, REFUSED) else "failed"
            remade = Remade(name, outcome, f"exit {code}: {said}", seconds)
        for out in stage.outs if code == 0 and artifacts == self.made else ():
            if (self.alone / out).exists():
                (self.made / out).parent.mkdir(parents=True, exist_ok=True)
                (self.alone / out).rename(self.made / out)
        self.tell(f"{name}: {remade.outcome}, {seconds:.1f} s")
        return replace(remade, packages=self.packages)

    def _compared(self, stage: Stage, seconds: float) -> Remade:
        locked, differing = self.graph.locked[stage.name], []
        for out in stage.outs:
            text = self._difference(locked.outs[out])
            if text:
                differing.append(text)
        if not differing:
            return Remade(stage.name, "equal", "", seconds)
        if self.exact:
            return Remade(stage.name, "differs", "; ".join(differing), seconds)
        gap = max(self._gap(out) for out in stage.outs)
        outcome: Outcome = "within bound" if gap <= BOUND else "differs"
        return Remade(stage.name, outcome, f"no number by more than {gap:.2f}; {'; '.join(differing)}", seconds)

    def _difference(self, entry: Entry) -> str:
        """The first file and value of an output that is not as recorded; "" if every byte is."""
        made = WorkingTree(self.alone).digest(entry.path)
        if made is None:
            return f"{entry.path} was not written"
        if made.md5 == entry.md5:
            return ""
        recorded = self.scope.digest(entry.path)
        if recorded is None or recorded.md5 != entry.md5:
            return f"{entry.path}: md5 {entry.md5} recorded, {made.md5} written again"
        name = f"{entry.path}/{next(iter(recorded.differing(made)), '')}".rstrip("/")
        return first_place(name, self.scope.read(name), WorkingTree(self.alone).read(name))

    def _gap(self, out: str) -> float:
        """By how much the numbers of a reported output differ; artifacts are judged by the reports made of them."""
        if not out.startswith("reports/"):
            return 0.0
        made, recorded = WorkingTree(self.alone).digest(out), self.scope.digest(out)
        if made is None or recorded is None or made.files.keys() != recorded.files.keys():
            return float("inf")
        names = [f"{out}/{file}" for file in made.files] or [out]
        return max(
            largest_gap(read_as_text(self.scope, name), read_as_text(WorkingTree(self.alone), name)) for name in names
        )


def read_as_text(tree: Scope | Tree, name: str) -> str:
    """The text of a file, with what a page holds packed in the place of its letters, and without the machine's name."""
    text = (tree.read(name) or b"").decode("utf-8", "replace")
    if name.endswith("/lineage.json"):
        record = parse_object(text.encode())
        record.pop("environment", None)  # processor, kernels of BLAS and libraries are those of the machine that ran it
        return json.dumps(record)
    return PACKED.sub(_unpacked, text) if name.endswith(".html") else text


def _unpacked(letters: re.Match[str]) -> str:
    with suppress(ValueError, SourceError):
        return unpack_gzip(b64decode(letters[0])).decode()
    return letters[0]


def draw(names: Sequence[str], seed: int) -> list[str]:
    """A few of some stages, in their order; the same ones for the same seed."""
    drawn = set(random.Random(seed).sample(list(names), min(SAMPLE, len(names))))
    return [name for name in names if name in drawn]


# --- what differs ---------------------------------------------------------------------------------------


def first_place(name: str, recorded: bytes | None, remade: bytes | None) -> str:
    """Where two versions of a file first differ, and what is there in each."""
    if recorded is None or remade is None:
        return f"{name} is {'not recorded' if recorded is None else 'recorded'}, and {_was(remade)} written again"
    if name.endswith(".parquet"):
        return f"{name}, {_first_value(recorded, remade)}"
    old, new = (content.decode("utf-8", "replace").splitlines() for content in (recorded, remade))
    for number, (one, other) in enumerate(zip(old, new, strict=False), 1):
        if one != other:
            at = next((i for i, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))
            shown = (line[max(0, at - AROUND) : at + AROUND] for line in (one, other))
            return f"{name}, line {number}: {_versus(*shown)}"
    return f"{name}: {_versus(f'{len(old)} lines', f'{len(new)} lines')}"


def _was(content: bytes | None) -> str:
    return "was not" if content is None else "was"


def _versus(recorded: str, remade: str) -> str:
    return f"'{brief(recorded)}' recorded, '{brief(remade)}' written again"


def _first_value(recorded: bytes, remade: bytes) -> str:
    """The first column and row of two Parquet files that differ."""
    try:
        old, new = (read_parquet(content) for content in (recorded, remade))  # which unpacks no bomb
    except (pa.ArrowException, OSError):
        return "which is no Parquet file that can be read"
    if (old.column_names, old.num_rows) != (new.column_names, new.num_rows):
        shapes = (f"{table.num_rows} rows of {', '.join(table.column_names)}" for table in (old, new))
        return _versus(*shapes)
    for column in old.column_names:
        if not old[column].equals(new[column]):
            pairs = zip(old[column].to_pylist(), new[column].to_pylist(), strict=True)
            for row, (one, other) in enumerate(pairs):
                if repr(one) != repr(other):  # two NaN are alike here, and not to Arrow
                    return f"column {column}, row {row}: {_versus(str(one), str(other))}"
    return f"its metadata: {_versus(*(str(table.schema.metadata) for table in (old, new)))}"


def largest_gap(recorded: str, remade: str) -> float:
    """The largest distance of two numbers at the same place of two texts; infinite where the texts around differ.

    Hashes are left out: other bytes of an artifact have another hash.
    """
    old, new = (HASH.sub("", text).replace("−", "-") for text in (recorded, remade))
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return math.inf
    pairs = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
    return max((abs(float(one) - float(other)) for one, other in pairs), default=0.0)


# --- what an audit says of it -------------------------------------------------------------------------


def causes_of(remade: Sequence[Remade], scope: Scope) -> list[Cause]:
    """The stages that did not come out as recorded, and those that could not be run again."""
    found = []
    for one in remade:
        if one.outcome == "skipped":
            message, remedy = f"it was not run again: {one.about}", "sentfold audit --recompute all, when it can run"
            found.append(Cause("recomputation", f"stage {one.stage}", message, remedy, state="unwitnessed"))
        elif one.outcome in ("differs", "failed"):
            what = "wrote something else" if one.outcome == "differs" else "failed"
            remedy = f"{scope.run_again(one.stage)}, then sentfold run --suite {scope.suite}, and commit all; "
            remedy += "or find out what made the recorded files"
            if one.packages:  # which need not be the reason: a commit can pin what it likes
                what = f"{what}, with packages of other versions than it pins{one.packages}"
                remedy = f"install the {REQUIREMENTS} of the audited code, and audit again; then: {remedy}"
            found.append(Cause("recomputation", f"stage {one.stage}", f"run again, it {what}: {one.about}", remedy))
    return found
