"""A crate that the format's own library opens and its validator accepts."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from rocrate.rocrate import ROCrate

from pipeline.lineage.crate import export_crate
from pipeline.lineage.hashes import LineageError
from pipeline.lineage.runs import append_line, runs_path
from tests.lineage.small import Small, environment_of

ROOT = Path(__file__).parents[2]
CRATE_PYTHON = ROOT / ".venv-crate/bin/python"

# RO-Crate 1.1's words that the document in the library, of version 1.3, writes otherwise.
TERMS = {
    "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow",
    "FormalParameter": "https://bioschemas.org/FormalParameter",
    "input": "https://bioschemas.org/ComputationalWorkflow#input",
    "output": "https://bioschemas.org/ComputationalWorkflow#output",
}


@pytest.fixture(scope="module")
def crate(finished: Small, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("crate") / "crate"
    assert export_crate(finished.root, "quick", target) == 8
    return target


def record(root: Path, stage: str, **more: Any) -> dict[str, Any]:
    """A line of the manifest as the recorder writes it, for a stage of the small suite."""
    lock = yaml.safe_load((root / "dvc.lock").read_text())["stages"][stage]

    def hashed(section: str) -> dict[str, Any]:
        found = [root / entry["path"] for entry in lock[section]]
        inside = [file for path in found for file in ([path] if path.is_file() else sorted(path.rglob("*.txt")))]
        return {
            file.relative_to(root).as_posix(): {
                "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
            }
            for file in inside
        }

    line = {
        "event": "ended", "run": "0" * 31 + "1", "suite": "quick", "stage": stage, "command": lock["cmd"],
        "by_dvc": True, "pid": 1, "seconds": 2.5,
        "started": "2026-01-02T03:04:05.000+00:00", "ended": "2026-01-02T03:04:07.500+00:00",
        "exit": 0, "error": "", "peak_memory_bytes": 123456, "code": {"commit": "c" * 40, "dirty": []},
        "machine": {"host": "h", "cpu": "a processor"}, "packages": {"dvc": "3.67.1"},
        "parameters": lock["params"], "outputs": hashed("outs"), **more,
    }  # fmt: skip
    append_line(runs_path(root, "quick"), line)
    return line


# --- RO-Crate ----------------------------------------------------------------------------------------


def test_a_crate_that_cannot_be_written_whole_leaves_nothing(finished: Small, tmp_path: Path) -> None:
    command = ["bash", "-c", 'ulimit -f 1; exec "$@"', "bash", sys.executable, "-m", "pipeline", "crate"]
    done = subprocess.run(
        [*command, str(tmp_path / "crate")], cwd=finished.root, env=environment_of(), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "a crate cannot be written" in done.stderr, done.stderr
    assert str(tmp_path / "crate") in done.stderr and not list(tmp_path.iterdir())


def test_the_library_reads_back_what_was_written(finished: Small, crate: Path) -> None:
    read = ROCrate(crate)
    assert read.mainEntity.id == "dvc.yaml"
    assert set(read.mainEntity.type) == {"File", "SoftwareSourceCode", "ComputationalWorkflow"}
    profiles = {entity.id for entity in read.root_dataset["conformsTo"]}
    assert {"https://w3id.org/ro/wfrun/process/0.5", "https://w3id.org/ro/wfrun/workflow/0.5"} <= profiles
    for name in ("reports/quick/tables/sts.csv", "reports/quick/scores/mini.json", "dvc.lock", "params.yaml"):
        assert (crate / name).read_bytes() == (finished.root / name).read_bytes()
        assert read.get(name) is not None
    assert not (crate / "data").exists(), "corpora stay where they are"


def test_every_run_names_its_inputs_outputs_and_parameters_with_the_hashes_of_dvc_lock(
    finished: Small, crate: Path
) -> None:
    lock = yaml.safe_load((finished.root / "dvc.lock").read_text())["stages"]
    actions = {action["name"]: action for action in ROCrate(crate).get_by_type("CreateAction")}
    assert set(actions) == {*lock, "suite quick"}
    fold = actions["fold@mini"]
    named = {thing["name"]: thing for thing in [*fold["object"], *fold["result"]]}
    for entry in [*lock["fold@mini"]["deps"], *lock["fold@mini"]["outs"]]:
        assert named[entry["path"]]["identifier"] == f"md5:{entry['md5']}"
    assert named["params.yaml: fold.step"]["value"] == "0.1"
    assert fold["description"] == "python stage.py fold mini quick"


def test_a_run_of_the_manifest_is_told_with_its_times_and_machine(small: Small, tmp_path: Path) -> None:
    line = record(small.root, "fold@mini")
    export_crate(small.root, "quick", tmp_path / "crate")
    actions = {action["name"]: action for action in ROCrate(tmp_path / "crate").get_by_type("CreateAction")}
    fold = actions["fold@mini"]
    assert (fold["startTime"], fold["endTime"]) == (line["started"], line["ended"])
    assert "a processor" in fold["disambiguatingDescription"]
    made = {thing["name"]: thing["sha256"] for thing in fold["result"]}
    assert made == {path: facts["sha256"] for path, facts in line["outputs"].items()}


@pytest.mark.parametrize("spoil", ["failed", "another result"])
def test_a_run_of_the_manifest_that_did_not_make_what_lies_here_is_not_told(
    small: Small, tmp_path: Path, spoil: str
) -> None:
    if spoil == "failed":
        record(small.root, "fold@mini", exit=1)
    else:
        record(small.root, "fold@mini", outputs={"data/quick/spaces/mini-lp/first.txt": {"sha256": "0" * 64}})
    export_crate(small.root, "quick", tmp_path / "crate")
    actions = {action["name"]: action for action in ROCrate(tmp_path / "crate").get_by_type("CreateAction")}
    assert "startTime" not in actions["fold@mini"].properties()
    (made,) = actions["fold@mini"]["result"]
    assert made["identifier"].startswith("md5:")


def test_a_crate_is_not_written_over_anything_nor_of_what_has_not_run(small: Small, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    with pytest.raises(LineageError, match="not empty"):
        export_crate(small.root, "quick", tmp_path / "full")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    with pytest.raises(LineageError, match="not empty"):
        export_crate(small.root, "quick", tmp_path / "link")
    small.edit("plan.yaml", "second: {}", "second: {}, third: {}")
    with pytest.raises(LineageError, match="has not run"):
        export_crate(small.root, "quick", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["plan.yaml", "params.yaml", "dvc.yaml"])
def test_a_crate_takes_no_definitions_behind_a_link(small: Small, tmp_path: Path, name: str) -> None:
    """A crate is made to be published, and YAML of a home directory, such as that of kubectl, has tokens."""
    shutil.move(small.root / name, tmp_path / "other.yaml")
    (small.root / name).symlink_to(tmp_path / "other.yaml")
    with pytest.raises(LineageError, match="link"):
        export_crate(small.root, "quick", tmp_path / "crate")
    assert not (tmp_path / "crate").exists()


def crate_python() -> Path:
    """The interpreter that has roc-validator; made on first use."""
    if not CRATE_PYTHON.exists():
        made = subprocess.run(
            ["make", "crate-venv", f"PYTHON={sys.executable}"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if made.returncode != 0:
            pytest.skip(f"roc-validator could not be installed, so no crate was validated: {made.stderr[-300:]}")
    return CRATE_PYTHON


@pytest.mark.slow
def test_the_validator_accepts_a_crate_and_refuses_a_spoiled_one(crate: Path, tmp_path: Path) -> None:
    document = json.loads(files("rocrate").joinpath("data/ro-crate.jsonld").read_text(encoding="utf-8"))
    document["@context"] |= TERMS
    context = tmp_path / "context.jsonld"
    context.write_text(json.dumps(document))
    check = str(Path(__file__).with_name("crate_check.py"))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def validate(folder: Path) -> subprocess.CompletedProcess[str]:
        command = [str(crate_python()), check, str(folder), str(context), str(tmp_path / "cache")]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    good = validate(crate)
    assert good.returncode == 0, good.stdout + good.stderr
    assert "0 issues against workflow-run-crate" in good.stdout
    spoiled = tmp_path / "spoiled"
    shutil.copytree(crate, spoiled)
    metadata = spoiled / "ro-crate-metadata.json"
    content = json.loads(metadata.read_text())
    for entity in content["@graph"]:
        if entity["@type"] == "CreateAction":
            entity.pop("instrument")
    metadata.write_text(json.dumps(content))
    bad = validate(spoiled)
    assert bad.returncode == 1
    assert "instrument" in bad.stdout


@pytest.mark.slow
def test_the_command_writes_a_crate(small: Small, tmp_path: Path) -> None:
    assert small.run("pipeline", "crate", check=False).returncode == 2
    for name in ("private.xlsx", ".summary.txt.swp"):
        (small.root / "reports/quick" / name).write_text("mine")
    assert "8 runs" in small.run("pipeline", "crate", str(tmp_path / "crate")).stdout
    written = {file.name for file in (tmp_path / "crate/reports/quick").rglob("*")}
    assert "summary.txt" in written and not written & {"private.xlsx", ".summary.txt.swp"}
    small.edit("reports/quick/tables/sts.csv", "mini,20.50", "mini,99.99")
    assert "is not what the recorded runs wrote" in small.refusal("crate", str(tmp_path / "forged"))
    assert not (tmp_path / "forged").exists()


def test_nothing_behind_a_folder_of_reports_that_is_a_link_is_in_the_crate(small: Small, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/private.txt").write_text("salary list")
    shutil.rmtree(small.root / "reports/quick")
    (small.root / "reports/quick").symlink_to(tmp_path / "mine")
    export_crate(small.root, "quick", tmp_path / "crate")
    assert not list((tmp_path / "crate").rglob("private.txt"))


def test_a_link_among_the_reports_is_not_in_the_crate(small: Small, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a token")
    (small.root / "reports/quick/notes.txt").symlink_to(tmp_path / "secret")
    export_crate(small.root, "quick", tmp_path / "crate")
    assert (tmp_path / "crate/reports/quick/summary.txt").is_file()
    assert not (tmp_path / "crate/reports/quick/notes.txt").exists()
