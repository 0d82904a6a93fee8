"""What vouches for a file beside dvc.lock, and what nothing vouches for."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from pipeline.lineage.audit import Audit, audit
from pipeline.lineage.crate import export_crate
from pipeline.lineage.hashes import LineageError
from pipeline.lineage.machine import describe_code, describe_packages, keep_loaded
from pipeline.lineage.runs import append_line, read_lines, runs_path
from pipeline.lineage.scope import Scope
from pipeline.lineage.stages import load_graph, load_stages
from pipeline.lineage.text import audit_text
from pipeline.lineage.trees import WorkingTree
from pipeline.lineage.witnesses import verified_signature
from tests.lineage.small import Small
from tests.lineage.tamper import faults, record_run, verdict_of

TABLES = "reports/quick/tables"
SOURCE = "data/quick/spaces/mini/first.txt"


def subjects(found: Audit, state: str) -> set[str]:
    return {cause.subject for cause in found.causes if cause.state == state}


def relock(small: Small, path: str) -> None:
    """Put the hash of an output, as DVC computes it now, into dvc.lock."""
    lock = small.root / "dvc.lock"
    old = next(locked.outs[path].md5 for locked in load_graph(WorkingTree(small.root), "quick").locked.values()
               if path in locked.outs)  # fmt: skip
    here = WorkingTree(small.root).digest(path)
    assert here is not None
    lock.write_text(lock.read_text().replace(old, here.md5))


# --- no record at all -----------------------------------------------------------------------------------


def test_a_file_among_the_reports_that_no_stage_writes_is_named_without_witness(small: Small) -> None:
    stray = small.root / "reports/quick/figures/better.svg"
    stray.parent.mkdir()
    stray.write_text("<svg/>")
    for committed in (False, True):
        if committed:
            small.commit("A figure drawn by hand")
        found = audit(small.root, "quick")
        assert subjects(found, "unwitnessed") == {"reports/quick/figures/better.svg"}
        assert "Without witness, by first cause:" in audit_text(found)
        assert (found.failed(strict=False), found.failed(strict=True)) == (False, True)


@pytest.mark.parametrize("place", ["__pycache__/better.svg", "x.tmp/better.svg", ".dvc/better.svg", "better.tmp"])
def test_a_file_in_an_output_that_dvc_does_not_hash_is_named_without_witness(small: Small, place: str) -> None:
    stray = small.root / "reports/quick/tables" / place
    stray.parent.mkdir(exist_ok=True)
    stray.write_text("<svg/>")
    (small.root / "reports/quick/tables/.sts.csv.host.7.tmp").write_text("half")  # of a writer that was killed
    small.run("git", "add", "-f", "reports")
    small.commit("A figure drawn by hand")
    found = audit(small.root, "quick")
    assert subjects(found, "unwitnessed") == {f"reports/quick/tables/{place}"}
    assert found.failed(strict=True)


def test_a_name_cannot_erase_or_add_a_line_of_what_an_audit_prints(small: Small) -> None:
    """Escape codes move a terminal's cursor, a line break starts a line, and U+202E turns the text around."""
    names = ["a\x1b[2K\x1b[1A.svg", "b\n  9 verified.svg", "c\u202e.svg", os.fsdecode(b"d\xff.svg")]
    (small.root / "reports/quick/figures").mkdir()
    for name in names:
        (small.root / "reports/quick/figures" / name).write_text("<svg/>")
    text = audit_text(audit(small.root, "quick"))
    assert all(line.isprintable() for line in text.split("\n"))
    shown = ["a\\x1b[2K\\x1b[1A.svg", "b\\n  9 verified.svg", "c\\u202e.svg", "d\\udcff.svg"]
    assert [line.rpartition("/")[2] for line in text.split("\n") if line.endswith(".svg")] == shown


def test_scores_and_tables_that_were_taken_out_of_the_outputs_of_stages_are_never_verified(small: Small) -> None:
    small.edit("dvc.yaml", '      metrics: [{"reports/${suite}/scores/${key}.json": {cache: false}}]\n', "")
    small.edit("dvc.yaml", "      - reports/${suite}/tables: {cache: false}\n", "")
    lock = small.root / "dvc.lock"
    content = yaml.safe_load(lock.read_text())
    for stage in content["stages"].values():
        stage["outs"] = [out for out in stage["outs"] if not out["path"].endswith((".json", "tables"))]
    lock.write_text(yaml.safe_dump(content))
    for file in ("scores/mini.json", "tables/sts.csv", "tables/scores.csv", "tables/small.csv"):
        path = small.root / "reports/quick" / file
        path.write_text(path.read_text().replace("20.5", "20.9"))
    small.commit("Better numbers, which are nobody's output")
    found = audit(small.root, "quick")
    assert found.count("verified") == 0
    assert f"{TABLES}/small.csv" in subjects(found, "unwitnessed")


def test_numbers_of_a_table_that_dvcignore_hides_are_never_verified(small: Small) -> None:
    small.edit(".dvcignore", "*.tmp", "*.tmp\n/reports/quick/tables/small.csv\n/reports/quick/tables/cells.json")
    small.edit(f"{TABLES}/small.csv", "31.50", "39.50")
    small.edit(f"{TABLES}/cells.json", "31.50", "39.50")
    relock(small, TABLES)
    small.commit("A better mean, hidden")
    found = audit(small.root, "quick")
    assert subjects(found, "unwitnessed") == {f"{TABLES}/small.csv", f"{TABLES}/cells.json"}
    assert verdict_of(found, "small.csv", "mini", "average spearman.all.cosine") == "unwitnessed"
    assert found.count("verified") == 0, "the index of cells says what every number is"


@pytest.mark.slow
def test_code_that_dvcignore_hides_is_named_for_every_stage_that_runs_it(small: Small) -> None:
    small.edit(".dvcignore", "*.tmp", "*.tmp\n/code/rules.py")
    small.edit("code/rules.py", "RULE = 1", "RULE = 2")
    small.run("dvc", "repro", "-q")
    small.commit("A hidden rule")
    found = audit(small.root, "quick")
    assert "code/rules.py" in subjects(found, "unwitnessed")
    assert verdict_of(found, "sts.csv", "mini", "first") == "unwitnessed"


def test_what_compilers_and_killed_writers_leave_is_not_named(small: Small) -> None:
    for name in ("code/__pycache__/rules.pyc", "code/rules.py.tmp"):
        (small.root / name).parent.mkdir(exist_ok=True)
        (small.root / name).write_bytes(b"x")
    assert audit(small.root, "quick").causes == {}


def test_a_run_record_that_was_rewritten_with_its_numbers_makes_nothing_verified(small: Small) -> None:
    small.edit("reports/quick/scores/mini.json", '"value": 20.5', '"value": 20.9')
    relock(small, "reports/quick/scores/mini.json")
    record_run(small, "evaluate@mini")
    assert verdict_of(audit(small.root, "quick"), "sts.csv", "mini", "first") == "wrong"


# --- signatures -------------------------------------------------------------------------------------------


@pytest.fixture
def signing(small: Small, tmp_path: Path) -> Small:
    """A repository that signs with an ssh key and trusts it."""
    key = tmp_path / "key"
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    small.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
    (tmp_path / "trusted").write_text(f"a@b.c {key.with_suffix('.pub').read_text()}")
    for name, value in (
        ("gpg.format", "ssh"), ("user.signingkey", str(key)), ("gpg.ssh.allowedSignersFile", str(tmp_path / "trusted")),
    ):  # fmt: skip
        small.run("git", "config", name, value)
    return small


@pytest.mark.slow
@pytest.mark.parametrize("how", [("commit", "-q", "--amend", "-S", "--no-edit"), ("tag", "-s", "-m", "v1", "v1")])
def test_a_signature_that_git_verifies_is_named_with_what_it_covers(signing: Small, how: tuple[str, ...]) -> None:
    assert signing.run("pipeline", "audit", "--signed", check=False).returncode == 1
    signing.run("git", *how)
    done = signing.run("pipeline", "audit", "--signed")
    assert "has a good signature" in done.stdout
    assert "not the files under data/" in done.stdout


def test_a_tag_under_another_name_than_the_signed_one_lends_no_signature(signing: Small) -> None:
    """A mirror can call an old release, with its signature, by the name of a new one."""
    signing.run("git", "tag", "-s", "-m", "withdrawn", "v0.9")
    signing.run("git", "update-ref", "refs/tags/v2.0", "refs/tags/v0.9")
    signing.run("git", "update-ref", "-d", "refs/tags/v0.9")
    signing.run("git", "verify-tag", "v2.0")  # good, to git
    assert verified_signature(Scope(signing.root, "quick", revision="v2.0")) == ""


def test_of_many_tags_the_one_that_is_named_is_verified_first(signing: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch brings any number of tags along, and git takes a process for each."""
    monkeypatch.setattr("pipeline.lineage.witnesses.MOST_TAGS", 2)
    for name in ("a", "b", "c"):
        signing.run("git", "tag", "-a", "-m", "unsigned", name)
    signing.run("git", "tag", "-s", "-m", "v1", "v1")
    assert verified_signature(Scope(signing.root, "quick", revision="HEAD")) == ""
    assert "tag v1" in verified_signature(Scope(signing.root, "quick", revision="v1"))


def test_a_setting_to_show_signatures_in_logs_changes_nothing(signing: Small, tmp_path: Path) -> None:
    signing.edit("dvc.lock", "schema", "# signed\nschema")
    signing.run("git", "commit", "-q", "-a", "-S", "-m", "Signed")
    plain = verified_signature(Scope(signing.root, "quick"))
    signing.run("git", "config", "log.showSignature", "true")
    assert "Good" in signing.run("git", "log", "-1", "--format=").stdout
    assert verified_signature(Scope(signing.root, "quick")) == plain
    assert "of a@b.c: it covers" in plain
    assert export_crate(signing.root, "quick", tmp_path / "crate") == 8


def test_a_signature_of_a_key_that_nobody_trusts_is_none(signing: Small, tmp_path: Path) -> None:
    signing.run("git", "commit", "-q", "--amend", "-S", "--no-edit")
    (tmp_path / "trusted").write_text("")
    done = signing.run("pipeline", "audit", "--signed", check=False)
    assert done.returncode == 1
    assert "git verifies no signature of it" in done.stdout


# --- the record of a run ----------------------------------------------------------------------------------


def write(small: Small, path: str, content: str) -> None:
    """Write a file, in a new folder if need be."""
    (small.root / path).parent.mkdir(exist_ok=True)
    (small.root / path).write_text(content)


def record_with_code(small: Small, **more: object) -> None:
    """Record a run of a stage with the code as it is now."""
    record_run(small, "fold@mini")
    path = runs_path(small.root, "quick")
    records, _ = read_lines(path)
    path.unlink()
    append_line(path, records[-1] | {"code": describe_code(small.root, None)} | more)


def test_a_run_on_committed_code_adds_nothing(small: Small) -> None:
    record_with_code(small)
    assert audit(small.root, "quick").causes == {}


def test_code_that_ran_undeclared_and_was_put_back_is_named(small: Small) -> None:
    write(small, "flows/schedule.py", "A = 1\n")
    small.commit("A schedule")
    small.edit("flows/schedule.py", "A = 1", "A = 2")
    record_with_code(small)
    small.run("git", "checkout", "--", "flows/schedule.py")
    found = audit(small.root, "quick")
    assert subjects(found, "uncommitted") == {"flows/schedule.py"}
    assert verdict_of(found, "sts.csv", "mini-lp", "first") == "uncommitted"
    assert verdict_of(found, "sts.csv", "mini", "first") == "verified"


def test_reports_that_are_not_those_of_the_commit_are_uncommitted(small: Small) -> None:
    """`git add dvc.lock` alone: the tables here are as recorded, and those of the commit are others."""
    table = small.root / TABLES / "sts.csv"
    sound = table.read_bytes()
    table.write_bytes(sound.replace(b"1", b"2"))
    small.commit("Another table")
    table.write_bytes(sound)
    found = audit(small.root, "quick")
    assert subjects(found, "uncommitted") == {TABLES}
    assert found.failed(strict=True) and not found.failed(strict=False)


def test_undeclared_code_that_was_committed_as_it_ran_is_not_named(small: Small) -> None:
    """CONTRIBUTING.md asks for one commit of code and results, and the stages run before it."""
    write(small, "flows/schedule.py", "A = 1\n")
    small.commit("A schedule")
    small.edit("flows/schedule.py", "A = 1", "A = 2")
    record_with_code(small)
    (cause,) = audit(small.root, "quick").causes
    assert "dvc repro --force --single-item dvc.yaml:fold@mini" in cause.remedy
    small.commit("Code and results")
    assert audit(small.root, "quick").causes == {}
    small.edit("flows/schedule.py", "A = 2", "A = 3")
    small.commit("More code")
    assert audit(small.root, "quick").causes == {}, "git's history has what ran"


def test_new_and_deleted_code_that_was_committed_as_it_ran_is_not_named(small: Small) -> None:
    """A new method, as docs/add-a-method.md has it, is a new file when its stages run."""
    write(small, "flows/schedule.py", "A = 1\n")
    small.commit("A schedule")
    small.run("git", "rm", "-q", "flows/schedule.py")
    write(small, "sentfold/method.py", "B = 1\n")
    write(small, "make_example.py", "C = 1\n")  # no stage can import it
    record_with_code(small)
    assert subjects(audit(small.root, "quick"), "uncommitted") == {"flows/schedule.py", "sentfold/method.py"}
    small.commit("A method")
    assert audit(small.root, "quick").causes == {}


def test_undeclared_code_that_came_to_be_in_a_merge_is_not_named(small: Small) -> None:
    write(small, "flows/schedule.py", "A = 1\nB = 1\n")
    small.commit("A schedule")
    small.run("git", "switch", "-qc", "side")
    small.edit("flows/schedule.py", "A = 1", "A = 2")
    small.commit("Side")
    small.run("git", "switch", "-q", "-")
    small.edit("flows/schedule.py", "A = 1", "A = 3")
    small.commit("Main")
    small.run("git", "merge", "-q", "side", check=False)
    write(small, "flows/schedule.py", "A = 5\nB = 1\n")
    record_with_code(small)
    small.commit("Merge")
    write(small, "flows/schedule.py", "A = 6\nB = 1\n")
    small.commit("Later")
    assert audit(small.root, "quick").causes == {}


def test_a_record_of_an_earlier_version_is_no_witness_beside_one_of_this(small: Small) -> None:
    record_with_code(small)
    path = runs_path(small.root, "quick")
    (old,), _ = read_lines(path)
    write(small, "flows/schedule.py", "A = 1\n")
    record_with_code(small)
    append_line(path, old | {"code": {"commit": old["code"]["commit"], "dirty": [], "others": []}})
    (small.root / "flows/schedule.py").unlink()
    assert subjects(audit(small.root, "quick"), "uncommitted") == {"flows/schedule.py"}


@pytest.mark.parametrize("path", ["code/rules.py", "pipeline/__main__.py"])
def test_code_of_a_stage_that_ran_edited_and_was_put_back_is_named(small: Small, path: str) -> None:
    """dvc.lock has the code as it is now: `dvc commit` writes that, and no stage declares pipeline/__main__.py."""
    if path != "code/rules.py":
        write(small, path, "RULE = 1\n")
        small.commit("A rule")
    small.edit(path, "RULE = 1", "RULE = 2")
    record_with_code(small)
    small.run("git", "checkout", "--", path)
    found = audit(small.root, "quick")
    assert subjects(found, "uncommitted") == {path}
    assert found.failed(strict=True)


@pytest.mark.parametrize("committed", [False, True])
def test_code_of_a_stage_that_ran_as_an_earlier_commit_has_it_is_named(small: Small, committed: bool) -> None:
    """`dvc commit` gives the results of an error to its mend; or a colleague changed a comment, and ran the stages."""
    small.edit("code/rules.py", "RULE = 1", "RULE = 2")
    small.commit("An error")
    if committed:
        record_with_code(small)
    small.edit("code/rules.py", "RULE = 2", "RULE = 1")
    small.commit("The error is mended")
    if not committed:
        small.edit("code/rules.py", "RULE = 1", "RULE = 2")
        record_with_code(small)
        small.run("git", "checkout", "--", "code/rules.py")
    found = audit(small.root, "quick")
    assert any("on other code than dvc.lock records (code/rules.py)" in remark for remark in found.remarks)
    assert not found.failed(strict=True)  # nor where no run was recorded here; a second run of the stages decides
    record_with_code(small)
    remarks = audit(small.root, "quick").remarks
    assert not any("other code" in remark for remark in remarks), (
        "of two runs that wrote the bytes, the last had the recorded code"
    )


def test_a_data_file_that_was_edited_when_a_stage_ran_and_put_back_is_named(small: Small) -> None:
    stages = load_stages(WorkingTree(small.root), "quick")
    stage = replace(stages["fold@mini"], deps=(*stages["fold@mini"].deps, "notes.txt"))
    small.edit("notes.txt", "no stage", "this stage")
    record_with_code(small, code=keep_loaded(small.root, describe_code(small.root, stage)))
    small.run("git", "checkout", "--", "notes.txt")
    assert subjects(audit(small.root, "quick"), "uncommitted") == {"notes.txt"}


def test_a_parameter_that_a_run_had_and_that_was_put_back_is_named(small: Small) -> None:
    """`dvc commit` writes the parameters as they are now."""
    record_with_code(small)
    path = runs_path(small.root, "quick")
    (run,), _ = read_lines(path)
    path.unlink()
    tried = {"params.yaml": {"fold.step": 0.6}}
    assert run["parameters"] != tried
    append_line(path, run | {"parameters": tried})
    found = audit(small.root, "quick")
    assert subjects(found, "unwitnessed") == {"params.yaml"}
    assert verdict_of(found, "sts.csv", "mini-lp", "first") == "unwitnessed"
    append_line(path, run)
    assert audit(small.root, "quick").causes == {}, "one run with these parameters wrote them too"


def test_a_run_on_code_of_a_branch_whose_numbers_alone_were_taken_is_named_until_its_code_is_taken(
    small: Small,
) -> None:
    write(small, "flows/schedule.py", "A = 1\n")
    small.commit("A schedule")
    small.run("git", "switch", "-q", "-c", "other")
    small.edit("flows/schedule.py", "A = 1", "A = 2")
    small.commit("Another schedule")
    record_with_code(small)
    assert audit(small.root, "quick").causes == {}
    small.run("git", "switch", "-q", "-")
    assert subjects(audit(small.root, "quick"), "uncommitted") == {"flows/schedule.py"}
    small.run("git", "merge", "-q", "--squash", "other")
    small.commit("The schedule of the branch, as one commit")
    assert audit(small.root, "quick").causes == {}


def test_a_run_of_another_branch_that_left_the_same_bytes_takes_no_witness_away(small: Small) -> None:
    write(small, "flows/schedule.py", "A = 1\n")
    small.commit("A schedule")
    record_with_code(small)
    path = runs_path(small.root, "quick")
    sound, _ = read_lines(path)
    small.edit("flows/schedule.py", "A = 1", "A = 2")
    record_with_code(small)
    small.run("git", "checkout", "--", "flows/schedule.py")
    assert subjects(audit(small.root, "quick"), "uncommitted") == {"flows/schedule.py"}
    other, _ = read_lines(path)
    path.unlink()
    for record in (*sound, *other):
        append_line(path, record)
    assert audit(small.root, "quick").causes == {}


def test_a_run_in_a_sparse_checkout_is_a_run_on_the_code_of_its_commit(small: Small) -> None:
    write(small, "flows/schedule.py", "A = 1\n")
    write(small, ".ci/pages.py", "A = 1\n")
    small.commit("More code")
    whole = describe_code(small.root, None)
    folders = {path.name for path in small.root.iterdir() if path.is_dir()} - {"flows", ".ci", ".git"}
    small.run("git", "sparse-checkout", "set", *sorted(folders))
    assert not (small.root / "flows").exists()
    assert describe_code(small.root, None) == whole


def test_a_repository_that_git_does_not_read_is_an_error_with_the_advice_of_git(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root in a container meets the host's account, and would read "no git repository"."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    if os.getuid():
        pytest.skip("root alone gives files to another account")
    os.chown(small.root, 54_321, 54_321)
    os.chown(small.root / ".git", 54_321, 54_321)
    for revision in (None, "HEAD"):
        with pytest.raises(LineageError, match="dubious ownership") as refused:
            audit(small.root, "quick", revision=revision)
        assert f"git config --global --add safe.directory {small.root}" in refused.value.remedy


@pytest.mark.parametrize("flag", ["skip-worktree", "assume-unchanged"])
def test_an_edit_that_git_was_told_not_to_see_is_named(small: Small, flag: str) -> None:
    write(small, "flows/schedule.py", "A = 1\n")
    small.commit("A schedule")
    stage = load_stages(WorkingTree(small.root), "quick")["fold@mini"]
    stage = replace(stage, deps=(*stage.deps, "notes.txt"))
    edited = {"flows/schedule.py", "notes.txt"}
    small.run("git", "update-index", f"--{flag}", *edited)
    small.edit("flows/schedule.py", "A = 1", "A = 2")
    small.edit("notes.txt", "no stage", "this stage")
    small.edit("stage.py", "def ", "def  ")  # so git's status is not empty
    record_with_code(small, code=keep_loaded(small.root, describe_code(small.root, stage)))
    small.run("git", "update-index", f"--no-{flag}", *edited)
    small.run("git", "checkout", "--", ".")
    assert edited <= subjects(audit(small.root, "quick"), "uncommitted")


def test_what_a_file_manager_leaves_in_a_folder_that_a_stage_declares_is_no_edit(small: Small) -> None:
    stage = load_stages(WorkingTree(small.root), "quick")["fold@mini"]
    stage = replace(stage, deps=(*stage.deps, "code"))
    for name in (".DS_Store", ".rules.py.swp", "rules.py~", ".~lock.rules.csv#", "~$rules.xlsx"):
        write(small, f"code/{name}", "A = 1\n")
    code = describe_code(small.root, stage)
    assert (code["dirty"], code["edited"]) == ([], {})


def test_names_that_git_reads_otherwise_in_a_list_of_lines_are_hashed(small: Small) -> None:
    """`Icon` with a carriage return is what macOS calls the picture of a folder."""
    names = ["code/Icon\r", 'code/"a".txt', '"b".py', "code/c\nd.txt"]
    for name in names:
        write(small, name, f"{name!r}\n")
    small.commit("Odd names")
    stage = load_stages(WorkingTree(small.root), "quick")["fold@mini"]
    stage = replace(stage, deps=(*stage.deps, "code"))
    assert describe_code(small.root, stage)["edited"] == {}
    for name in names:
        write(small, name, "edited\n")
    edited = describe_code(small.root, stage)["edited"]
    assert edited.keys() == {*names}
    assert len({*edited.values()}) == 1 and "" not in edited.values()


def test_a_record_of_an_earlier_version_that_hashed_other_files_is_a_witness(small: Small) -> None:
    """Records had a hash over all code, of which each version had its own opinion."""
    record_with_code(small, code=describe_code(small.root, None) | {"sha256": "0" * 64})
    assert audit(small.root, "quick").causes == {}


@pytest.mark.slow
def test_installed_packages_that_are_not_the_pinned_ones_are_named(small: Small) -> None:
    have = describe_packages()
    (small.root / "requirements.lock").write_text(f"PyYAML=={have['pyyaml']}\ntorch=={have['torch'].split('+')[0]}\n")
    small.edit("dvc.yaml", "deps: [stage.py, code/rules.py, \"data/${suite}/spaces/${key}\"]",
               "deps: [stage.py, requirements.lock, code/rules.py, \"data/${suite}/spaces/${key}\"]")  # fmt: skip
    small.run("dvc", "repro", "-q")
    small.commit("Pins")
    record_with_code(small)
    assert audit(small.root, "quick").causes == {}, "a local version is a build of the pinned one"
    record_with_code(small, packages=have | {"pyyaml": "5.1"})
    (cause,) = audit(small.root, "quick").causes
    assert (cause.state, cause.subject) == ("wrong", "installed packages")
    assert f"pyyaml 5.1, pinned {have['pyyaml']}" in cause.message


# --- sealed sha256 ------------------------------------------------------------------------------------------


def sealed(path: Path, inputs: dict[str, str]) -> None:
    """An artifact as stages write it: the sha256 of what it was made of is in its metadata."""
    record = json.dumps({"inputs": inputs}).encode()
    pq.write_table(pa.table({"v": [1.0]}).replace_schema_metadata({b"sentfold": record}), path)


def seal_evaluation(small: Small, sha256: str) -> str:
    """Commit an artifact that keeps this sha256 of what it was made of, and give dvc.lock its md5."""
    path = small.root / "data/quick/resamples/mini/first.parquet"
    sealed(path, {SOURCE: sha256})
    relock(small, "data/quick/resamples/mini")
    return small.commit("A sealed artifact")


@pytest.mark.parametrize("honest", [True, False])
def test_an_input_that_is_not_the_one_that_an_artifact_was_made_of_is_named(small: Small, honest: bool) -> None:
    sha256 = hashlib.sha256((small.root / SOURCE).read_bytes()).hexdigest()
    commit = seal_evaluation(small, sha256 if honest else "0" * 64)
    for revision in (None, commit):
        found = audit(small.root, "quick", revision=revision)
        assert faults(found) == ([] if honest else [("artifact", SOURCE)])
        if not honest:
            assert f"with sha256 {'0' * 64}; here it has {sha256}" in next(iter(found.causes)).message


def test_an_input_of_another_run_makes_nothing_of_a_commit_wrong(small: Small) -> None:
    """The file here is not the commit's: in the checkout that is wrong, of the commit it is absent."""
    commit = seal_evaluation(small, hashlib.sha256((small.root / SOURCE).read_bytes()).hexdigest())
    with (small.root / SOURCE).open("a") as stream:
        stream.write("1.0\n")
    assert subjects(audit(small.root, "quick"), "wrong") >= {SOURCE}
    found = audit(small.root, "quick", revision=commit)
    assert found.count("wrong") == 0
    assert subjects(found, "absent") == {SOURCE}
    assert verdict_of(found, "sts.csv", "mini", "first") == "absent"
