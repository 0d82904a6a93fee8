"""What an audit looks at: one tree with its graph, the artifacts that lie here, and git's HEAD as a witness."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pipeline.errors import SentfoldError
from pipeline.lineage.digests import Digest, md5_of_bytes
from pipeline.lineage.stages import Entry, Graph, Locked, load_graph, read_yaml
from pipeline.lineage.storage import Storage
from pipeline.lineage.trees import Revision, Tree, git, head_of
from pipeline.lineage.working_tree import WorkingTree


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
        self.revision = revision
        self.graph: Graph = load_graph(self.tree, suite)
        self.storage = Storage(root)
        self._yaml: dict[tuple[str, str], dict[str, Any]] = {}

    @property
    def has_git(self) -> bool:
        """Whether there is a commit to hold code against."""
        return self.head is not None

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
        """The digest of what lies in the tree, or, for what a commit does not hold, in the checkout."""
        found = self.tree.digest(path)
        return self.artifacts.digest(path) if found is None else found

    def foreign(self, path: str) -> bool:
        """Whether what lies here under this path need not belong to the commit that is looked at."""
        return self.revision is not None and self.tree.digest(path) is None

    def head_digest(self, path: str) -> Digest | None:
        """The digest of what git's HEAD holds."""
        return None if self.head is None else self._head_digests(path)

    def _head_digests(self, path: str) -> Digest | None:
        if path not in self._heads and self.head is not None:
            self._heads[path] = self.head.digest(path)
        return self._heads[path]

    @cached_property
    def _heads(self) -> dict[str, Digest | None]:
        return {}

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
        """Which files of a folder are not as recorded, where git's HEAD or DVC's cache still knows its files."""
        if not here.files and not here.unreadable:
            return []
        witness = self.head_digest(entry.path)
        if witness is None or witness.md5 != entry.md5:
            witness = self.storage.listing(entry.md5)
        return [] if witness is None else here.differing(witness)

    def history(self, entry: Entry) -> str:
        """The last commit that had a file with the recorded bytes, in words; '' if there is none."""
        if entry.md5.endswith(".dir"):
            return ""
        tip = "HEAD" if self.head is None else self.head.commit
        log = git(self.root, "log", "--format=%H", "-n", "60", tip, "--", entry.path)
        for commit in (log or b"").decode().split():
            content = git(self.root, "show", f"{commit}:{entry.path}")
            if content is not None and md5_of_bytes(content) == entry.md5:
                return f" (commit {commit[:10]} has it)"
        return ""

    # --- what to do -----------------------------------------------------------------------------

    def rerun(self, stage: str = "") -> str:
        """The command that makes stages anew."""
        if self.revision is not None:
            return f"git switch --detach {self.revision}, then sentfold repro --suite {self.suite}"
        return f"dvc repro {self._target(stage)}" if stage else f"sentfold repro --suite {self.suite}"

    def fetch(self, entry: Entry, *, altered: bool = False, strange: Sequence[str] = ()) -> str:
        """The command that fetches an artifact, or else makes it. strange: files in it that have to go."""
        first = "" if self.revision is None else f"git switch --detach {self.revision}, then "
        tracked = self.head_digest(entry.path)
        if tracked is not None and tracked.md5 == entry.md5:
            remove = f"remove {', '.join(strange)}, then " if strange else ""
            return f"{remove}{first}git checkout -- {entry.path}"
        force = "--force " if altered else ""
        if self.storage.holds(entry.md5):
            return f"{first}dvc checkout {force}{self._target()}".rstrip()
        if self.storage.has_remote:
            return f"{first}dvc pull {force}{self._target()}".rstrip()
        return self.rerun() if not altered else f"delete it, then {self.rerun()}"

    def _target(self, stage: str = "") -> str:
        if self.graph.dvcfile == "dvc.yaml":
            return stage
        return f"{self.graph.dvcfile}:{stage}" if stage else self.graph.dvcfile
