"""What vouches for a file beside dvc.lock: sealed sha256 values, the record of its run; and files without a witness."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from pipeline.lineage.hashes import PASSED_OVER
from pipeline.lineage.machine import describe_differences, hash_packages, is_code, pins_in
from pipeline.lineage.runs import RunFinder, files_under, sealed_inputs
from pipeline.lineage.scope import Cause, Scope, listed
from pipeline.lineage.stages import Entry, Locked, Stage, related
from pipeline.lineage.trees import git

REQUIREMENTS = "requirements.lock"
MOST_TAGS = 100


class WitnessChecks:
    """The faults that other witnesses than dvc.lock and git find."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.graph = scope.graph
        self.finder = RunFinder(scope.root, scope.suite)
        self.otherwise: set[str] = set()  # code that ran otherwise than dvc.lock records
        self._was_committed = cache(self._find_committed)
        self._code_since = cache(self._find_since)

    def of(self, stage: Stage, locked: Locked) -> Iterator[Cause]:
        """What they find of one stage. Cost: sha256 of what its outputs were made of, and of recorded outputs."""
        yield from self._hidden(stage)
        yield from self._sealed(locked)
        runs = [] if self.scope.revision is not None else self.finder.writers_of(locked)
        others = [self.finder.other_parameters(run, locked) for run in runs]
        if others and all(others):
            message = f"no run here had its values of {self.graph.lockfile}; one with others wrote the same bytes"
            yield Cause("record", others[0][0], message, self.scope.run_again(locked.name), state="unwitnessed")
        runs = [run for run, other in zip(runs, others, strict=True) if not other]
        # A run on another branch can have left the same bytes; where one run is sound, the bytes have a witness.
        runs = [run for run in runs if "edited" in run["code"]] or runs  # not outside of git, nor by an older version
        found: list[tuple[list[Cause], set[str]]] = []
        for run in runs:
            otherwise: set[str] = set()
            found.append(([*self._code(locked, run, otherwise), *self._packages(locked, run)], otherwise))
        causes, otherwise = min(found, key=_gravity, default=([], set()))
        self.otherwise |= otherwise
        yield from causes

    # --- files without a witness ------------------------------------------------------------------

    def _hidden(self, stage: Stage) -> Iterator[Cause]:
        """What .dvcignore keeps out of the hash of an input or output; a parameter file is recorded by its values."""
        for path in (*stage.deps, *stage.outs):
            digest = self.scope.digest(path)
            for file in () if digest is None else digest.hidden:
                if f"{path}/{file}" not in stage.params:
                    message = ".dvcignore keeps it out of the hash of its folder, so no record says what is in it"
                    remedy = f"take its line out of .dvcignore, then {self.scope.rerun()}"
                    yield Cause("file", f"{path}/{file}", message, remedy, state="unwitnessed")

    def strays(self) -> Iterator[Cause]:
        """Files among the reports of the suite that no stage writes."""
        folder = f"reports/{self.scope.suite}"
        for file in self.scope.tree.files_below(folder):
            path = f"{folder}/{file}"
            name = PurePosixPath(path).name
            # DVC hashes no file of a name that PASSED_OVER has; writers leave `.NAME.tmp`, and DVC .gitignore.
            unhashed = PASSED_OVER.match_file(path) and not (name.startswith(".") and name.endswith(".tmp"))
            if (unhashed or not self.graph.makers_of(path)) and name != ".gitignore":
                message = "no stage of dvc.yaml writes it, so no record says what is in it"
                yield Cause("file", path, message, f"move it out of {folder}", state="unwitnessed")

    # --- sha256 ---------------------------------------------------------------------------------------

    def _sealed(self, locked: Locked) -> Iterator[Cause]:
        """The sha256 that an artifact keeps of what it was made of, against the files that are here."""
        for out in locked.outs.values():
            for file in files_under(self.scope.root, out.path) if self.scope.is_as_recorded(out) else ():
                for path, sealed in sealed_inputs(self.scope.root / file).items():
                    if self._is_here(path) and self.finder.sha256(path) != sealed:
                        here = self.finder.sha256(path)
                        message = f"{file} was made of it with sha256 {sealed}; here it has {here}"
                        yield Cause("artifact", path, message, self.scope.rerun())

    def _is_here(self, path: str) -> bool:
        """Whether an input is here. Another file than a commit's is not: the stage that writes it is named absent."""
        makers = self.graph.makers_of(path) if self.scope.foreign(path) else []
        locked = [self.graph.locked[name] for name in makers if name in self.graph.locked]
        outs = [out for one in locked for out in one.outs.values() if related(out.path, path)]
        return (self.scope.root / path).is_file() and all(map(self.scope.is_as_recorded, outs))

    # --- what its run says ----------------------------------------------------------------------------

    def _code(self, locked: Locked, run: Mapping[str, Any], otherwise: set[str]) -> Iterator[Cause]:
        """The code that ran, declared or not, against the commit of the run.

        Declared code that ran as another commit has it than dvc.lock records is told in a remark: a run of a colleague
        may have written the same bytes and the entry of dvc.lock, or `dvc commit` gave it the bytes of other code.

        otherwise  takes such files
        """
        code = run["code"]
        if "edited" not in code:
            return
        again = self.scope.run_again(str(run["stage"]))
        others, builds_on = self._code_since(str(code["commit"]))
        declared = [f"{entry.path}/" for entry in locked.deps.values() if self._is_committed(entry)]
        for file, content in {**others, **code["edited"]}.items():
            known = file not in code["edited"] and (builds_on or not content)
            if not known and not self._was_committed(file, content):
                message = (
                    f"stages ran at commit {code['commit'][:10]} with a content of it that no commit up to HEAD has"
                )
                edited = self.scope.head is None or self.scope.differs_from_head(file)
                remedy = f"commit or remove it, then {again}" if edited else again
                yield Cause("record", file, message, remedy, state="uncommitted")
            elif any(f"{file}/".startswith(place) for place in declared) and content != self._committed_name(file):
                otherwise.add(file)

    def _is_committed(self, entry: Entry) -> bool:
        """Whether git's HEAD has a path as dvc.lock records it."""
        digest = self.scope.head_digest(entry.path)
        return digest is not None and digest.md5 == entry.md5

    def _committed_name(self, file: str) -> str:
        return "" if self.scope.head is None else self.scope.head.object_of(file)

    def _find_since(self, commit: str) -> tuple[dict[str, str], bool]:
        """The code of a commit where HEAD's is other, and whether HEAD builds on the commit.

        File -> git's name of the content, "" where the commit has no such file. A run on another branch is none of
        HEAD's code, although nothing was edited there.
        """
        if not re.fullmatch("[0-9a-f]{40,64}", commit) or self.scope.head is None:
            return {}, True
        words = ("diff", "--no-color", "--raw", "-z", "--no-renames", "--no-abbrev", commit, "HEAD")
        listing = git(self.scope.root, *words) or b""  # None of a commit that git has no more
        entries = listing.decode("utf-8", "surrogateescape").split("\0")
        found = {file: facts.split()[2] for facts, file in zip(entries[::2], entries[1::2], strict=False)}
        builds_on = git(self.scope.root, "merge-base", "--is-ancestor", commit, "HEAD") is not None
        return {file: name.strip("0") and name for file, name in found.items() if is_code(file)}, builds_on

    def _find_committed(self, file: str, content: str) -> bool:
        """Whether git's history has a file with this content, by the name that git gives to the content."""
        if not content:  # the file was gone
            return self.scope.head is not None and file not in self.scope.head.all_files()
        found = ("log", "-1", "-m", "--full-history", "--format=%H", f"--find-object={content}", "HEAD", "--", file)
        return bool(git(self.scope.root, *found))

    def _packages(self, locked: Locked, run: Mapping[str, Any]) -> Iterator[Cause]:
        """The distributions that were installed, against the pins of the requirements.lock that the stage read."""
        entry = locked.deps.get(REQUIREMENTS)
        if entry is None or not self.scope.is_as_recorded(entry):
            return
        if other := describe_differences(self._pins, run["packages"]):
            message = f"stages ran with other versions than those of {REQUIREMENTS}{listed(other)}"
            again = self.scope.run_again(str(run["stage"]))
            yield Cause("record", "installed packages", message, f"install {REQUIREMENTS}, then {again}")

    @cached_property
    def _pins(self) -> dict[str, str]:
        return pins_in((self.scope.read(REQUIREMENTS) or b"").decode("utf-8", "replace"))

    def remarks(self) -> Iterator[str]:
        """Whether runs had other code than dvc.lock records, or other files of the same distributions than now."""
        if self.otherwise:
            yield (
                f"stages ran here on other code than {self.graph.lockfile} records{listed(sorted(self.otherwise))} and "
                "wrote the recorded bytes; whether the recorded code does, `--recompute all` says"
            )
        hashes = {
            name: {run.get("files_of_packages_sha256") for run in runs} for name, runs in self.finder.known.items()
        }
        known = {None, hash_packages()}
        other = sorted(name for name, found in hashes.items() if found and not found & known)
        if other:
            yield f"stages ran with other installed files of packages than are here now{listed(other)}"


def _gravity(found: tuple[Sequence[Cause], Set[str]]) -> tuple[bool, int, int]:
    """What speaks against a run as the witness of its outputs, the worst first."""
    causes, otherwise = found
    return any(cause.state == "wrong" for cause in causes), len(causes), len(otherwise)


def verified_signature(scope: Scope) -> str:
    """What git verifies of the commit: its own signature, or that of a tag of it, in words; "" if neither.

    At most MOST_TAGS tags are asked for, the one that is audited first: each takes a process.
    """
    if scope.head is None:
        return ""
    commit, root = scope.head.commit, scope.root
    covers = "it covers every file of the commit, so tables, scores, dvc.lock and code, and not the files under data/"
    least = trust_settings(root)
    if git(root, *least, "verify-commit", commit) is not None:
        signer = (git(root, "log", "-1", "--format=%GS", commit) or b"").decode("utf-8", "replace").strip()
        return f"commit {commit[:10]} has a good signature of {signer}: {covers}"
    # By its object: as a name, `tags/v1` is the tag v1 to git, even where there is a tag that is called `tags/v1`.
    listing = git(
        root, "for-each-ref", f"--points-at={commit}", "--format=%(objectname) %(tag) %(refname:lstrip=2)", "refs/tags"
    )
    found = [line.split(" ", 2) for line in (listing or b"").decode("utf-8", "replace").splitlines()]
    asked = (scope.revision or "").removeprefix("refs/tags/")
    found.sort(key=lambda one: one[2] != asked)  # a fetch brings any number of tags along
    for name, signed, tag in found[:MOST_TAGS]:
        # Any reference can lead to a tag: a mirror can call an old release, with its signature, the newest one.
        if signed == tag and git(root, *least, "verify-tag", name) is not None:
            return f"tag {tag} of commit {commit[:10]} has a good signature: {covers}"
    return ""


def trust_settings(root: Path) -> tuple[str, ...]:
    """What tells git to verify by trusted keys alone, unless its configuration says how far a key must be trusted.

    Else a signature of any key is good that is in GnuPG's keyring, and GnuPG can be told to fetch keys by itself.
    """
    return () if git(root, "config", "gpg.minTrustLevel") else ("-c", "gpg.minTrustLevel=marginal")


def unsigned(scope: Scope) -> Cause:
    """What an audit says of a commit without a signature that git can verify."""
    commit = "no commit" if scope.head is None else f"commit {scope.head.commit[:10]}"
    remedy = "git tag -s, or git commit -S; and tell git whose keys you trust"
    return Cause("code", commit, "git verifies no signature of it, nor of a tag of it", remedy, state="unwitnessed")
