"""Checkouts and commits of a stranger: what git's store, tags, locks and records can say, and must not be believed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
import zlib
from itertools import count
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.lineage import trees
from pipeline.lineage.audit import audit
from pipeline.lineage.checks import MOST_CAUSES, StageChecks, runs_a_stage
from pipeline.lineage.crate import export_crate
from pipeline.lineage.hashes import IgnoreRules, LineageError
from pipeline.lineage.isolated_stage import run_command
from pipeline.lineage.numbers import Scores, read_index, read_numbers
from pipeline.lineage.runs import ended_runs, mapping_at, runs_path, sealed_inputs
from pipeline.lineage.scope import Scope
from pipeline.lineage.stages import load_graph, load_stages, read_yaml, related
from pipeline.lineage.templates import fill
from pipeline.lineage.text import audit_text
from pipeline.lineage.trace import trace
from pipeline.lineage.trees import Revision, WorkingTree, object_name
from pipeline.lineage.witnesses import WitnessChecks, verified_signature
from sentfold.errors import ArtifactError, SentfoldError
from tests.checkout import ROOT
from tests.lineage.small import Small

WHO = {f"GIT_{role}_{what}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
QUIET = {**os.environ, **WHO, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def git(root: Path, *words: str, stdin: bytes | None = None, **more: str) -> str:
    """What git prints; it must succeed."""
    done = subprocess.run(
        ["git", *words], cwd=root, input=stdin, env={**QUIET, **more}, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A commit of a suite without stages, and of a report."""
    root = tmp_path / "repository"
    (root / "reports/quick").mkdir(parents=True)
    (root / "dvc.yaml").write_text("stages: {}\n")
    (root / "reports/quick/report.md").write_text("cosine wins\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "One")
    return root


# --- the store of git -----------------------------------------------------------------------------------------


def write_object(root: Path, name: str, kind: str, content: bytes) -> None:
    """Put bytes under the name of an object of git, whatever their hash is."""
    place = root / ".git/objects" / name[:2] / name[2:]
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    place.write_bytes(zlib.compress(f"{kind} {len(content)}\0".encode() + content))


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_the_name_of_an_object_is_the_one_that_git_gives(tmp_path: Path, algorithm: str) -> None:
    git(tmp_path, "init", "-q", f"--object-format={algorithm}")
    name = git(tmp_path, "hash-object", "--stdin", stdin=b"some bytes\n")
    assert object_name("blob", b"some bytes\n", length=len(name)) == name


def test_other_bytes_under_the_name_of_a_file_are_named_where_a_clone_took_them_unread(
    repository: Path, tmp_path: Path
) -> None:
    """`git clone` of a folder links objects unread: the commit, and its signature, are those of its author."""
    file = git(repository, "rev-parse", "HEAD:reports/quick/report.md")
    write_object(repository, file, "blob", b"cosine fails\n")
    git(tmp_path, "clone", "-q", "--bare", str(repository), "clone")
    assert (
        git(tmp_path / "clone", "show", "HEAD:reports/quick/report.md") == "cosine fails"
    )  # else it would be no attack
    with pytest.raises(LineageError, match="not sound") as caught:
        Revision(tmp_path / "clone", "HEAD").digest("reports/quick")
    assert "reports/quick/report.md" in caught.value.where
    assert file in caught.value.expected


def test_another_folder_under_the_name_of_a_folder_is_named(repository: Path) -> None:
    evil = git(repository, "hash-object", "-w", "--stdin", stdin=b"cosine fails\n")
    folder = git(repository, "rev-parse", "HEAD:reports/quick")
    write_object(repository, folder, "tree", b"100644 report.md\0" + bytes.fromhex(evil))
    assert git(repository, "show", "HEAD:reports/quick/report.md") == "cosine fails"
    with pytest.raises(LineageError, match="not sound") as caught:
        Revision(repository, "HEAD").read("reports/quick/report.md")
    assert caught.value.where.startswith("reports/quick of ")


def test_another_commit_under_the_name_of_a_commit_is_named(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    content = subprocess.run(
        ["git", "cat-file", "commit", "HEAD"], cwd=repository, capture_output=True, check=True
    ).stdout
    write_object(repository, commit, "commit", content.replace(b"One", b"Two"))
    with pytest.raises(LineageError):
        Revision(repository, "HEAD").read("dvc.yaml")


def make_tree(root: Path, *entries: tuple[str, str, str]) -> str:
    """The object of a folder: mode, name and object of each entry."""
    lines = "".join(
        f"{mode} {'tree' if mode == '040000' else 'blob'} {name}\t{entry}\n" for mode, entry, name in entries
    )
    return git(root, "mktree", stdin=lines.encode())


def test_a_commit_of_billions_of_files_is_refused_before_they_are_listed(repository: Path) -> None:
    """Nine folders, each of ten times the next: some hundred bytes each, 10^10 files."""
    tree = make_tree(repository, ("100644", "report.md", git(repository, "rev-parse", "HEAD:reports/quick/report.md")))
    for _ in range(10):
        tree = make_tree(repository, *(("040000", f"d{number}", tree) for number in range(10)))
    commit = git(repository, "commit-tree", tree, "-m", "Many")
    began = time.monotonic()
    with pytest.raises(LineageError, match="not sound") as caught:
        Revision(repository, commit).read("dvc.yaml")
    assert "files and folders" in caught.value.expected
    assert time.monotonic() - began < 30


def test_folders_in_each_other_that_are_all_hashed_are_refused_before_their_names_fill_the_memory(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders in each other, with many files at the end, and a stage that names each folder: some KB of git."""
    monkeypatch.setattr("pipeline.lineage.trees.MOST_NAMES", 1 << 20)
    file = git(repository, "rev-parse", "HEAD:reports/quick/report.md")
    tree = make_tree(repository, *(("100644", f"f{number}", file) for number in range(100)))
    for _ in range(200):
        tree = make_tree(repository, ("040000", "a", tree))
    revision = Revision(repository, git(repository, "commit-tree", tree, "-m", "Deep"))
    with pytest.raises(LineageError, match="not sound") as caught:
        for depth in range(1, 200):
            assert revision.digest("/".join("a" * depth)) is not None
    assert "letters of names" in caught.value.expected


def test_a_commit_whose_files_unpack_to_gigabytes_is_refused_unread(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros, of which git keeps a thousandth. Here a megabyte is the most that is read."""
    (repository / "reports/quick/report.md").write_bytes(bytes(1 << 21))
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "Zeros")
    assert len(Revision(repository, "HEAD").read("reports/quick/report.md") or b"") == 1 << 21
    monkeypatch.setattr("pipeline.lineage.trees.MOST_BYTES", 1 << 20)
    with pytest.raises(LineageError, match="not sound") as caught:
        Revision(repository, "HEAD").digest("reports/quick")
    assert "report.md" in caught.value.where
    assert Revision(repository, "HEAD").read("dvc.yaml") == b"stages: {}\n"


@pytest.mark.parametrize(
    "entry",
    [
        *(b"100644 a/b", b"40000 ..", b"100644 ", b"x report.md", b"100644 " + b"a" * 256),
        *(mode + b" report.md" for mode in (b"120644", b"120777", b"100600", b"160644", b"20000", b"0100644")),
    ],
)
def test_a_folder_of_a_commit_with_names_and_modes_that_no_file_has_is_refused(repository: Path, entry: bytes) -> None:
    """git takes 120644 for a link, and its text was taken for the page."""
    file = git(repository, "rev-parse", "HEAD:reports/quick/report.md")
    content = entry + b"\0" + bytes.fromhex(file)
    name = object_name("tree", content, length=40)
    write_object(repository, name, "tree", content)
    commit = git(repository, "commit-tree", name, "-m", "Odd")
    with pytest.raises(LineageError, match="not sound"):
        Revision(repository, commit).read("report.md")


@pytest.mark.parametrize(
    "name",
    ["Reports/quick/summary.txt", "reports/Quick/new.txt", "reports/quic\u212a/new.txt",
     "rep\u200corts/quick/summary.txt", "reports/qui\ufe0fck/new.txt", "reports/\u3164quick/new.txt"],
)  # fmt: skip
def test_a_commit_with_a_name_twice_where_names_have_no_case_is_refused(small: Small, name: str) -> None:
    """A checkout on macOS has one of the two."""
    for other in (name, "notes/a.md", "notes/A.md"):  # of names of other folders no report takes the place
        (small.root / other).parent.mkdir(parents=True, exist_ok=True)
        (small.root / other).write_text("99.9\n")
    git(small.root, "add", "--force", "-A")
    git(small.root, "commit", "-m", "Another case")
    with pytest.raises(LineageError, match="can have another report"):
        audit(small.root, "quick", revision="HEAD")
    shutil.rmtree(small.root / Path(name).parent)
    small.run("git", "checkout", "HEAD~1", "--", "reports")
    git(small.root, "add", "-A")
    git(small.root, "commit", "-m", "One name")
    audit(small.root, "quick", revision="HEAD")


PLACES = [
    ".GitAttributes",
    "reports/.gitattributes",
    "reports/quick/tables/.GITATTRIBUTES",
    "reports/.git\u200cattributes",
]
LINES = [
    b"*.CSV working-tree-encoding=UTF-7", b"[attr]own -text ident", b'"*.csv"working-tree-encoding=UTF-7',
    b"\xef\xbb\xbf*.csv ident", b"# \0\n*.csv ident", b"", b"*.csv text eol=crlf", b"* crlf", b"*.csv text",
    b"*.csv !text", b'"*.csv"text=auto', b"*.csv\ttext  -diff",
    b"*.csv text eol=lf\n*.csv !eol", b"*.csv text eol=lf -eol", b'"[! eol=lf]*.csv" text', b"*.csv eol=lf\n* -eol",
]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "line"),
    [*((PLACES[1], line) for line in LINES), *((place, LINES[0]) for place in PLACES if place != PLACES[1])],
)
def test_a_commit_whose_checkout_has_other_bytes_is_refused(small: Small, place: str, line: bytes) -> None:
    """In UTF-7 the +3.35 of a table is +-3.35, which a spreadsheet takes for -3.35."""
    path = small.root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(line + b"\n") if line else path.symlink_to("elsewhere")
    git(small.root, "add", "--force", place)
    git(small.root, "commit", "-m", "Attributes")
    with pytest.raises(LineageError, match="can have another report"):
        audit(small.root, "quick", revision="HEAD")


@pytest.mark.parametrize("place", PLACES)
def test_a_commit_with_harmless_attributes_is_audited(small: Small, place: str) -> None:
    (small.root / place).parent.mkdir(parents=True, exist_ok=True)
    (small.root / place).write_text(
        "# no ident\n*.csv -diff -ident -crlf filter=lfs\n*.sh text=auto eol=lf\n*.text -diff\ntext -diff\n"
        ".git_archival.txt export-subst\n* -text\n"
    )
    (small.root / "notes").mkdir()
    (small.root / "notes/.gitattributes").write_text("*.txt working-tree-encoding=UTF-16\n")
    git(small.root, "add", "--force", "-A")
    git(small.root, "commit", "-m", "Harmless attributes")
    audit(small.root, "quick", revision="HEAD")


def test_thousands_of_files_of_attributes_are_read_by_one_call_of_git(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = git(repository, "hash-object", "-w", "--stdin", stdin=b"# nothing\n")
    tree = make_tree(repository, ("100644", ".gitattributes", blob))
    for _ in range(2):
        tree = make_tree(repository, *(("040000", f"{i:02}", tree) for i in range(50)))
    commit = Revision(
        repository, git(repository, "commit-tree", make_tree(repository, ("040000", "reports", tree)), "-m", "x")
    )
    assert len(commit.all_files()) == 2_500
    called: list[int] = []
    read = trees.git_objects
    monkeypatch.setattr(trees, "git_objects", lambda root, names: called.append(len(names)) or read(root, names))
    commit.refuse_rewritten()
    assert called == [2_500]


def test_thousands_of_tables_are_refused_before_one_is_read(small: Small) -> None:
    """Git is called for each of them: minutes for a commit of 3 KB."""
    for number in range(1_000):
        (small.root / f"reports/quick/tables/{number}.csv").touch()
    commit = small.commit("Tables")
    with pytest.raises(LineageError, match="at most 1,000 tables"):
        audit(small.root, "quick", revision=commit)


@pytest.mark.slow
def test_a_commit_of_folders_in_folders_without_end_is_refused(repository: Path) -> None:
    """The paths of 5,000 folders, each in the one before, have 25 million letters."""
    tree = make_tree(repository, ("100644", "report.md", git(repository, "rev-parse", "HEAD:reports/quick/report.md")))
    for _ in range(5_000):
        content = b"40000 d\0" + bytes.fromhex(tree)
        tree = object_name("tree", content, length=40)
        write_object(repository, tree, "tree", content)
    commit = git(repository, "commit-tree", tree, "-m", "Deep")
    with pytest.raises(LineageError, match="not sound") as caught:
        Revision(repository, commit).read("dvc.yaml")
    assert "a path of at most" in caught.value.expected


def test_a_commit_whose_paths_would_fill_the_memory_is_refused(repository: Path) -> None:
    """With one sign of four bytes in a path, each of its letters takes four."""
    blob = bytes.fromhex(git(repository, "rev-parse", "HEAD:reports/quick/report.md"))
    entries = b"".join(b"100644 %03d\0" % number + blob for number in range(400))
    for step in range(16):
        name = object_name("tree", entries, length=40)
        write_object(repository, name, "tree", entries)
        inner = bytes.fromhex(name)
        names = [b"%03d" % number for number in range(400)] if step == 0 else ["\U0001f600".encode() + b"a" * 240]
        entries = b"".join(b"40000 " + one + b"\0" + inner for one in names)
    name = object_name("tree", entries, length=40)
    write_object(repository, name, "tree", entries)
    commit = git(repository, "commit-tree", name, "-m", "Long names")
    with pytest.raises(LineageError, match="not sound") as caught:
        Revision(repository, commit).all_files()
    assert "letters of all paths" in caught.value.expected


def test_a_folder_with_two_files_of_one_name_is_refused(repository: Path) -> None:
    """`git show` reads the first, a checkout has the last; a server that does not check objects hands both on."""
    files = [git(repository, "hash-object", "-w", "--stdin", stdin=text) for text in (b"good\n", b"evil\n")]
    entries = b"".join(b"100644 report.md\0" + bytes.fromhex(file) for file in files)
    name = object_name("tree", entries, length=40)
    write_object(repository, name, "tree", entries)
    commit = git(repository, "commit-tree", name, "-m", "Two")
    with pytest.raises(LineageError, match="not sound") as caught:
        Revision(repository, commit).read("report.md")
    assert "report.md" in caught.value.where


def test_a_link_to_a_folder_and_a_submodule_are_not_taken_from_the_checkout(repository: Path) -> None:
    (repository / "notes/f").mkdir(parents=True)
    (repository / "notes/f/page.html").write_text("cosine fails\n")
    (repository / "notes/g").symlink_to("f")
    (repository / "reports/quick/figures").symlink_to("../../notes/f")
    (repository / "reports/quick/index.html").symlink_to("../../notes/g/page.html")
    git(repository, "add", "-A")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},reports/quick/tables")
    git(repository, "commit", "-q", "-m", "Links")
    commit = Revision(repository, "HEAD")
    for name in ("figures", "figures/page.html", "index.html", "tables", "tables/cells.json"):
        digest = commit.digest(f"reports/quick/{name}")
        assert digest is not None and digest.unreadable, name
        assert Scope(repository, "quick", revision="HEAD").digest(f"reports/quick/{name}") == digest
    assert commit.digest("notes") == commit.digest("notes") and commit.read("reports/quick/tables") is None


def test_a_link_of_a_commit_is_no_file_whatever_its_text_seems_to_say(repository: Path) -> None:
    """With `s` a link to docs/y/z, `s/../docs/x` is docs/y/docs/x to who reads files, and docs/x by its letters."""
    for folder, said in (("docs/x", "cosine holds\n"), ("docs/y/docs/x", "cosine fails\n")):
        (repository / folder).mkdir(parents=True)
        (repository / folder / "report.md").write_text(said)
    (repository / "docs/y/z").mkdir()
    (repository / "docs/y/z/keep").touch()
    (repository / "s").symlink_to("docs/y/z")
    for name, target in (("a.md", "../../s/../docs/x/report.md"), ("b.md", "../../docs/x/report.md")):
        (repository / "reports/quick" / name).symlink_to(target)
    assert (repository / "reports/quick/a.md").read_text() == "cosine fails\n"
    (repository / "suites/mine").mkdir(parents=True)
    (repository / "suites/mine/dvc.yaml").symlink_to("../../dvc.yaml")
    (repository / "dvc.yaml").write_text("stages: {}\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "Links")
    commit = Revision(repository, "HEAD")
    for name in ("a.md", "b.md"):
        digest = commit.digest(f"reports/quick/{name}")
        assert digest is not None and digest.unreadable and commit.read(f"reports/quick/{name}") is None
    assert commit.read("suites/mine/dvc.yaml") == b"stages: {}\n"


def test_a_link_in_a_folder_of_a_commit_is_no_file_whose_bytes_are_its_text(repository: Path) -> None:
    """In a checkout the table cannot be opened: its text is no name of a file."""
    (repository / "reports/quick/tables").mkdir(parents=True)
    (repository / "reports/quick/tables/sts.csv").symlink_to("row,value")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "A table that is a link")
    digest = Revision(repository, "HEAD").digest("reports/quick/tables")
    assert digest is not None and set(digest.unreadable) == {"sts.csv"}


def test_a_name_that_a_tag_and_a_branch_have_is_refused(repository: Path) -> None:
    """`git rev-parse main` reads the tag, and `git checkout main` takes the branch."""
    branch = git(repository, "symbolic-ref", "--short", "HEAD").strip()
    git(repository, "tag", branch)
    git(repository, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(repository, "tag", "origin/main")
    commit = git(repository, "rev-parse", "HEAD").strip()
    git(repository, "commit", "--allow-empty", "-m", "Sound")
    short, package, hidden = f"v1-3-g{commit[:8]}", f"sentfold@1.0-4-g{commit[:8]}", f"refs/x-3-g{commit[:7]}"
    read_as_digits = ("v1-3-gabcdef1", "20241127", "20241127a", "effaced", "my-gaffe")  # no object here begins so
    for tag in (commit[:8], short, package, hidden, commit, *read_as_digits):
        git(repository, "update-ref", f"refs/tags/{tag}", "HEAD")  # of another commit
    twice = (branch, "origin/main", f"{branch}~0", f"{branch}^{{commit}}", commit[:8])
    for name in (*twice, short, f"{short}~0", package, f"{package}~0", hidden):
        with pytest.raises(LineageError, match="the name of two things"):
            Revision(repository, name)
    assert Revision(repository, commit).commit == commit
    for name in read_as_digits:
        found = Revision(repository, name)
        assert found.commit != commit and found.name == f"git's refs/tags/{name} ({found.commit[:10]})"
    assert Revision(repository, f"refs/tags/{short}").commit != commit
    with pytest.raises(LineageError, match="there is no commit"):
        Revision(repository, "^HEAD")
    odd = "caf\udce9"  # in Latin-1
    for kind in ("heads", "tags"):
        git(repository, "update-ref", f"refs/{kind}/{odd}", "HEAD")
    with pytest.raises(LineageError, match="the name of two things"):
        Revision(repository, odd)
    git(repository, "tag", "-a", "v2.0", "-m", "A tag with digits of its own")
    tag = git(repository, "rev-parse", "v2.0").strip()
    for name in (tag, tag[:10], f"{tag}~0", "v2.0"):
        assert Revision(repository, name).commit == git(repository, "rev-parse", "HEAD").strip()
    for name in (f"refs/heads/{branch}", f"refs/tags/{branch}", "refs/remotes/origin/main", "tags/origin/main", "HEAD"):
        assert Revision(repository, name).commit


def test_a_tag_that_is_called_by_the_first_digits_of_its_own_object_stands_for_no_commit_that_begins_so(
    repository: Path,
) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    git(repository, "commit", "--allow-empty", "-m", "Forged")
    other, digits = git(repository, "rev-parse", "HEAD"), commit[:4]
    for number in count():
        content = f"object {other}\ntype commit\ntag {digits}\ntagger A <a@b> 0 +0000\n\n{number}\n".encode()
        if object_name("tag", content, length=40).startswith(digits):
            break
    git(repository, "update-ref", f"refs/tags/{digits}", git(repository, "mktag", stdin=content))
    for name in (digits, f"{digits}~0"):
        with pytest.raises(LineageError, match="the name of two things"):
            Revision(repository, name)
    assert Revision(repository, f"refs/tags/{digits}").commit == other


def test_pages_of_the_checkout_do_not_stand_in_for_those_that_a_commit_replaces_or_lacks(small: Small) -> None:
    base = small.run("git", "rev-parse", "HEAD").stdout.strip()
    page = small.root / "reports/quick/summary.txt"
    (small.root / "notes/f").mkdir(parents=True)
    (small.root / "notes/g").symlink_to("f")
    page.rename(small.root / "notes/f/summary.txt")
    (small.root / "notes/f/summary.txt").write_text("cosine fails\n")
    page.symlink_to("../../notes/g/summary.txt")
    replaced = small.commit("A link through a link")
    page.unlink()
    lacking = small.commit("No page")
    small.run("git", "checkout", "-q", base)
    assert not audit(small.root, "quick", revision=base).failed(strict=True)
    for commit, state in ((replaced, "wrong"), (lacking, "absent")):
        found = audit(small.root, "quick", revision=commit)
        assert [cause.state for cause in found.causes if cause.subject == "reports/quick/summary.txt"] == [state]
        assert found.failed(strict=True)


# --- signatures -------------------------------------------------------------------------------------------------


def test_a_tag_whose_name_is_read_as_another_tag_lends_no_signature(repository: Path, tmp_path: Path) -> None:
    """git reads `tags/v1` as the tag v1, so a tag of that name on a forged commit had the signature of v1."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    (tmp_path / "trusted").write_text(f"a@b.c {key.with_suffix('.pub').read_text()}")
    settings = {"format": "ssh", "ssh.allowedSignersFile": str(tmp_path / "trusted")}
    for name, value in (*((f"gpg.{name}", value) for name, value in settings.items()), ("user.signingkey", str(key))):
        git(repository, "config", name, value)
    git(repository, "tag", "-s", "-m", "v1", "v1")
    git(repository, "tag", "v1-light")
    assert "has a good signature" in verified_signature(Scope(repository, "quick"))
    (repository / "reports/quick/report.md").write_text("cosine fails\n")
    git(repository, "commit", "-q", "-a", "-m", "Forged")
    git(repository, "update-ref", "refs/tags/tags/v1", "HEAD")
    git(repository, "verify-tag", "tags/v1")  # git verifies it, else it would be no attack
    assert verified_signature(Scope(repository, "quick")) == ""


def test_a_gpg_key_that_is_known_and_not_trusted_signs_nothing(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GnuPG can fetch keys by itself, and a key can have any name; git alone calls the signature good."""
    if shutil.which("gpg") is None:
        pytest.skip("gpg is not installed")
    homes = {name: tmp_path / name for name in ("author", "reader")}
    for home in homes.values():
        home.mkdir(mode=0o700)
    author = {"GNUPGHOME": str(homes["author"])}
    make = ["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-gen-key", "a@b.c", "ed25519", "sign", "never"]
    subprocess.run(make, env={**QUIET, **author}, check=True, capture_output=True)
    git(repository, "commit", "-q", "--amend", "-Sa@b.c", "--no-edit", **author)
    export = ["gpg", "--batch", "--export", "a@b.c"]
    key = subprocess.run(export, env={**QUIET, **author}, check=True, capture_output=True).stdout
    monkeypatch.setenv("GNUPGHOME", str(homes["reader"]))
    subprocess.run(["gpg", "--batch", "--quiet", "--import"], input=key, check=True, capture_output=True)
    git(repository, "verify-commit", "HEAD", GNUPGHOME=str(homes["reader"]))  # good, to git
    assert verified_signature(Scope(repository, "quick")) == ""
    monkeypatch.setenv("GNUPGHOME", str(homes["author"]))
    assert "has a good signature" in verified_signature(Scope(repository, "quick"))
    for home in homes.values():
        subprocess.run(["gpgconf", "--kill", "all"], env={**QUIET, "GNUPGHOME": str(home)}, check=False)


# --- dvc.lock, dvc.yaml, .dvcignore ---------------------------------------------------------------------------


@pytest.mark.parametrize("md5", ["", "None", "0" * 31, "../" + "0" * 29, None])
def test_an_entry_of_the_lock_without_an_md5_is_refused(repository: Path, md5: str | None) -> None:
    """What cannot be read has the md5 "": with such an entry, a pipe in place of a table was as recorded."""
    entry = {"cmd": "true", "outs": [{"path": "reports/quick/tables", **({} if md5 is None else {"md5": md5})}]}
    (repository / "dvc.lock").write_text(yaml.safe_dump({"schema": "2.0", "stages": {"report": entry}}))
    os.mkfifo(repository / "reports/quick/tables")
    assert WorkingTree(repository).digest("reports/quick/tables").md5 == ""
    with pytest.raises(LineageError, match=r"dvc\.lock is malformed"):
        load_graph(WorkingTree(repository), "quick")


def test_an_input_with_two_hashes_is_refused(repository: Path) -> None:
    """DVC goes by the last one, and a reader of dvc.lock by the first."""
    deps = [{"path": "run.yaml", "md5": digit * 32} for digit in "01"]
    (repository / "dvc.lock").write_text(
        yaml.safe_dump({"schema": "2.0", "stages": {"report": {"cmd": "true", "deps": deps}}})
    )
    with pytest.raises(LineageError, match=r"'0{32}' and '1{32}' of run\.yaml"):
        load_graph(WorkingTree(repository), "quick")


def test_a_reference_that_does_not_end_takes_no_time() -> None:
    """The pattern tried every number of blanks at three places: 3,000 of them took hours."""
    began = time.process_time()
    assert fill("${" + " " * 50_000, {}, where="dvc.yaml").startswith("${ ")
    assert fill("${" * 20_000, {}, where="dvc.yaml").startswith("${${")
    assert time.process_time() - began < 5
    assert fill("${ a.b }, ${a.b}", {"a": {"b": 3}}, where="dvc.yaml") == "3, 3"


@pytest.mark.parametrize(
    ("stage", "got"),
    {
        "a value of a megabyte, 20,000 times": ("cmd: x " + "${big}" * 20_000, "letters with its references"),
        "a command of a megabyte, 20 times": (
            "foreach: [1, 2]\n    do: {cmd: '${big}'}",
            "letters with its references",
        ),
        "300 stages of 1,000 parameters": (
            f"foreach: {list(range(300))}\n    do: {{cmd: x, params: [{{params.yaml: '${{many}}'}}]}}",
            "stages, inputs, outputs and parameters",
        ),
        "a list of 2,000 parameters": (
            f"cmd: x\n    params: {[f'k{n}' for n in range(2_000)]}",
            "params and outs, lists",
        ),
        "20 commands of 15,000 letters": (
            f"foreach: {list(range(20))}\n    do: {{cmd: '{'x' * 15_000}'}}",
            "letters of all commands",
        ),
        "3,000 stages of 3,000 inputs": (
            f"foreach: {list(range(3_000))}\n    do: {{cmd: x, deps: {[f'd{n}-${{item}}' for n in range(3_000)]}}}",
            "stages, inputs, outputs and parameters",
        ),
    }.values(),
)
def test_a_small_definition_that_stands_for_gigabytes_is_refused(repository: Path, stage: str, got: str) -> None:
    (repository / "dvc.yaml").write_text(f"vars: [big.yaml]\nstages:\n  a:\n    {stage}\n")
    (repository / "big.yaml").write_text(f"big: {'x' * 1_000_000}\nmany: {[f'k{n}' for n in range(1_000)]}\n")
    with pytest.raises(LineageError, match="malformed") as caught:
        load_graph(WorkingTree(repository), "quick")
    assert got in caught.value.expected


def test_a_body_of_a_foreach_that_is_no_mapping_is_refused(repository: Path) -> None:
    (repository / "dvc.yaml").write_text("stages:\n  a:\n    foreach: [x]\n    do: [1]\n")
    with pytest.raises(LineageError, match="malformed"):
        load_graph(WorkingTree(repository), "quick")


def test_thousands_of_reports_in_folders_in_folders_are_compared_at_once(repository: Path) -> None:
    """Each name is looked at once, and not again for each file that is below it."""
    name, kind = git(repository, "rev-parse", "HEAD:reports/quick/report.md").strip(), b"100644"
    for inner in ([b"%d" % number for number in range(2_000)], *([[b"a" * 7]] * 400), [b"reports"]):
        tree = b"".join(kind + b" " + one + b"\0" + bytes.fromhex(name) for one in sorted(inner))
        name, kind = object_name("tree", tree, length=40), b"40000"
        write_object(repository, name, "tree", tree)
    commit = git(repository, "commit-tree", name, "-m", "Deep").strip()
    began = time.process_time()
    Revision(repository, commit).refuse_rewritten()
    assert time.process_time() - began < 10


@pytest.mark.slow
def test_what_no_audit_reads_of_a_stage_is_not_written_out_for_each_of_its_items(repository: Path) -> None:
    body = f"foreach: {list(range(3_700))}\n    do:\n      cmd: x ${{key}}\n      meta: [{'x,' * 300_000}x]"
    (repository / "dvc.yaml").write_text(f"stages:\n  a:\n    {body}\n")
    began = time.process_time()
    assert len(load_graph(WorkingTree(repository), "quick").stages) == 3_700
    assert time.process_time() - began < 20


def test_thousands_of_inputs_in_folders_in_folders_are_looked_for_at_once(repository: Path) -> None:
    commit, deep = Revision(repository, "HEAD"), "/".join(["a"] * 950)
    began = time.process_time()
    assert all(commit.digest(f"{deep}/{number}") is None for number in range(1_000))
    assert time.process_time() - began < 3


@pytest.mark.slow
def test_a_block_of_thousands_of_other_values_takes_no_time(small: Small) -> None:
    keys = "".join(f"k{number}: 1, " for number in range(20_000))
    small.edit("params.yaml", "evaluate: {", f"evaluate: {{{keys}")
    small.commit("Many values")
    began = time.process_time()
    assert audit(small.root, "quick", revision="HEAD").count("wrong")
    assert time.process_time() - began < 20


def test_who_writes_a_path_is_found_by_its_folders(finished: Small) -> None:
    graph = load_graph(WorkingTree(finished.root), "quick")
    paths = {path for stage in graph.stages.values() for path in (*stage.deps, *stage.outs)}
    for path in {*paths, *(f"{path}/x" for path in paths), "data", "data/quick", "reports", "dat", "x"}:
        wanted = sorted({name for out, name in graph.producers.items() if related(out, path)})
        assert graph.makers_of(path) == wanted


def test_thousands_of_stages_that_read_each_other_are_put_in_order_at_once(repository: Path) -> None:
    inputs = [f"o-{number}/x" for number in range(40)]
    body = f"foreach: {list(range(1_000))}\n    do: {{cmd: x, deps: {inputs}, outs: ['p-${{item}}/y']}}"
    (repository / "dvc.yaml").write_text(f"stages:\n  a:\n    {body}\n")
    graph = load_graph(WorkingTree(repository), "quick")
    began = time.process_time()
    assert len(graph.in_order()) == 1_000
    assert time.process_time() - began < 3


def test_patterns_of_dvcignore_that_take_hours_are_refused() -> None:
    with pytest.raises(LineageError, match="pattern") as caught:
        IgnoreRules(b"*.tmp\n" + b"*a" * 12 + b"*b\n")
    assert caught.value.where == ".dvcignore, line 2"
    for pattern in (b"a**a**a**b\n", b"a*a*a*a*b\n", b"a" + b"*" * 30 + b"b\n", b"**/a/**/a/**/b\n"):
        with pytest.raises(LineageError, match="pattern"):
            IgnoreRules(pattern)
    began = time.process_time()
    rules = IgnoreRules(b"*a*a*b\n**/c*/\n**/x/**/y\n# *** mine ***\n\n**/*.tmp*\n**/x/**/*.log\n")
    assert not rules.skips("x/" * 1000 + "a")
    assert not rules.skips("a" * 255)
    assert rules.skips("x/aab")
    with pytest.raises(LineageError, match="pattern"):
        IgnoreRules(b"**/*a*a*a/**/b\n").skips("/".join(["a" * 250] * 15) + "/c")
    assert time.process_time() - began < 5


# --- files and records -----------------------------------------------------------------------------------------


def test_a_link_to_a_folder_among_the_reports_is_without_witness(repository: Path) -> None:
    (repository / "elsewhere").mkdir()
    (repository / "elsewhere/better.svg").write_text("<svg/>")
    (repository / "reports/quick/figures").symlink_to("../../elsewhere")
    named = {cause.subject for cause in WitnessChecks(Scope(repository, "quick")).strays()}
    assert "reports/quick/figures" in named
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "A link")
    tree, commit = WorkingTree(repository), Revision(repository, "HEAD")
    assert tree.files_below("reports/quick") == commit.files_below("reports/quick")


def test_an_artifact_names_no_input_outside_of_the_checkout(tmp_path: Path) -> None:
    """/proc/self/pagemap is a regular file of 256 GB; an audit hashed whatever an artifact named."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for inputs, left in (
        ({"/proc/self/pagemap": "0", "../secret": "0", "data/a": "1"}, {"data/a": "1"}),
        (["data/a"], {}),
        ("data/a", {}),
    ):
        record = json.dumps({"inputs": inputs}).encode()
        pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({b"sentfold": record}), tmp_path / "a.parquet")
        assert sealed_inputs(tmp_path / "a.parquet") == left


def test_a_record_of_runs_of_other_types_is_left_out(tmp_path: Path) -> None:
    whole = dict.fromkeys(("run", "stage", "command", "started", "ended", "seconds", "exit", "peak_memory_bytes"), 0)
    whole |= {
        "event": "ended",
        "stage": "a",
        "code": {"commit": None, "dirty": None},
        "machine": {"host": "a"},
        "packages": {},
    }
    whole |= {"parameters": {}, "outputs": {"a": {"sha256": "0"}}}
    wrong = [
        {key: value} for key in ("code", "machine", "packages", "parameters", "outputs") for value in ([], None, "a")
    ]
    wrong += [
        {"outputs": {"a": []}},
        {"outputs": {"a": {}}},
        {"code": {}},
        {"code": {"commit": [], "dirty": 0}},
        {"stage": ["a"]},
    ]
    wrong += [{"code": {"commit": None, "dirty": None, "edited": found}} for found in (5, "a", ["a"], {"a": 5})]
    path = runs_path(tmp_path, "quick")
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(whole | other) + "\n" for other in ({}, *wrong, {"machine": {}})))
    assert ended_runs(tmp_path, "quick") == [whole]


@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_a_folder_a_pipe_or_a_device_in_place_of_the_record_of_runs_is_refused(tmp_path: Path, kind: str) -> None:
    path = runs_path(tmp_path, "quick")
    path.parent.mkdir(parents=True)
    {"folder": path.mkdir, "pipe": lambda: os.mkfifo(path), "device": lambda: path.symlink_to("/dev/zero")}[kind]()
    with pytest.raises(ArtifactError, match="the record of runs cannot be read"):
        ended_runs(tmp_path, "quick")


def test_a_score_of_400_digits_and_a_path_of_a_thousand_letters_end_no_audit(small: Small) -> None:
    scores = small.root / "reports/quick/scores/mini.json"
    scores.write_text(re.sub('"value": [0-9.]+', '"value": 1' + 400 * "0", scores.read_text(), count=1))
    found = audit(small.root, "quick")
    assert found.count("wrong") and "mini.json" in audit_text(found)
    lock = (small.root / "dvc.lock").read_text()
    for path in ("a" * 1000, '"a\\0b"'):
        (small.root / "dvc.lock").write_text(lock.replace("data/quick/spaces/mini-lp", path))
        with pytest.raises(LineageError, match=r"dvc\.lock is malformed"):
            audit(small.root, "quick")


def test_a_stage_that_runs_again_sees_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "HF_TOKEN", "GIT_CONFIG_PARAMETERS"):
        monkeypatch.setenv(name, "hush")
    code, said = run_command("python -c 'import os, sys; sys.exit(str(dict(os.environ)))'", tmp_path)
    assert code == 1 and "hush" not in said and "'HOME'" in said


def test_bytes_that_are_no_text_from_a_stage_end_no_audit(tmp_path: Path) -> None:
    code, said = run_command("python -c 'import sys; sys.stderr.buffer.write(bytes([255])); sys.exit(3)'", tmp_path)
    assert (code, said) == (3, "\ufffd")


def test_a_mapping_is_found_or_there_is_none() -> None:
    assert mapping_at({"a": {"b": {"c": 1}}}, "a", "b") == {"c": 1}
    for content in (None, [], {"a": [1]}, {"a": {"b": 3}}):
        assert mapping_at(content, "a", "b") == {}


# --- a little text that takes much memory or time ---------------------------------------------------------------


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A folder of tables of a suite."""
    folder = tmp_path / "reports/quick/tables"
    folder.mkdir(parents=True)
    (folder / "cells.json").write_text('{"schema": 1, "fields": [], "tables": {}}')
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [("\n" * 3, "has 0 cells"), ("row,value\n" + "a,1\n" * 260_000, "numbers"), ("a\n" * (9 << 20), "bytes")],
    ids=["blank lines", "numbers", "bytes"],
)
def test_a_table_that_would_fill_the_memory_is_refused(tables: Path, tmp_path: Path, text: str, said: str) -> None:
    (tables / "a.csv").write_text(text)
    with pytest.raises(LineageError, match="a table cannot be read") as caught:
        read_numbers(WorkingTree(tmp_path), "quick")
    assert said in caught.value.got


@pytest.mark.slow
def test_many_tables_that_would_fill_the_memory_are_refused(tables: Path, tmp_path: Path) -> None:
    for name in "abcd":
        (tables / f"{name}.csv").write_text("row,value\n" + "a,1\n" * 70_000)
    with pytest.raises(LineageError, match="a table cannot be read") as caught:
        read_numbers(WorkingTree(tmp_path), "quick")
    assert "d.csv" in caught.value.where


def test_an_index_and_scores_that_would_fill_the_memory_are_refused(tables: Path, tmp_path: Path) -> None:
    (tables / "cells.json").write_text('{"fields": [], "schema": 1, "tables": {"a": [' + "[]," * (6 << 20) + "[]]}}")
    with pytest.raises(LineageError, match="the index of cells cannot be read") as caught:
        read_index(WorkingTree(tmp_path), "quick")
    assert "bytes" in caught.value.got
    scores = Scores(WorkingTree(tmp_path), "quick")
    for name in "abc":
        path = tmp_path / scores.path(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"a": "' + "b" * (6 << 20) + '"}')
    assert scores.score("a", "stsb", "spearman") == scores.score("b", "stsb", "spearman") == {}
    with pytest.raises(LineageError, match="the scores of a suite"):
        scores.score("c", "stsb", "spearman")


def test_a_definition_of_many_megabytes_is_refused_unparsed(tmp_path: Path) -> None:
    (tmp_path / "dvc.yaml").write_text("stages: {}\n#" + "a" * (17 << 20))
    with pytest.raises(LineageError, match=r"dvc\.yaml is too large"):
        load_graph(WorkingTree(tmp_path), "quick")


def test_a_text_of_a_megabyte_with_twenty_aliases_is_refused(tmp_path: Path) -> None:
    """It was written out for a message: 16 kB of params.yaml in git took 20 GB."""
    (tmp_path / "params.yaml").write_text(f"a: [&a {'x' * 1_000_000}{', *a' * 20}]\n")
    with pytest.raises(LineageError, match=r"params\.yaml is too large"):
        read_yaml(WorkingTree(tmp_path), "params.yaml")


def test_thousands_of_lines_of_dvcignore_are_refused() -> None:
    assert IgnoreRules(b"*.tmp\n# a comment\n\n" * 200).skips("a.tmp")
    with pytest.raises(LineageError, match="a pattern cannot be used") as caught:
        IgnoreRules(b"*.tmp\n" * 201)
    assert caught.value.got == "201"


def test_patterns_that_all_paths_together_make_slow_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pattern, path and number of files within its limit, and all together days."""
    monkeypatch.setattr("pipeline.lineage.hashes.MOST_MATCHED", 200_000)
    rules, path = IgnoreRules(b"**/a/**/b\n" * 180), "a/" * 100 + "c"
    with pytest.raises(LineageError, match="a pattern cannot be used") as caught:
        for number in range(10_000):
            rules.skips(f"{path}{number}")
    assert "180 patterns" in caught.value.got


def test_stages_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "dvc.yaml").write_text(
        "stages:\n  a: {cmd: a, deps: [x], outs: [y]}\n  b: {cmd: b, deps: [y], outs: [x]}\n"
    )
    with pytest.raises(LineageError, match=r"dvc\.yaml is malformed"):
        load_graph(WorkingTree(tmp_path), "quick").in_order()


@pytest.mark.slow
def test_a_number_that_rests_on_a_thousand_stages_is_refused(tables: Path, tmp_path: Path) -> None:
    stages = {f"s{n}": {"cmd": "a", "deps": [f"data/{n}"], "outs": [f"data/{n + 1}"]} for n in range(1000)}
    stages["report"] = {"cmd": "a", "deps": ["data/1000"], "outs": ["reports/quick/tables"]}
    (tmp_path / "dvc.yaml").write_text(json.dumps({"stages": stages}))
    for stage in stages.values():
        for key in ("deps", "outs"):
            stage[key] = [{"path": path, "md5": "0" * 32} for path in stage[key]]
    (tmp_path / "dvc.lock").write_text(json.dumps({"stages": stages}))
    (tables / "a.csv").write_text("space,stsb\nmini,1.00\n")
    cell = [2, "mini", "stsb", "spearman", "x100", "derived", [], {"stsb": "1.00"}]
    fields = ["line", "row", "corpus", "protocol", "unit", "origin", "key", "texts"]
    (tables / "cells.json").write_text(json.dumps({"schema": 1, "fields": fields, "tables": {"a.csv": [cell]}}))
    with pytest.raises(LineageError, match="rests on too many stages"):
        trace(tmp_path, "reports/quick/tables/a.csv", row="mini", column="stsb")


# --- commands ---------------------------------------------------------------------------------------------------


def test_a_stage_that_runs_no_code_of_the_pipeline_is_without_witness(small: Small) -> None:
    (small.root / "pipeline/__main__.py").write_text("")
    small.commit("A pipeline")
    found = audit(small.root, "quick")
    assert ("definition", "unwitnessed") in {(cause.kind, cause.state) for cause in found.causes}
    assert found.count("verified") == 0
    assert any("python stage.py report" in cause.message for cause in found.causes)
    git(small.root, "rm", "-q", "--cached", "pipeline/__main__.py")  # the auditor's checkout still has it
    git(small.root, "commit", "-qm", "No pipeline")
    scope = audit(small.root, "quick", revision="HEAD")
    assert ("definition", "unwitnessed") in {(cause.kind, cause.state) for cause in scope.causes}


@pytest.mark.parametrize("more", ["; cp notes/a reports/a", " && true", " > reports/a", " $(cp a b)", "\ncp a b"])
def test_every_stage_of_the_project_runs_the_pipeline_and_nothing_behind_it(more: str) -> None:
    tree = WorkingTree(ROOT)
    for file in ROOT.glob("suites/*/dvc.yaml"):
        assert all(runs_a_stage(stage.command, tree) for stage in load_stages(tree, file.parent.name).values())
    assert not runs_a_stage(f"python -m pipeline report --suite quick{more}", tree)
    traced = "python -m pipeline trace a.csv --row b --column c --svg reports/quick/better.svg"
    assert not runs_a_stage(traced, tree)


@pytest.mark.parametrize("between", ["\n", " ; ", "\t"])
def test_a_second_command_on_a_line_of_its_own_is_without_witness(between: str, tmp_path: Path) -> None:
    """DVC gives the command to a shell as it is written."""
    command = f"python -m pipeline report --suite quick{between}cp forged.csv reports/quick/tables/sts.csv"
    (tmp_path / "dvc.yaml").write_text(json.dumps({"stages": {"report": {"cmd": command}}}))
    tree = WorkingTree(tmp_path)
    assert not runs_a_stage(load_stages(tree, "quick")["report"].command, WorkingTree(ROOT))


def test_stages_are_those_of_the_audited_code(tmp_path: Path) -> None:
    """The auditor's own checkout can be older than a commit, or newer."""
    (tmp_path / "pipeline/stages").mkdir(parents=True)
    assert not runs_a_stage("python -m pipeline newer stsb --suite quick", WorkingTree(tmp_path))
    (tmp_path / "pipeline/stages/newer.py").touch()
    assert runs_a_stage("python -m pipeline newer stsb --suite quick", WorkingTree(tmp_path))


@pytest.mark.parametrize("place", ["ssh://host/x", "http://127.0.0.1:1/x", "remote://name/x", "s3:bucket", "./", "."])
@pytest.mark.parametrize("section", ["deps", "outs", "params"])
def test_a_path_that_dvc_asks_a_server_for_is_refused(section: str, place: str, tmp_path: Path) -> None:
    """`dvc status`, which a run begins with, hands a server by ssh the user's key."""
    listed = [{place: None}] if section == "params" else [place]
    (tmp_path / "dvc.yaml").write_text(json.dumps({"stages": {"a": {"cmd": "a", section: listed}}}))
    with pytest.raises(LineageError, match="outside of the checkout"):
        load_stages(WorkingTree(tmp_path), "quick")


def test_a_key_of_a_parameter_that_is_a_number_ends_no_audit(small: Small) -> None:
    with (small.root / "plan.yaml").open("a") as stream:
        stream.write("7: [a]\n")
    assert audit(small.root, "quick").causes
    small.commit("A number")
    assert audit(small.root, "quick", revision="HEAD").causes


def test_a_lock_of_more_entries_than_any_suite_has_is_refused(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.lineage.stages.MOST_PATHS", 60)
    load_graph(WorkingTree(small.root), "quick")
    lock = small.root / "dvc.lock"
    more = "".join(f"    - path: c/{number}\n      md5: {'a' * 32}\n" for number in range(60))
    lock.write_text(re.sub(r"(\n  report:\n(?:.*\n)*?    deps:\n)", rf"\1{more}", lock.read_text()))
    with pytest.raises(LineageError, match="at most 60"):
        load_graph(WorkingTree(small.root), "quick")


def test_a_file_of_holes_is_not_hashed_and_goes_into_no_crate(small: Small, tmp_path: Path) -> None:
    """A tar archive of some bytes can hold a file of any size."""
    place = small.root / "reports/quick/tables/holes.csv"
    with place.open("wb") as stream:
        stream.truncate(1 << 40)
    found = WorkingTree(small.root).digest("reports/quick/tables")
    assert found is not None and found.unreadable == {"holes.csv": "most of a file was never written"}
    with pytest.raises(LineageError, match="a file cannot be read"):
        audit(small.root, "quick")
    place.rename(place.with_suffix(".svg"))
    with pytest.raises(SentfoldError, match="most of a file was never written"):
        export_crate(small.root, "quick", tmp_path / "crate")


def test_thousands_of_stages_that_all_stand_on_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(f"i: {list(range(4_001))}\n")
    every = {"cmd": "x", "deps": ["data/quick"], "outs": ["data/quick/${item}"]}
    definition = {"vars": ["plan.yaml"], "stages": {"a": {"foreach": "${i}", "do": every}}}
    (tmp_path / "dvc.yaml").write_text(json.dumps(definition))
    with pytest.raises(LineageError, match="too many stages"):
        load_graph(WorkingTree(tmp_path), "quick")


@settings(max_examples=30, deadline=None)
@given(st.sets(st.text("ab-./0", min_size=1, max_size=5), max_size=12), st.text("ab-0", min_size=1, max_size=3))
def test_the_files_below_a_folder_are_those_whose_names_begin_with_it(names: set[str], folder: str) -> None:
    revision = object.__new__(Revision)
    revision.__dict__["_entries"] = dict.fromkeys(names, ("", ""))
    wanted = sorted(name[len(folder) + 1 :] for name in names if name.startswith(f"{folder}/"))
    assert revision.files_below(folder) == wanted


def test_of_thousands_of_faults_of_a_stage_the_worst_are_kept(small: Small) -> None:
    lock = small.root / "dvc.lock"
    more = "".join(f"    - path: c/{number}\n      md5: {'a' * 32}\n" for number in range(2 * MOST_CAUSES))
    lock.write_text(re.sub(r"(\n  report:\n(?:.*\n)*?    deps:\n)", rf"\1{more}", lock.read_text()))
    checks = StageChecks(Scope(small.root, "quick"))
    found = checks.of("report")
    assert len(found) == MOST_CAUSES and found[0].state == "wrong"


def test_a_number_has_at_most_so_many_faults_of_all_stages_that_it_rests_on(small: Small) -> None:
    """88,432 numbers had those of 231 stages: 4.3 GB of a commit of 420 KB, and growing."""
    lock = small.root / "dvc.lock"
    more = "".join(f"    - path: c/{number}\n      md5: {'a' * 32}\n" for number in range(MOST_CAUSES))
    lock.write_text(lock.read_text().replace("    deps:\n", f"    deps:\n{more}"))
    found = audit(small.root, "quick")
    most = max(len(finding.causes) for finding in found.findings)
    assert MOST_CAUSES / 2 < most <= MOST_CAUSES + 10  # and those of the number's own cell
