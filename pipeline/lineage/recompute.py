"""Run stages again in a scratch copy, and compare what they write with what is recorded."""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pipeline.lineage.hashes import LineageError
from pipeline.lineage.numbers import read_numbers, tables_folder
from pipeline.lineage.scope import Cause, Scope
from pipeline.lineage.stages import Entry, Locked, Stage, related
from pipeline.lineage.trees import Revision, Tree, WorkingTree, git
from sentfold.numeric_profile import NAME, is_supported

Outcome = Literal["equal", "within bound", "differs", "failed", "skipped"]

# By how much a score may differ on another kind of processor, on the x100 scale: a neighbour in a near tie flips.
BOUND = 0.05
SAMPLE = 4


@dataclass(frozen=True)
class Remade:
    """What came of running one stage again. about: what differs, or why it was skipped."""

    stage: str
    outcome: Outcome
    about: str = ""
    seconds: float = 0.0


def recompute(
    scope: Scope, *, everything: bool, seed: int = 0, bound: float = BOUND, tell: Callable[[str], None] = lambda _: None
) -> list[Remade]:
    """Run stages again, away from the checkout, which is only read.

    everything  True: every stage, from nothing, each on what the ones before it made anew. False: a few stages
                drawn with `seed`, each on the recorded artifacts that lie here
    bound       within which scores must agree where bytes do not
    tell        gets a line per stage

    Bytes are compared with dvc.lock. Where they differ, the scores made of them decide: the stages below are run
    again too, and their scores compared with the reported ones. Cost: that of the stages.
    """
    with tempfile.TemporaryDirectory(prefix="sentfold-audit-") as folder:
        bench = Bench(scope, Path(folder) / "checkout", bound=bound, tell=tell)
        return bench.remake_all() if everything else bench.remake_sample(seed)


class Bench:
    """The scratch copy: the code and parameters of the tree, and links to artifacts that are not made anew."""

    def __init__(self, scope: Scope, root: Path, *, bound: float, tell: Callable[[str], None]) -> None:
        self.scope = scope
        self.graph = scope.graph
        self.root = root
        self.bound = bound
        self.tell = tell
        for stage in scope.graph.stages.values():
            require_inside(stage)
        copy_sources(scope, root)
        if not is_supported():
            tell(f"note: this processor lacks the numeric profile {NAME}: bytes will differ, so scores decide")

    def remake_all(self) -> list[Remade]:
        """Every stage in order, from nothing."""
        done: dict[str, Remade] = {}
        for name in self.graph.in_order():
            broken = [parent for parent in self.graph.parents(name) if done[parent].outcome in ("failed", "skipped")]
            done[name] = (
                Remade(name, "skipped", f"it reads what {broken[0]} would have made") if broken else self._remake(name)
            )
        return list(self._settled(done).values())

    def remake_sample(self, seed: int) -> list[Remade]:
        """A few stages, each on the recorded artifacts; the scores below those whose bytes differ, too."""
        able = [name for name in self.graph.in_order() if name in self.graph.locked and self._inputs_here(name)]
        drawn = draw(able, seed)
        found: list[Remade] = []
        for name in drawn:
            done = {name: self._remake_alone(name)}
            if done[name].outcome == "differs" and not self._scores(name):
                done |= self._remake_below(name)
            found += self._settled(done).values()
        return found

    # --- one stage ----------------------------------------------------------------------------------

    def _remake_alone(self, name: str) -> Remade:
        self._clear()
        self._link_inputs(name)
        return self._remake(name)

    def _remake_below(self, name: str) -> dict[str, Remade]:
        """The stages from which scores come that rest on a stage's remade output."""
        done: dict[str, Remade] = {}
        fresh = {name}
        for other in self.graph.in_order():
            if other in fresh or not fresh & set(self.graph.parents(other)) or other not in self.graph.locked:
                continue
            if any(out.endswith("/tables") for out in self.graph.locked[other].outs):
                continue
            self._link_inputs(other)
            fresh.add(other)
            done[other] = self._remake(other)
        return done

    def _remake(self, name: str) -> Remade:
        """Run a stage's command in the scratch copy and compare every output."""
        locked = self.graph.locked.get(name)
        if locked is None:
            return Remade(name, "skipped", f"{self.graph.lockfile} has no entry of it")
        stage = self.graph.stages[name]
        for out in stage.outs:
            _remove(self.root / out)
        began = time.monotonic()
        done = subprocess.run(
            words_of(stage.command),
            cwd=self.root,
            env=environment(self.root),
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - began
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
            remade = Remade(name, "failed", f"exit {done.returncode}: {said[0]}", seconds)
        else:
            recorded = [locked.outs.get(out, Entry(out, "none")) for out in stage.outs]
            differing = [text for entry in recorded if (text := self._difference(entry))]
            remade = Remade(name, "differs" if differing else "equal", "; ".join(differing), seconds)
        self.tell(f"{name}: {remade.outcome}, {seconds:.1f} s")
        return remade

    def _difference(self, entry: Entry) -> str:
        made = WorkingTree(self.root).digest(entry.path)
        if made is None:
            return f"{entry.path} was not written"
        if made.md5 == entry.md5:
            return ""
        files = ", ".join(self.scope.changed_files(entry, made)[:3])
        return f"{entry.path}: md5 {entry.md5} recorded, {made.md5} remade" + (f" ({files})" if files else "")

    # --- verdicts -----------------------------------------------------------------------------------

    def _settled(self, done: Mapping[str, Remade]) -> dict[str, Remade]:
        """Where bytes differ, whether all scores made of them agree within the bound."""
        return {name: self._settle(remade, done) for name, remade in done.items()}

    def _settle(self, remade: Remade, done: Mapping[str, Remade]) -> Remade:
        if remade.outcome != "differs":
            return remade
        judged = [name for name in done if self._judges(name) and remade.stage in self.graph.ancestors(name)]
        if not judged or any(done[name].outcome in ("failed", "skipped") for name in judged):
            return remade
        worst = max((gap for name in judged for gap in self._gaps(name)), default=0.0)
        if worst > self.bound:
            return replace(remade, about=f"{remade.about}; scores differ by up to {worst:.2f}")
        return replace(remade, outcome="within bound", about=f"{remade.about}; no score by more than {worst:.2f}")

    def _judges(self, name: str) -> bool:
        """Whether a stage writes scores, or the tables of them."""
        return bool(self._scores(name)) or name in self.graph.makers_of(tables_folder(self.scope.suite))

    def _scores(self, name: str) -> list[str]:
        locked = self.graph.locked.get(name)
        return [] if locked is None else [out for out in locked.outs if "/scores/" in out]

    def _gaps(self, name: str) -> Iterator[float]:
        """By how much each number that a stage made anew differs from the reported one."""
        for path in self._scores(name):
            yield from gaps(dict(score_values(self.scope.tree, path)), dict(score_values(WorkingTree(self.root), path)))
        if not self._scores(name):
            try:
                pair = [table_values(tree, self.scope.suite) for tree in (self.scope.tree, WorkingTree(self.root))]
            except LineageError:
                yield float("inf")
                return
            yield from gaps(*pair)

    # --- the scratch copy -----------------------------------------------------------------------------

    def _inputs_here(self, name: str) -> bool:
        locked: Locked = self.graph.locked[name]
        made = [entry for path, entry in locked.deps.items() if self.graph.makers_of(path)]
        digests = ((entry, self.scope.artifacts.digest(entry.path)) for entry in made)
        return all(found is not None and found.md5 == entry.md5 for entry, found in digests)

    def _link_inputs(self, name: str) -> None:
        """Link the recorded artifacts that a stage reads."""
        for path in self.graph.stages[name].deps:
            if self.graph.makers_of(path):
                self._link(path)

    def _link(self, path: str) -> None:
        source, target = self.scope.root / path, self.root / path
        files = [source] if source.is_file() else [file for file in source.rglob("*") if file.is_file()]
        for file in files:
            place = target if source.is_file() else target / file.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                place.symlink_to(file.resolve())

    def _clear(self) -> None:
        for stage in self.graph.stages.values():
            for out in stage.outs:
                _remove(self.root / out)


def require_inside(stage: Stage) -> None:
    """Raise LineageError if a stage names a path outside of the checkout: it would be removed or overwritten."""
    for path in (*stage.deps, *stage.outs):
        parts = PurePosixPath(path).parts
        if path.startswith("/") or ".." in parts or not parts:
            raise LineageError(
                "a stage names a path outside of the checkout",
                where=f"stage {stage.name}",
                expected="a path inside of the checkout",
                got=path,
                state="nothing was run again",
                remedy="correct dvc.yaml",
            )


def draw(names: Sequence[str], seed: int) -> list[str]:
    """A few of some stages, in their order; the same ones for the same seed."""
    drawn = set(random.Random(seed).sample(list(names), min(SAMPLE, len(names))))
    return [name for name in names if name in drawn]


def copy_sources(scope: Scope, root: Path) -> None:
    """Copy to `root` what git tracks, as the tree has it, without anything that a stage writes."""
    made = {out for stage in scope.graph.stages.values() for out in stage.outs}
    if isinstance(scope.tree, Revision):
        names = scope.tree.all_files()
    else:
        listing = git(scope.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard") or b""
        names = listing.decode("utf-8", "surrogateescape").split("\0")
    for name in filter(None, names):
        content = None if any(related(name, out) for out in made) else _readable(scope.tree, name)
        if content is not None:
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)


def _readable(tree: Tree, name: str) -> bytes | None:
    # An editor's lock is a link to nothing; the audit names it where it matters.
    try:
        return tree.read(name)
    except LineageError:
        return None


def words_of(command: str) -> list[str]:
    """A stage's command as a list, `python` being this interpreter."""
    words = shlex.split(command)
    return [sys.executable, *words[1:]] if words[0] == "python" else words


def environment(root: Path) -> dict[str, str]:
    """The environment of a stage in the scratch copy, whose own code comes first."""
    kept = {name: value for name, value in os.environ.items() if name not in ("DVC_ROOT", "DVC_STAGE")}
    first_paths = {"PYTHONPATH": [str(root)], "PATH": [str(Path(sys.executable).parent)]}
    paths = {name: os.pathsep.join([*first, *filter(None, [kept.get(name)])]) for name, first in first_paths.items()}
    return {**kept, **paths}


def score_values(tree: Tree, path: str) -> Iterator[tuple[str, float]]:
    """Every number called `value` in a scores file, by its place."""
    try:
        yield from _values(json.loads(tree.read(path) or b"null"), "")
    except ValueError:
        return


def _values(content: Any, place: str) -> Iterator[tuple[str, float]]:
    if isinstance(content, Mapping):
        for key, inner in content.items():
            if key == "value" and isinstance(inner, int | float):
                yield place, float(inner)
            else:
                yield from _values(inner, f"{place}/{key}")


def table_values(tree: Tree, suite: str) -> dict[str, float]:
    """Every value and difference in the tables that copy scores, by its place. Counts and times are no scores."""
    numbers = (number for number in read_numbers(tree, suite) if number.origin in ("score", "difference"))
    return {f"{number.table}:{number.line}:{number.column}:{number.field}": float(number.text) for number in numbers}


def gaps(recorded: Mapping[str, float], remade: Mapping[str, float]) -> Iterator[float]:
    """The distance of each pair of numbers; infinite where one has no fellow."""
    if recorded.keys() != remade.keys():
        yield float("inf")
    yield from (abs(recorded[key] - remade[key]) for key in recorded.keys() & remade.keys())


def causes_of(remade: list[Remade]) -> list[Cause]:
    """What an audit says of stages that did not come out as recorded."""
    return [
        Cause("recomputation", f"stage {found.stage}", f"run again, it {WORDS[found.outcome]}: {found.about}", REMEDY)
        for found in remade
        if found.outcome in ("differs", "failed")
    ]


REMEDY = "sentfold run, and commit what comes out; or find out what the numbers were made with"

WORDS: dict[Outcome, str] = {
    "equal": "wrote the same bytes",
    "within bound": "wrote other bytes, and scores within the bound",
    "differs": "wrote something else",
    "failed": "failed",
    "skipped": "was not run",
}


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
