"""The runs of a suite's stages as OpenLineage events, one JSON object a line, for whoever runs a lineage server."""

from __future__ import annotations

from pathlib import Path

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    JobFacet,
    RunFacet,
    dataset_version_dataset,
    job_type_job,
    processing_engine_run,
    source_code_location_job,
)
from openlineage.client.serde import Serde

from pipeline.artifacts import write_bytes_atomically
from pipeline.lineage.runs import StageRun, stage_runs
from pipeline.lineage.stages import load_graph
from pipeline.lineage.trees import git
from pipeline.lineage.working_tree import WorkingTree

PRODUCER = "https://pypi.org/project/sentfold"


def export_events(root: Path, suite: str, target: Path) -> int:
    """Write a START and a COMPLETE event of each stage's run. Returns how many events.

    Data sets are named by their path, in the namespace of the suite, with their hash as version. Raises
    LineageError if a stage has not run.
    """
    graph = load_graph(WorkingTree(root), suite)
    runs = stage_runs(root, suite, graph.in_order(), graph.locked, graph.lockfile)
    origin = (git(root, "config", "--get", "remote.origin.url") or b"").decode().strip()
    events = [event for run in runs for event in run_events(run, suite, origin)]
    lines = "".join(Serde.to_json(event) + "\n" for event in events)
    write_bytes_atomically(target, lines.encode())
    return len(events)


def run_events(run: StageRun, suite: str, origin: str = "") -> list[RunEvent]:
    """The two events of one run. origin: the address of the repository, if it has one."""
    namespace = f"sentfold/{suite}"
    job = Job(namespace, run.name, facets=_job_facets(run, origin))
    about = Run(run.identifier, facets=_run_facets(run))
    inputs = [InputDataset(namespace, path, facets=_version(hash_)) for path, hash_ in run.inputs.items()]
    outputs = [OutputDataset(namespace, path, facets=_version(hash_)) for path, hash_ in run.outputs.items()]
    nothing: list[OutputDataset] = []
    return [
        RunEvent(
            eventType=state,
            eventTime=time.isoformat(),
            run=about,
            job=job,
            inputs=inputs,
            outputs=written,
            producer=PRODUCER,
        )
        for state, time, written in (
            (RunState.START, run.started, nothing),
            (RunState.COMPLETE, run.ended, outputs),
        )
    ]


def _version(hash_: str) -> dict[str, DatasetFacet]:
    return {"version": dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=hash_)}


def _job_facets(run: StageRun, origin: str) -> dict[str, JobFacet]:
    facets: dict[str, JobFacet] = {
        "jobType": job_type_job.JobTypeJobFacet(processingType="BATCH", integration="DVC", jobType="STAGE")
    }
    commit = run.recorded.get("code", {}).get("commit")
    if origin and commit:
        facets["sourceCodeLocation"] = source_code_location_job.SourceCodeLocationJobFacet(
            type="git", url=origin, version=commit
        )
    return facets


def _run_facets(run: StageRun) -> dict[str, RunFacet]:
    packages = run.recorded.get("packages", {})
    if "dvc" not in packages:
        return {}
    return {
        "processing_engine": processing_engine_run.ProcessingEngineRunFacet(version=packages["dvc"], name="DVC"),
    }
