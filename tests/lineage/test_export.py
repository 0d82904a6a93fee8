"""A crate and events that the formats' own libraries open, and that the crates' validator accepts."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    dataset_version_dataset,
    job_type_job,
    processing_engine_run,
    source_code_location_job,
)
from openlineage.client.serde import Serde
from rocrate.rocrate import ROCrate

from pipeline.lineage.crate import export_crate
from pipeline.lineage.errors import LineageError
from pipeline.lineage.events import export_events
from pipeline.lineage.lines import append_line
from pipeline.lineage.manifest import manifest_path
from tests.lineage.small import Small

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
                "size": file.stat().st_size,
            }
            for file in inside
        }

    line = {
        "event": "ended", "run": "0" * 31 + "1", "suite": "quick", "stage": stage, "command": lock["cmd"],
        "by_dvc": True, "pid": 1, "seconds": 2.5,
        "started": "2026-01-02T03:04:05.000+00:00", "ended": "2026-01-02T03:04:07.500+00:00",
        "exit": 0, "error": "", "peak_memory_bytes": 123456, "code": {"commit": "c" * 40, "dirty": []},
        "machine": {"host": "h", "cpu": "a processor", "blas": ["openblas"]}, "packages": {"dvc": "3.67.1"},
        "parameters": {"params.yaml": {"fold.step": 0.1}}, "inputs": hashed("deps"), "outputs": hashed("outs"), **more,
    }  # fmt: skip
    append_line(manifest_path(root, "quick"), line)
    return line


# --- RO-Crate ----------------------------------------------------------------------------------------


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
    assert (fold["startTime"], fold["endTime"]) == ("2026-01-02T03:04:05+00:00", "2026-01-02T03:04:07.500000+00:00")
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
        record(
            small.root, "fold@mini", outputs={"data/quick/spaces/mini-lp/first.txt": {"sha256": "0" * 64, "size": 1}}
        )
    export_events(small.root, "quick", tmp_path / "events")
    events = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert {event["run"]["runId"] for event in events if event["job"]["name"] == "fold@mini"} != {
        "00000000-0000-0000-0000-000000000001"
    }


def test_a_crate_is_not_written_over_anything_nor_of_what_has_not_run(small: Small, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    with pytest.raises(LineageError, match="not empty"):
        export_crate(small.root, "quick", tmp_path / "full")
    small.edit("suite.yaml", "corpora: [first, second]", "corpora: [first, second, third]")
    with pytest.raises(LineageError, match="has not run"):
        export_crate(small.root, "quick", tmp_path / "new")
    assert not (tmp_path / "new").exists()


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


# --- OpenLineage -------------------------------------------------------------------------------------

FACETS: dict[str, Callable[..., Any]] = {
    "version": dataset_version_dataset.DatasetVersionDatasetFacet,
    "jobType": job_type_job.JobTypeJobFacet,
    "sourceCodeLocation": source_code_location_job.SourceCodeLocationJobFacet,
    "processing_engine": processing_engine_run.ProcessingEngineRunFacet,
}


def read_event(content: dict[str, Any]) -> RunEvent:
    """An event in the library's own classes: they refuse an unknown state, a run without UUID, a time that is none.

    They fill in by themselves which version of the schema each part follows.
    """
    run, job = content["run"], content["job"]
    return RunEvent(
        eventTime=content["eventTime"],
        eventType=RunState(content["eventType"]),
        run=Run(run["runId"], facets=read_facets(run)),
        job=Job(job["namespace"], job["name"], facets=read_facets(job)),
        inputs=[InputDataset(data["namespace"], data["name"], facets=read_facets(data)) for data in content["inputs"]],
        outputs=[
            OutputDataset(data["namespace"], data["name"], facets=read_facets(data)) for data in content["outputs"]
        ],
        producer=content["producer"],
    )


def read_facets(part: dict[str, Any]) -> dict[str, Any]:
    return {
        name: FACETS[name](**{key: value for key, value in facet.items() if not key.startswith("_")})
        for name, facet in part["facets"].items()
    }


def test_the_library_reads_back_every_event(small: Small, tmp_path: Path) -> None:
    record(small.root, "fold@mini")
    path = tmp_path / "events.jsonl"
    assert export_events(small.root, "quick", path) == 16
    lines = path.read_text().splitlines()
    for line in lines:
        content = json.loads(line)
        assert json.loads(Serde.to_json(read_event(content))) == content, "nothing is lost, added or called otherwise"
    ends = {e["job"]["name"]: e for e in map(json.loads, lines) if e["eventType"] == "COMPLETE"}
    starts = {e["job"]["name"]: e for e in map(json.loads, lines) if e["eventType"] == "START"}
    assert {name: e["run"]["runId"] for name, e in ends.items()} == {n: e["run"]["runId"] for n, e in starts.items()}
    fold = ends["fold@mini"]
    assert fold["run"]["runId"] == "00000000-0000-0000-0000-000000000001"
    assert fold["eventTime"] == "2026-01-02T03:04:07.500000+00:00"
    versions = {data["name"]: data["facets"]["version"]["datasetVersion"] for data in fold["outputs"]}
    content = (small.root / "data/quick/spaces/mini-lp/first.txt").read_bytes()
    assert versions["data/quick/spaces/mini-lp/first.txt"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert fold["run"]["facets"]["processing_engine"]["version"] == "3.67.1"


def test_what_one_run_wrote_is_by_name_what_the_next_one_read(finished: Small, tmp_path: Path) -> None:
    export_events(finished.root, "quick", tmp_path / "events")
    ends = {
        event["job"]["name"]: event
        for event in map(json.loads, (tmp_path / "events").read_text().splitlines())
        if event["eventType"] == "COMPLETE"
    }
    written = {(data["namespace"], data["name"]) for data in ends["fold@mini"]["outputs"]}
    read = {(data["namespace"], data["name"]) for data in ends["evaluate@mini-lp"]["inputs"]}
    assert written and written <= read
    again = tmp_path / "again"
    export_events(finished.root, "quick", again)
    assert again.read_bytes() == (tmp_path / "events").read_bytes(), "without a manifest, events are made of the lock"


def test_the_command_wants_to_know_what_to_write(small: Small, tmp_path: Path) -> None:
    assert small.run("pipeline", "export", check=False).returncode == 2
    done = small.run(
        "pipeline", "export", "--crate", str(tmp_path / "c"), "--openlineage", str(tmp_path / "e")
    )  # fmt: skip
    assert "8 runs" in done.stdout
    assert "16 events" in done.stdout
    assert "no run of a stage" in small.run("pipeline", "runs").stdout
    record(small.root, "fold@mini")
    assert "fold@mini" in small.run("pipeline", "runs").stdout
