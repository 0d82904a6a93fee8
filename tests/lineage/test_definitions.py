"""Code and stages are held against git even where dvc.yaml and dvc.lock agree that they do not matter."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from pipeline.lineage.audit import audit
from pipeline.lineage.checks import DefinitionChecks
from pipeline.lineage.scope import Scope
from tests.checkout import make_checkout
from tests.lineage.small import Small
from tests.lineage.tamper import faults, verdict_of

MAIN = 'import runpy\n\nrunpy.run_path("stage.py", run_name="__main__")\n'


@pytest.fixture
def packaged(small: Small) -> Small:
    """The small suite whose report is run as a package, as all of the project's stages are."""
    files = {
        "tool/__init__.py": "", "tool/__main__.py": MAIN, "tool/part/__init__.py": "", "tool/part/words.py": "A = 1\n",
        "tool/other/__init__.py": "", "tool/other/aside.py": "B = 1\n", "tool/lineage/__init__.py": "",
    }  # fmt: skip
    for name, content in files.items():
        (small.root / name).parent.mkdir(parents=True, exist_ok=True)
        (small.root / name).write_text(content)
    small.edit("dvc.yaml", "python stage.py report", "python -m tool report")
    small.edit("dvc.yaml", "deps: [stage.py, code/layout.py", "deps: [stage.py, tool/part/words.py, code/layout.py")
    small.run("dvc", "repro", "-q")
    small.commit("A package")
    assert not audit(small.root, "quick").failed(strict=True)
    return small


def test_code_that_was_taken_out_of_a_stages_inputs_and_edited_is_missed(small: Small) -> None:
    small.edit("dvc.yaml", "deps: [stage.py, code/layout.py, ", "deps: [stage.py, ")
    lock = small.root / "dvc.lock"
    text, number = re.subn(
        r"(  report:\n(?:.|\n)*?)    - path: code/layout.py\n(?:      .*\n)+", r"\1", lock.read_text(), count=1
    )
    assert number == 1
    lock.write_text(text)
    small.edit("code/layout.py", "import csv", "import os, csv")
    found = audit(small.root, "quick")
    assert ("definition", "dvc.yaml, stage report") in faults(found)
    assert "dvc.yaml here is not the committed one" in found.remarks
    assert verdict_of(found, "scores.csv", "mini-lp", "first spearman.all.cosine", "difference_low") == "wrong"


def test_a_definition_that_differs_is_one_cause_for_all_its_stages_until_it_is_committed(small: Small) -> None:
    small.edit("dvc.yaml", "deps: [stage.py, code, ", "deps: [stage.py, notes.txt, code, ")
    small.run("dvc", "repro", "-q")
    assert faults(audit(small.root, "quick")) == [("definition", "dvc.yaml, stage embed")]
    small.commit("One more input")
    assert not audit(small.root, "quick").failed(strict=True)


def test_a_suite_file_that_differs_from_the_committed_one_is_remarked(small: Small) -> None:
    with (small.root / "plan.yaml").open("a") as stream:
        stream.write("# a comment\n")
    with (small.root / ".dvcignore").open("a") as stream:
        stream.write("# another\n")
    assert audit(small.root, "quick").remarks[:-1] == (
        "plan.yaml here is not the committed one", ".dvcignore here is not the committed one",
    )  # fmt: skip


@pytest.mark.parametrize("path", ["tool/__main__.py", "tool/__init__.py", "tool/part/__init__.py"])
def test_edited_code_that_every_stage_runs_undeclared_is_uncommitted(packaged: Small, path: str) -> None:
    with (packaged.root / path).open("a") as stream:
        stream.write("X = 1\n")
    found = audit(packaged.root, "quick")
    assert faults(found) == [("code", path)]
    assert verdict_of(found, "small.csv", "mini", "average spearman.all.cosine") == "uncommitted"
    assert verdict_of(found, "sts.csv", "mini", "first") == "verified", "only the report runs as a package"
    packaged.run("git", "checkout", "--", path)
    (packaged.root / path).unlink()
    assert faults(audit(packaged.root, "quick")) == [("code", path)]


def test_edited_code_that_no_stage_lists_is_remarked(packaged: Small) -> None:
    for path in ("tool/other/aside.py", "tool/lineage/__init__.py"):
        (packaged.root / path).write_text("C = 1\n")
    found = audit(packaged.root, "quick")
    assert not found.failed(strict=True)
    remark, _ = found.remarks
    assert remark.endswith("not those of git's HEAD (tool/lineage/__init__.py, tool/other/aside.py)")


def test_a_commit_is_its_own_witness_of_code_and_stages(packaged: Small) -> None:
    packaged.edit("dvc.yaml", "python -m tool report", "python stage.py report")
    (packaged.root / "tool/__main__.py").unlink()
    assert audit(packaged.root, "quick").failed(strict=False)
    assert not audit(packaged.root, "quick", revision="HEAD").failed(strict=True)


@pytest.mark.slow
def test_a_block_added_to_a_catalogue_makes_nothing_stale_and_no_number_wrong(small: Small) -> None:
    catalogue = small.root / "code/catalogue.yaml"
    catalogue.write_text("first: {rows: 4}\n")
    with (small.root / ".dvcignore").open("a") as stream:
        stream.write("/code/catalogue.yaml\n")
    small.edit("dvc.yaml", "params: [\"encoders.${item.encoder}\"]",
               "params: [\"encoders.${item.encoder}\", {code/catalogue.yaml: [first]}]")  # fmt: skip
    small.run("dvc", "repro", "-q")
    small.commit("A catalogue in a folder of code")
    catalogue.write_text("first: {rows: 4}\nthird: {rows: 8}\n")
    assert "up to date" in small.run("dvc", "status").stdout
    assert audit(small.root, "quick").causes == {}
    catalogue.write_text("first: {rows: 5}\n")
    assert faults(audit(small.root, "quick")) == [("parameter", "code/catalogue.yaml: first.rows")]


@pytest.mark.slow
def test_vectors_that_a_commit_has_in_the_place_of_a_stage_are_without_witness(small: Small) -> None:
    """Nothing else is forged: the stages that read them ran, and write these bytes again."""
    small.edit("plan.yaml", "    second-mini: {corpus: second, encoder: mini}\n", "")
    forged = small.root / "data/quick/spaces/mini/second.txt"
    forged.write_text("".join(f"{row * 100}.0\n" for row in range(1, 7)))
    small.edit("dvc.yaml", '"data/${suite}/spaces/${key}"]', '"data/${suite}/spaces/${key}/second.txt"]')
    small.run("dvc", "repro", "-q")
    small.run("git", "add", "--force", str(forged))
    small.commit("Vectors of a file")
    found = audit(small.root, "quick")
    assert ("artifact", "unwitnessed") in {(cause.kind, cause.state) for cause in found.causes}
    assert found.failed(strict=True)


@pytest.mark.slow
def test_a_block_added_to_params_for_another_suite_makes_no_number_wrong(small: Small) -> None:
    small.edit(
        "dvc.yaml",
        "stages:\n",
        """stages:
  plan:
    cmd: "true plan --check --suite ${suite} && touch checked"
    deps: [params.yaml, plan.yaml]
    outs: [checked]
""",
    )
    small.run("dvc", "repro", "-q")
    small.commit("A check of the plan")
    before = faults(audit(small.root, "quick"))
    small.edit("params.yaml", "fold: {", "manifolds: {pca-16: {method: pca}}\nfold: {")
    small.commit("A block")
    assert faults(audit(small.root, "quick")) == before
    small.edit("plan.yaml", "[first, second]", "[second, first]")
    small.commit("Another plan")
    assert ("code", "plan.yaml") in faults(audit(small.root, "quick"))


@pytest.mark.parametrize("old", ['"data/${suite}/plan", "${item.reads}"', " plan --check "])
def test_stages_that_no_check_of_the_plan_comes_before_are_without_witness(old: str, tmp_path: Path) -> None:
    """Names of spaces exchanged in plan.yaml alone would be names in every table, whatever runs again."""
    root = make_checkout(tmp_path / "checkout", corpora="wordsim")

    def found() -> set[str]:
        checks = DefinitionChecks(Scope(root, "quick"))
        return {cause.state for stage in checks.scope.graph.stages.values() for cause in checks.definition(stage)}

    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "c"]):
        subprocess.run(["git", *command], cwd=root, check=True)
    assert found() == set()
    text = (root / "dvc.yaml").read_text()
    (root / "dvc.yaml").write_text(text.replace(old, " plan " if "--check" in old else "params.yaml"))
    assert "unwitnessed" in found()


def test_an_audit_of_a_commit_says_which_code_is_not_that_of_the_checkout(small: Small) -> None:
    assert not any("of the audited commit" in remark for remark in audit(small.root, "quick", revision="HEAD").remarks)
    small.edit("params.yaml", "step: 1.0e-1", "step: 0.2")
    remarks = audit(small.root, "quick", revision="HEAD").remarks
    assert any(remark.startswith("params.yaml of the audited commit") for remark in remarks)
    for name in ("suite.yaml", "requirements.lock", ".dvcignore", "catalogue.yaml"):
        with (small.root / name).open("a") as stream:
            stream.write("# another\n")
        (remark,) = [
            one for one in audit(small.root, "quick", revision="HEAD").remarks if "of the audited commit" in one
        ]
        assert name in remark
    small.edit("dvc.yaml", "deps: [stage.py, code/rules.py, code/texts.py]",
               "deps: [stage.py, code/rules.py, code/texts.py, requirements-train.lock]")  # fmt: skip
    (small.root / "requirements-train.lock").write_text("torch==1\n")
    small.commit("Pins of trainings")
    (small.root / "requirements-train.lock").write_text("torch==2\n")
    (remark,) = [one for one in audit(small.root, "quick", revision="HEAD").remarks if "of the audited commit" in one]
    assert "requirements-train.lock" in remark


def test_names_of_a_stranger_are_quoted_in_the_commands_that_an_audit_of_a_commit_advises(small: Small) -> None:
    branch, file = "better;touch${IFS}PWNED", "notes/x$(touch PWNED)"
    small.run("git", "switch", "-q", "-c", branch)
    (small.root / "notes").mkdir()
    (small.root / file).write_text("mine")
    small.edit("dvc.yaml", "deps: [stage.py, code/layout.py, ", f'deps: [stage.py, "{file}", code/layout.py, ')
    small.edit("reports/quick/tables/sts.csv", "mini,20.50", "mini,21.50")
    small.commit("Better")
    small.run("git", "switch", "-q", "-")
    found = audit(small.root, "quick", revision=branch)
    (remark,) = [one for one in found.remarks if "of the audited commit" in one]
    assert shlex.split(remark.partition("judge them: ")[2]) == ["git", "diff", "HEAD", branch, "--", "dvc.yaml", file]
    remedies = [cause.remedy for cause in found.causes if "git switch" in cause.remedy]
    assert remedies and all(f"git switch --detach {shlex.quote(branch)}, then " in remedy for remedy in remedies)


def test_a_suite_s_own_catalogue_gives_no_public_corpus_another_place(tmp_path: Path) -> None:
    root = make_checkout(tmp_path / "checkout", corpora="wordsim")
    shared = (root / "pipeline/catalogue.yaml").read_text()
    block = shared[shared.index("\nwordsim:") : shared.index("\nhappy:")]
    own = "mine: {folder: mine, splits: {all: 4}, corpora: {mine: [all]}}\n"
    strange = "mine: {package: {package: tests, folder: data}, splits: {../all: 4}, corpora: {mine: [../all]}}\n"
    for text, said in ((own, []), (block, ["wordsim", "package:"]), (strange, ["package:, folder: None, a split"])):
        (root / "catalogue.yaml").write_text(text)  # beside quick's dvc.yaml
        checks = DefinitionChecks(Scope(root, "quick"))
        (stage, *_) = checks.scope.graph.stages.values()
        found = [cause for cause in checks.definition(stage) if cause.subject == "catalogue.yaml"]
        assert [cause.state for cause in found] == ["unwitnessed"] * len(said)
        assert all(word in cause.message for word, cause in zip(said, found, strict=True))
