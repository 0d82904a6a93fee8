"""What an audit looks at, and how it names what it finds: one tree, its artifacts, and git's HEAD as a witness."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from shlex import quote
from typing import Any, Literal

from pipeline.lineage.hashes import Digest
from pipeline.lineage.stages import Entry, Graph, Locked, alike, load_graph, read_yaml, variable_files
from pipeline.lineage.trees import Revision, Tree, WorkingTree, git, git_stream, head_of
from sentfold.errors import SentfoldError

RECORDED = re.compile(rb"[+]\s+md5: ([0-9a-f]{32}(?:\.dir)?)\n")  # a line that a commit added to dvc.lock
LONGEST_LINE = 1_000_000  # bytes that are read at once

Kind = Literal[
    "cell", "score", "table", "artifact", "parameter", "lock", "code", "definition", "recomputation", "record", "file"
]
State = Literal["wrong", "unwitnessed", "uncommitted", "unmade", "absent"]
STATES: tuple[State, ...] = ("wrong", "unwitnessed", "uncommitted", "unmade", "absent")  # the worst first

MISSING = "nothing"


@dataclass(frozen=True)
class Cause:
    """One reason why a number is not verified, named once however many numbers rest on it.

    kind     what sort of thing it is about
    subject  the file, parameter, stage or cell
    message  what was expected of it and what was found
    remedy   what to do
    state    wrong: two records that should agree do not. unwitnessed: no record holds its hash. uncommitted: the
             records here agree, and git's HEAD has another version. unmade: a stage that dvc.yaml defines has not
             run yet. absent: it is not here, and nothing speaks against it
    """

    kind: Kind
    subject: str
    message: str
    remedy: str
    state: State = "wrong"


class Scope:
    """One suite of one tree.

    tree       the checkout, or a commit
    artifacts  the checkout: a commit holds no artifacts, so those that lie here are compared with its lock
    head       the commit that vouches for code; None where there is no git
    """

    def __init__(self, root: Path, suite: str, *, revision: str | None = None) -> None:
        self.root = root
        self.suite = suite
        self.artifacts = WorkingTree(root)
        self.head: Revision | None = head_of(root) if revision is None else Revision(root, revision)
        self.tree: Tree = self.artifacts if revision is None or self.head is None else self.head
        if revision is not None and self.head is not None:
            self.head.refuse_rewritten()
        self.revision = revision
        self.graph: Graph = load_graph(self.tree, suite)
        self._yaml: dict[tuple[str, str], dict[str, Any]] = {}

    @property
    def has_witness(self) -> bool:
        """Whether git's HEAD is compared with the checkout. A commit is its own witness."""
        return self.head is not None and self.revision is None

    @cached_property
    def plans(self) -> list[str]:
        """The files that say what the suite contains."""
        return variable_files(self.tree, self.suite)

    @cached_property
    def committed(self) -> Graph | None:
        """The graph of git's HEAD, or None where it has none that can be read."""
        if self.head is None:
            return None
        try:
            return load_graph(self.head, self.suite)
        except SentfoldError:
            return None

    def digest(self, path: str) -> Digest | None:
        """The digest of a path in the tree, or of an artifact that a commit does not hold, in the checkout."""
        return self._holder(path).digest(path)

    def read(self, path: str) -> bytes | None:
        """The bytes of a file of the tree, or of an artifact that a commit does not hold, of the checkout."""
        return self._holder(path).read(path)

    def _holder(self, path: str) -> Tree:
        """Where a path is looked for. Reports are in git: those of the checkout say nothing of another commit."""
        here = self.tree.digest(path) is not None or path in self._reported or path.startswith("reports/")
        return self.tree if here else self.artifacts

    @cached_property
    def _reported(self) -> frozenset[str]:
        """The outputs that are in git, not in DVC's cache."""
        return frozenset(out for stage in self.graph.stages.values() for out in stage.uncached)

    def is_as_recorded(self, entry: Entry) -> bool:
        """Whether what is here under the path of an entry of dvc.lock has the recorded hash."""
        here = self.digest(entry.path)
        return here is not None and here.md5 == entry.md5

    def foreign(self, path: str) -> bool:
        """Whether what is here under this path need not belong to the commit that is audited."""
        return self.revision is not None and self.tree.digest(path) is None

    def head_digest(self, path: str) -> Digest | None:
        """The digest of what git's HEAD holds."""
        return None if self.head is None else self.head.digest(path)

    @cached_property
    def recorded_once(self) -> frozenset[str]:
        """The md5 of all that commits recorded in dvc.lock, as of artifacts of before a `git pull` or `git switch`."""
        # Without -m and --full-history git leaves out what came in by a merge. The reflog has what was checked out
        # here, and nothing of branches that were fetched alone.
        if self.head is None:
            return frozenset()
        tips = git(self.root, "log", "--walk-reflogs", "--format=%H", "HEAD") or b""
        shown = ("-m", "--format=", "--no-color", "--patch", "--text", "--no-textconv", "--unified=0", "--stdin", "--")
        words = ("log", "--full-history", *shown, self.graph.lockfile)
        with git_stream(self.root, *words, stdin=b"HEAD\n" + tips) as stream:  # a line can have any length
            lines = iter(partial(stream.readline, LONGEST_LINE), b"")
            found = [entry[1].decode() for line in lines if (entry := RECORDED.fullmatch(line))]
        return frozenset(found)

    def differs_from_head(self, path: str) -> bool:
        """Whether a file of the checkout is not the one of git's HEAD, a linked one read through its link."""
        return self.head is not None and self.tree.digest(path) != self.head_digest(path)

    def yaml(self, path: str) -> dict[str, Any]:
        """A YAML file of the tree; {} if there is none."""
        return self._read(self.tree, path)

    def committed_yaml(self, path: str) -> dict[str, Any]:
        """A YAML file of git's HEAD; {} if there is none."""
        return {} if self.head is None else self._read(self.head, path)

    def _read(self, tree: Tree, path: str) -> dict[str, Any]:
        if (tree.name, path) not in self._yaml:
            self._yaml[tree.name, path] = read_yaml(tree, path) or {}
        return self._yaml[tree.name, path]

    def committed_lock(self, name: str) -> Locked | None:
        """What the committed dvc.lock records of a stage."""
        return None if self.committed is None else self.committed.locked.get(name)

    def committed_entry(self, name: str, section: str, path: str) -> str | None:
        """The md5 that the committed dvc.lock has for one file of a stage, where it is asked as a second witness."""
        locked = None if self.revision is not None else self.committed_lock(name)
        entry = None if locked is None else (locked.deps if section == "deps" else locked.outs).get(path)
        return None if entry is None else entry.md5

    def changed_files(self, entry: Entry, here: Digest) -> list[str]:
        """Which files of a folder are not as recorded, where git's HEAD has the recorded folder."""
        witness = self.head_digest(entry.path)
        return here.differing(witness) if witness is not None and witness.md5 == entry.md5 and witness.files else []

    # --- what to do -----------------------------------------------------------------------------

    @property
    def _first(self) -> str:
        return "" if self.revision is None else f"git switch --detach {quote(self.revision)}, then "

    def rerun(self) -> str:
        """The command that makes stages anew, those alone whose records disagree."""
        return f"{self._first}sentfold run --suite {self.suite}"

    def run_again(self, stage: str) -> str:
        """The command that makes one stage anew although DVC finds nothing changed."""
        return f"{self._first}dvc repro --force --single-item {quote(f'{self.graph.dvcfile}:{stage}')}"

    def fetch(self, entry: Entry, *, altered: bool = False) -> str:
        """The command that brings a recorded file back, or else makes it."""
        tracked = self.head_digest(entry.path)
        if tracked is not None and tracked.md5 == entry.md5:
            return f"{self._first}{restore(entry.path) if altered else bring_back(entry.path)}"
        checkout = f"dvc checkout {'--force ' if altered else ''}{self.graph.dvcfile}"
        return f"{self._first}{checkout}; if DVC's cache lacks it, {self.rerun()}"


# --- in words ----------------------------------------------------------------------------------------


def restore(path: str) -> str:
    """The command that puts the committed files of a path back, and keeps what was there, with files unknown to git."""
    return f"git stash -a -- {quote(path)}"


def bring_back(path: str) -> str:
    """The command that makes committed files that are not here, deleted or left out of a sparse checkout."""
    return f"git checkout --ignore-skip-worktree-bits HEAD -- {quote(path)}"


def listed(files: Sequence[str]) -> str:
    """A few names in brackets; "" for none."""
    shown = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
    return f" ({shown})" if files else ""


def described(path: str, here: Digest) -> str:
    """A path's md5, or what of it cannot be read."""
    if not here.unreadable:
        return f"md5 {here.md5}"
    inner, why = next(iter(here.unreadable.items()))
    rest = f", and {len(here.unreadable) - 1} more" if len(here.unreadable) > 1 else ""
    return f"which cannot be read: {path}{'/' if inner else ''}{inner} ({why}){rest}"


def brief(value: Any) -> str:
    """A value, cut where it is long."""
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def join_lines(lines: Iterable[str]) -> str:
    """Lines as a terminal may show them: a name with escape codes or line breaks could erase or add a line."""
    return "\n".join(
        "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in line) for line in lines
    )


def leaves(key: str, one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    """What differs between two values: they themselves, or of two mappings each part that differs, by dotted key."""
    if isinstance(one, dict) and isinstance(other, dict):
        for part in dict.fromkeys([*one, *other]):
            yield from leaves(f"{key}.{part}", one.get(part, MISSING), other.get(part, MISSING))
    elif not alike(one, other):
        yield key, one, other


def value_in(content: Any, key: str) -> Any:
    """The value of a dotted key; keys of dvc.lock are dotted themselves, up to the block that a stage tracks."""
    if not key:
        return content
    if not isinstance(content, dict):
        return MISSING
    for name, value in content.items():
        if key == str(name) or key.startswith(f"{name}."):
            return value_in(value, key.removeprefix(str(name)).removeprefix("."))
    return MISSING


def edited_entry(lockfile: str, name: str, entry: Entry, before: str, remedy: str) -> Cause:
    """The committed dvc.lock has another md5 of a file, and there is ground to believe it."""
    message = f"its entry of {entry.path} says md5 {entry.md5}, the committed one {before}"
    return Cause("lock", f"{lockfile}, stage {name}", message, remedy)
