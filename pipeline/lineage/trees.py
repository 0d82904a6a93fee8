"""Trees of files: those of a checkout and those of a commit. Both are read and hashed, never written."""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import subprocess
import tempfile
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import IO, Protocol

from pipeline.lineage.hashes import Digest, IgnoreRules, LineageError, folder_digest, md5_of, md5_of_bytes

SYMLINK = "120000"
MODES = frozenset({b"40000", b"100644", b"100755", b"100664", b"120000", b"160000"})  # 100664 in old repositories
SUBMODULE = "160000"

# A line, but for comments, with an attribute by which a checkout can have other bytes than its commit. An attribute can
# follow a quote without a blank. What is text has other line ends where a user's settings say so, but for eol=lf.
REWRITING = re.compile(
    rb"^(?![^\S\n]*#)[^\n]*"
    rb"(?:(?<![\w!-])(?:working-tree-encoding|ident|crlf)|(?<=[ \t\r\"])(?:!?text|[!-]?eol))(?![\w-])[^\n]*",
    re.MULTILINE,
)
HARMLESS = re.compile(rb"^[^\s\"#]+[ \t]+text(?:=auto)?[ \t]+eol=lf[ \t\r]*$", re.MULTILINE)

# What Unicode calls ignorable by default, which HFS+ and folders of ext4 without case leave out of names.
IGNORABLE = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)

# Of a commit, which can come from a stranger: some bytes of git's store can stand for any number of files and bytes.
MOST_FILES = 200_000  # files and folders; the project has 2,000
MOST_BYTES = 1 << 30  # that are read of it
# Letters of all paths; and of the names of files in all folders that are hashed, one for each folder a file is in.
MOST_NAMES = 32 << 20
MOST_TEXT = 16 << 20  # bytes of text that is parsed, which takes a multiple in memory; the largest file has 6 MB
LONGEST_PATH, LONGEST_NAME = 4096, 255  # bytes; no system has longer ones

# Errors of the system for a path where there is nothing.
NOTHING_THERE = (FileNotFoundError, NotADirectoryError)

# Variables of git with this prefix are settings of the machine; the others are about one repository.
CONFIG = "GIT_CONFIG"

# Else a user's settings put lines about signatures into a log, and leave the first commit out of a search.
GIT = ("git", "-c", "log.showSignature=false", "-c", "log.showRoot=true")


class Tree(Protocol):
    """Files by POSIX path relative to the root of the checkout."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    def read(self, path: str) -> bytes | None:
        """The bytes of a file, or None if there is none. Raises LineageError if what is there cannot be read."""

    def digest(self, path: str) -> Digest | None:
        """The digest of a file or folder as DVC computes it, or None if it is not there. Cost: O(bytes), once.

        What is there and cannot be read is named in the digest, which then equals no other.
        """

    def files_below(self, folder: str) -> list[str]:
        """The files in a folder and below, by paths relative to it, sorted; [] if there is no folder."""


class WorkingTree:
    """The files of a checkout, a Tree. Each is hashed once per object."""

    name = "this checkout"

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[str, Digest | None] = {}

    def read(self, path: str) -> bytes | None:
        """See Tree."""
        place = self.root / path
        try:
            return _regular(place).read_bytes()
        except IsADirectoryError:
            return None
        except OSError as error:
            if not _exists(place):
                return None
            raise LineageError(
                "a file cannot be read",
                where=path,
                expected="a regular file",
                got=reason_of(place, error),
                remedy="remove it, or make it readable; what git tracks comes back by `git checkout -- FILE`",
            ) from None

    def digest(self, path: str) -> Digest | None:
        """See Tree."""
        if path not in self._known:
            place = self.root / path
            hashed = self._folder if _is_folder(place) else self._file
            self._known[path] = hashed(path) if _exists(place) else None
        return self._known[path]

    def files_below(self, folder: str) -> list[str]:
        """See Tree."""
        place = self.root / folder
        return sorted(file.relative_to(place).as_posix() for file in place.rglob("*") if _is_listed(file))

    @cached_property
    def _ignored(self) -> IgnoreRules:
        return IgnoreRules(self.read(".dvcignore"))

    def _file(self, path: str) -> Digest:
        place = self.root / path
        try:
            return Digest(md5_of(_regular(place)))
        except OSError as error:
            return Digest("", unreadable={"": reason_of(place, error)})

    def _folder(self, path: str) -> Digest:
        found = Digest("")
        self._walk(found, path, "", ())
        return found if found.unreadable else folder_digest(found.files, found.hidden)

    def _walk(self, found: Digest, top: str, inner: str, above: tuple[Path, ...]) -> None:
        """Hash every file in a folder and below; links are followed, as DVC does. above: the folders on the way."""
        place = self.root / top / inner
        try:
            names, here = sorted(entry.name for entry in place.iterdir()), place.resolve()
        except OSError as error:
            found.unreadable[inner] = reason_of(place, error)
            return
        if here in above:
            found.unreadable[inner] = "a link to a folder that contains it"
            return
        for name in names:
            relative = f"{inner}/{name}" if inner else name
            full, folder = f"{top}/{relative}", _is_folder(place / name)
            if self._ignored.skips(f"{full}/" if folder else full):
                found.hidden.extend([relative] if self._ignored.hides(f"{full}/" if folder else full) else [])
            elif folder:
                self._walk(found, top, relative, (*above, here))
            else:
                # A folder and a file in it are both asked for: the file's bytes are hashed for the first alone.
                digest = self._known[full] = self._known.get(full) or self._file(full)
                if digest.unreadable:
                    found.unreadable[relative] = digest.unreadable[""]
                else:
                    found.files[relative] = digest.md5


class Revision:
    """The files that a commit holds, a Tree. Raises LineageError if a repository in `root` has no such commit."""

    def __init__(self, root: Path, revision: str) -> None:
        self.root = root
        self.commit, self._title = _find_commit(root, revision)
        if not self.commit:
            _require_no_refusal(root)
            raise LineageError(
                f"there is no commit '{revision}'",
                where=str(root),
                expected="a commit, branch or tag of this repository",
                got=revision,
                remedy="`git log --oneline` lists commits; a shallow clone gets the others by `git fetch --unshallow`",
            )
        # The paths of a commit begin at the root of its repository.
        if above := (git(root, "rev-parse", "--show-prefix") or b"").decode("utf-8", "replace").strip():
            raise LineageError(
                "this folder is not the root of its git repository",
                where=str(root),
                expected="a clone of the project",
                got=f"the folder {above} of another repository",
                remedy="audit in a clone of the project",
            )
        self.revision = revision
        self._contents: dict[str, bytes] = {}
        self._known: dict[str, Digest | None] = {}
        self._bytes = 0  # read so far
        self._names = 0  # letters of them, in digests so far

    @property
    def name(self) -> str:
        """Its name in messages."""
        short = self.commit[:10]
        return f"git's {self._title}" if self._title.startswith(short) else f"git's {self._title} ({short})"

    def read(self, path: str) -> bytes | None:
        """See Tree. A link is no file."""
        place = self._resolve(path)
        if place is None:
            return None
        self._load([place])
        return self._contents[place]

    def digest(self, path: str) -> Digest | None:
        """See Tree."""
        if path not in self._known:
            self._known[path] = self._digest(path)
        return self._known[path]

    def _digest(self, path: str) -> Digest | None:
        content = self.read(path)
        if content is not None:
            return Digest(md5_of_bytes(content))
        rules, inside = self._ignored, self.files_below(path)
        self._names += sum(map(len, inside))
        if self._names > MOST_NAMES:
            raise self._unsound(path[:80], f"folders with at most {MOST_NAMES:,} letters of names in all", "more")
        hashed = [name for name in inside if not rules.skips(f"{path}/{name}")]
        linked = [name for name in hashed if self._entries[f"{path}/{name}"][0] in (SYMLINK, SUBMODULE)]
        if linked:
            return Digest("", unreadable=dict.fromkeys(linked, "a link or a submodule, which is not followed"))
        if not hashed:
            # A checkout has something behind a link to a folder, or in a submodule: the commit does not say what.
            ends = [len(path), *(found.start() for found in re.finditer("/", path))]
            link = next((path[:end] for end in ends if path[:end] in self._entries), None)
            return (
                None
                if link is None
                else Digest("", unreadable={"": f"{link} is a link or a submodule, which is not followed"})
            )
        contents = self.read_all(f"{path}/{name}" for name in hashed)
        files = {name: md5_of_bytes(contents[f"{path}/{name}"]) for name in hashed}
        return folder_digest(files, [name for name in inside if rules.hides(f"{path}/{name}")])

    @cached_property
    def _ignored(self) -> IgnoreRules:
        return IgnoreRules(self.read(".dvcignore"))

    def files_below(self, folder: str) -> list[str]:
        """See Tree."""
        names, start = self._sorted, f"{folder}/"
        found = range(bisect_left(names, start), len(names))
        below = takewhile(lambda name: name.startswith(start), (names[place] for place in found))
        return [name[len(start) :] for name in below]

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._entries)

    def read_all(self, names: Iterable[str]) -> dict[str, bytes]:
        """The bytes of several files of the commit, read at once."""
        wanted = list(names)
        self._load(wanted)
        return {name: self._contents[name] for name in wanted}

    def refuse_rewritten(self) -> None:
        """Raise LineageError if a checkout of the commit can have other reports than the commit holds.

        Attributes in the root folder and below reports/ can make git write other bytes. Which files a line is about
        depends on the system and on settings of the clone, so each line counts. And where names have no case, as on
        macOS, a file of Reports/ takes the place of one of reports/, and .GITATTRIBUTES is read.
        """
        shown = [path for path in self.all_files() if folded(path.partition("/")[0]) == "reports"]
        known: dict[tuple[str, str], str] = {}
        seen = {""}
        for path in shown:
            place = path
            while place not in seen:
                seen.add(place)
                above, _, name = place.rpartition("/")
                other = known.setdefault((above, folded(name)), name)
                if other != name:
                    raise self._rewritten(place, "one name, however its letters are written", other)
                place = above
        roots = [path for path in self.all_files() if "/" not in path]
        found = [path for path in (*roots, *shown) if folded(path.rpartition("/")[2]) == ".gitattributes"]
        odd = {path: "a link or a submodule" for path in found if self._entries[path][0] in (SYMLINK, SUBMODULE)}
        for path, content in ({} if odd else self.read_all(found)).items():
            if line := REWRITING.search(HARMLESS.sub(b"", content)):
                odd[path] = line[0].decode("utf-8", "replace")
        if odd:
            path, got = next(iter(odd.items()))
            expected = "no line with working-tree-encoding, ident, crlf, eol or text, but for `PATTERN text eol=lf`"
            raise self._rewritten(path, expected, got)

    def _rewritten(self, path: str, expected: str, got: str) -> LineageError:
        return LineageError(
            "a checkout of the commit can have another report than the commit",
            where=f"{path} of {self.name}",
            expected=expected,
            got=got[:80],
            remedy="audit a commit without it, or take it out and commit that",
        )

    def object_of(self, path: str) -> str:
        """The name that git has for the content of a file; "" if there is no such file."""
        return self._entries.get(path, ("", ""))[1]

    def all_files(self) -> list[str]:
        """Every file of the commit."""
        return list(self._entries)

    @cached_property
    def _entries(self) -> dict[str, tuple[str, str]]:
        """Path -> mode and object of each file; the tree is the one that the commit itself names.

        A folder of one object can stand for billions of files, so the entries are counted before they are listed.
        """
        (content,) = self._objects([self.commit], [f"commit {self.commit}"], "commit")
        level = {"": content.partition(b"\n")[0].removeprefix(b"tree ").decode("ascii", "replace")}
        entries: dict[str, tuple[str, str]] = {}
        trees: dict[str, list[tuple[int, str, str]]] = {}
        folders = letters = 0
        while level:
            new = {name: path or "the root folder" for path, name in level.items() if name not in trees}
            for (name, path), listing in zip(
                new.items(), self._objects(list(new), list(new.values()), "tree"), strict=True
            ):
                trees[name] = self._listed(path, listing, len(name) // 2)
            folders += len(level)
            if len(entries) + folders + sum(len(trees[name]) for name in level.values()) > MOST_FILES:
                raise self._unsound("the root folder", f"at most {MOST_FILES:,} files and folders", "more")
            below: dict[str, str] = {}
            for folder, tree in level.items():
                for mode, entry, name in trees[tree]:
                    path = f"{folder}/{entry}" if folder else entry
                    if path in entries or path in below:
                        expected, got = "one file of that name", "two, of which git shows now one, now the other"
                        raise self._unsound(path, expected, got)
                    letters += len(path)
                    if letters > MOST_NAMES:
                        raise self._unsound("the root folder", f"at most {MOST_NAMES:,} letters of all paths", "more")
                    if len(path) > LONGEST_PATH:
                        raise self._unsound(path[:80], f"a path of at most {LONGEST_PATH:,} letters", f"{len(path):,}")
                    if stat.S_ISDIR(mode):
                        below[path] = name
                    else:
                        entries[path] = (f"{mode:o}", name)
            level = below
        return entries

    def _listed(self, folder: str, listing: bytes, size: int) -> list[tuple[int, str, str]]:
        """Mode, name and object of each entry of a folder. size: bytes of an object's name."""
        found, begin = [], 0
        while begin < len(listing):
            end = listing.find(b"\0", begin)
            mode, _, entry = listing[begin : max(end, begin)].partition(b" ")
            begin = end + 1 + size
            # Git takes 120644 for a link, as 120000, and writes neither that nor others than these.
            sound = mode in MODES and entry and len(entry) <= LONGEST_NAME
            if not sound or b"/" in entry or entry in (b".", b"..") or begin > len(listing):
                expected = f"entries with a mode ({b', '.join(sorted(MODES)).decode()}), a name of a file and an object"
                raise self._unsound(folder, expected, repr((mode + b" " + entry)[:40]))
            found.append((int(mode, 8), entry.decode("utf-8", "surrogateescape"), listing[end + 1 : begin].hex()))
        return found

    def _resolve(self, path: str) -> str | None:
        """The file whose bytes a path has. Of links the one that each suite has to dvc.yaml is followed, and no other.

        Where a link leads depends on the links on its way, and so the text of a link does not say what readers see.
        """
        mode = self._entries[path][0] if path in self._entries else SUBMODULE
        if mode == SYMLINK and re.fullmatch("suites/[^/]+/dvc.yaml", path):
            self._load([path])
            path, linked = "dvc.yaml", self._contents[path] == b"../../dvc.yaml" and "dvc.yaml" in self._entries
            mode = self._entries[path][0] if linked else SUBMODULE
        return None if mode in (SYMLINK, SUBMODULE) else path

    def _load(self, paths: Iterable[str]) -> None:
        wanted = [path for path in paths if path not in self._contents]
        names = [self._entries[path][1] for path in wanted]
        self._contents.update(zip(wanted, self._objects(names, wanted, "blob"), strict=True))

    def _objects(self, names: Sequence[str], titles: Sequence[str], kind: str) -> list[bytes]:
        """The bytes of objects of git, each held against its name. titles: what each is, for messages.

        Git hashes what it fetches, and not what it reads: a clone of a folder, or an alternate, has the objects of
        whoever wrote that folder, and git shows any bytes that are under the name of an object there.
        """
        found = []
        with git_objects(self.root, names) as stream:
            for name, title in zip(names, titles, strict=True):
                facts = stream.readline().split()
                # "<object> missing", or nothing at all where git itself fails.
                if len(facts) != 3 or facts[1] != kind.encode():
                    raise self._lacking(title, name)
                self._bytes += int(facts[2])
                if self._bytes > MOST_BYTES:
                    raise self._unsound(title, f"at most {MOST_BYTES:,} bytes in all that is read", "more")
                content = stream.read(int(facts[2]))
                if object_name(kind, content, length=len(name)) != name:
                    raise self._unsound(title, f"the object {name}", "other bytes than those that have this hash")
                found.append(content)
                stream.read(1)
        return found

    def _lacking(self, title: str, name: str) -> LineageError:
        return LineageError(
            "git lacks a file of a commit",
            where=f"{title} of {self.name}",
            expected=f"the object {name}",
            got="`git cat-file` does not find it",
            remedy="`git fsck` names what is lost; `git fetch --refetch` gets it again from a remote",
        )

    def _unsound(self, title: str, expected: str, got: str) -> LineageError:
        return LineageError(
            "a commit in git's store is not sound",
            where=f"{title} of {self.name}",
            expected=expected,
            got=got,
            remedy="`git fsck` names all that is wrong; fetch the commit from a remote into a new clone",
        )


def object_name(kind: str, content: bytes, *, length: int) -> str:
    """The name that git gives to an object: sha1 of a header and the content; sha256 where names have 64 digits."""
    hashed = hashlib.new("sha1" if length == 40 else "sha256", usedforsecurity=False)
    hashed.update(f"{kind} {len(content)}\0".encode())
    hashed.update(content)
    return hashed.hexdigest()


def git(root: Path, *arguments: str, stdin: bytes | None = None) -> bytes | None:
    """What git prints, or None where it fails or is not there. Takes no lock, so a read-only checkout will do."""
    done = run_git(root, *arguments, stdin=stdin)
    return done.stdout if done is not None and done.returncode == 0 else None


def run_git(root: Path, *arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes] | None:
    """A call of git that has ended; None where there is no git."""
    try:
        return subprocess.run(
            [*GIT, *arguments], cwd=root, input=stdin, env=git_environment(), capture_output=True, check=False
        )
    except OSError:
        return None


@contextmanager
def git_stream(root: Path, *arguments: str, stdin: bytes) -> Iterator[IO[bytes]]:
    """The stream of what git prints, for what may not fit into the memory."""
    with tempfile.TemporaryFile() as asked:
        asked.write(stdin)
        asked.seek(0)
        process = subprocess.Popen(
            [*GIT, *arguments], cwd=root, stdin=asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=git_environment(),
        )  # fmt: skip
    with process, process.stdout or io.BytesIO() as stream:
        try:
            yield stream
        finally:
            process.kill()


def git_objects(root: Path, names: Sequence[str]) -> AbstractContextManager[IO[bytes]]:
    """The stream of `git cat-file --batch`: for each object a line with its size, then its bytes and a line end."""
    return git_stream(root, "cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode())


def git_environment() -> dict[str, str]:
    """The environment of a call of git about the repository of its working folder, whatever the caller's names."""
    # A hook's GIT_DIR would point at another repository, and a replacement shows other bytes under an object's name.
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_") or key.startswith(CONFIG)}
    # git takes a path for a pattern, which can need hours; paths of dvc.lock are names.
    plain = {"GIT_LITERAL_PATHSPECS": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C"}
    return {**kept, **plain}


class GitRefusalError(LineageError):
    """git does not read a repository that is there."""


def folded(name: str) -> str:
    """A name as a file system without case has it, less the characters that some of them ignore."""
    return unicodedata.normalize("NFC", IGNORABLE.sub("", name)).casefold()


def _find_commit(root: Path, revision: str) -> tuple[str, str]:
    """The digits of a commit, or "" if there is none; and its name in messages.

    The name of a tag or branch that reads as digits of a commit is written in full, as refs/tags/20241127: git reads
    the tag, and tags of a stranger come along with each fetch.

    Raises LineageError for a name with two meanings: that of a tag and of a branch, or of a tag and of another commit
    that is here, by its first digits or as `git describe` prints it.
    """

    def asked(*words: str, stdin: bytes | None = None) -> tuple[str, str]:
        done = run_git(root, "-c", "core.warnAmbiguousRefs=true", *words, stdin=stdin)
        texts = [] if done is None else [part.decode("utf-8", "replace") for part in (done.stdout, done.stderr)]
        if done is None or done.returncode:
            return "", "".join(texts[1:])
        return texts[0].strip(), texts[1]

    def named(name: str) -> tuple[str, str]:
        found, said = asked("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")
        return (found if re.fullmatch("[0-9a-f]{40,64}", found) else ""), said

    found, said = named(revision)
    title, doubt = revision, said.splitlines()[0] if "is ambiguous" in said else ""
    if revision in ("HEAD", found):  # all digits are a commit to git
        doubt = ""
    base = re.split(r"[~^:]|@\{", revision)[0]
    # As git describe prints a commit, or as its first digits.
    digits = re.fullmatch(r"(?:.*-g)?([0-9a-f]{4,64})", base)
    first = named(base)[0] if digits and found else ""
    if digits and first:
        full = asked("rev-parse", "--verify", "--symbolic-full-name", "--end-of-options", base)[0]
        if full not in ("", base):  # a tag or branch, and not by its whole name
            alike = asked("rev-parse", f"--disambiguate={digits[1]}")[0]
            others = asked("cat-file", "--batch-check=%(objecttype) %(objectname)", stdin=alike.encode())[0]
            commits = {line.split()[1] for line in others.splitlines() if line.startswith("commit ")} - {first}
            doubt = f"{full} at {first}, and commit {min(commits)}" if commits else doubt
            title = full + revision.removeprefix(base)
    if doubt:
        raise LineageError(
            f"'{revision}' is the name of two things", where=str(root), expected="a name that one of them has",
            got=doubt, remedy="give the whole name of the one that is meant: refs/tags/..., refs/heads/..., all digits",
        )  # fmt: skip
    return found, title


def _require_no_refusal(root: Path) -> None:
    """Raise GitRefusalError where git does not read a repository, as that of another account in a container."""
    if not (root / ".git").exists():
        return
    try:
        words = ["git", "rev-parse", "--git-dir"]
        done = subprocess.run(words, cwd=root, env=git_environment(), capture_output=True, text=True, check=False)
    except OSError:
        return
    if done.returncode:
        said = done.stderr.strip().splitlines() or [""]
        advised = next((line.strip() for line in said if line.strip().startswith("git config")), "")
        raise GitRefusalError(
            "git does not read this repository", where=str(root), got=said[0].removeprefix("fatal: "),
            remedy=f"if you trust the checkout: {advised}" if advised else "correct what git names",
        )  # fmt: skip


def head_of(root: Path) -> Revision | None:
    """The commit that is checked out, or None where there is no git, or `root` is a folder of another repository.

    Raises GitRefusalError where git does not read the repository.
    """
    try:
        return Revision(root, "HEAD")
    except GitRefusalError:
        raise
    except LineageError:
        return None


def reason_of(place: Path, error: OSError) -> str:
    """Why a file cannot be read, in a few words."""
    if isinstance(error, NOTHING_THERE) and place.is_symlink():
        return f"a link to {place.readlink()}, which is not there"
    return (error.strerror or str(error)).lower()


def _exists(place: Path) -> bool:
    """Whether there is anything under this name; a link to nothing is something."""
    try:
        place.lstat()
    except OSError as error:
        return not isinstance(error, NOTHING_THERE)
    return True


def _is_folder(place: Path) -> bool:
    # Path.is_dir raises where a folder above may not be entered; here reading it will say so.
    try:
        return stat.S_ISDIR(place.stat().st_mode)
    except OSError:
        return False


def _is_listed(place: Path) -> bool:
    # A link to a folder is listed as git lists it, by its own name; what is behind the link is not.
    return place.is_file() or (place.is_symlink() and place.is_dir())


def _regular(place: Path) -> Path:
    """The path of a regular file; OSError if it is none: to open a pipe is to wait for whoever writes to it.

    A file of holes is none either: it can have any size, and hashing takes as long.
    """
    mode = place.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError
    if not stat.S_ISREG(mode):
        raise OSError(0, "not a regular file")
    if place.stat().st_size > 1 << 20:
        from sentfold.data.tables import DataError, refuse_holes

        try:
            refuse_holes(place)
        except DataError as error:
            raise OSError(0, error.what) from None
    return place
