"""A suite's report as a Workflow Run RO-Crate: the workflow, its runs, what they read, what they wrote.

Source: https://w3id.org/ro/wfrun/workflow/0.5 (Leo et al. 2024, doi:10.1371/journal.pone.0309210).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from mimetypes import guess_type
from pathlib import Path
from typing import Any

from rocrate.model.computerlanguage import ComputerLanguage
from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate

from pipeline.lineage.hashes import LineageError
from pipeline.lineage.runs import StageRun, stage_runs
from pipeline.lineage.stages import Graph, load_graph, variable_files
from pipeline.lineage.trees import WorkingTree, git

PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
# The profiles build on this version.
CRATE_VERSION = "1.1"
LICENSE = "https://www.apache.org/licenses/LICENSE-2.0"


def export_crate(root: Path, suite: str, target: Path) -> int:
    """Write the crate of a suite into a new folder. Returns how many runs of stages it describes.

    The report, the definitions and the locks go into it; artifacts under data/ are named with their hashes, since
    they hold corpora. Raises LineageError if the folder is not empty, or a stage has not run.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise LineageError(
            "the folder of a crate is not empty", where=str(target), remedy="name a folder that does not exist yet"
        )
    graph = load_graph(WorkingTree(root), suite)
    runs = stage_runs(root, graph)
    crate = CrateBuilder(root, graph, runs).build()
    target.mkdir(parents=True, exist_ok=True)
    crate.write(target)
    return len(runs)


class CrateBuilder:
    """One crate in the making."""

    def __init__(self, root: Path, graph: Graph, runs: list[StageRun]) -> None:
        self.root = root
        self.graph = graph
        self.runs = runs
        self.crate = ROCrate(version=CRATE_VERSION)
        # RO-Crate 1.1's own context has no word for it yet.
        self.crate.metadata.extra_terms["sha256"] = "http://schema.org/sha256"
        self.entities: dict[str, Any] = {}

    def build(self) -> ROCrate:
        """The whole crate."""
        self._describe()
        workflow = self._workflow()
        for path in self._definitions():
            self._file(path)
        for path in self._reports():
            self._file(path)
        for run in self.runs:
            self._run(run)
        self._whole_run(workflow)
        return self.crate

    def _describe(self) -> None:
        crate, suite = self.crate, self.graph.suite
        crate.name = f"sentfold, suite {suite}"
        crate.description = (
            f"The report of the suite {suite}: how well spaces of sentence vectors do on its corpora, and the runs of "
            "every stage that made it, each input and output with its hash."
        )
        crate.datePublished = max(run.ended for run in self.runs)
        crate.license = self._context(LICENSE, "CreativeWork", name="Apache License 2.0", identifier="Apache-2.0")
        profiles = [
            self._context(url, "CreativeWork", name=name, version=url.rpartition("/")[2])
            for url, name in PROFILES.items()
        ]
        crate.root_dataset["conformsTo"] = profiles

    def _workflow(self) -> Any:
        about = {"name": "DVC", "alternateName": "dvc.yaml", "url": "https://dvc.org"}
        dvc = self.crate.add(ComputerLanguage(self.crate, "https://dvc.org", properties=about))
        source = (self.root / self.graph.dvcfile).resolve()
        workflow = self.crate.add_workflow(
            source, "dvc.yaml", main=True, lang=dvc, properties={"name": "sentfold", **self._version()}
        )
        self.entities[self.graph.dvcfile] = workflow
        for name, path in (
            ("suite", variable_files(WorkingTree(self.root), self.graph.suite)[0]),
            ("parameters", "params.yaml"),
        ):
            parameter = self.crate.add_formal_parameter(name, "File", identifier=f"#input-{name}", valueRequired=True)
            self._file(path)["exampleOfWork"] = parameter
            parameter["workExample"] = self.entities[path]
            workflow.append_to("input", parameter)
        return workflow

    def _suite_file(self) -> str:
        return variable_files(WorkingTree(self.root), self.graph.suite)[0]

    def _version(self) -> dict[str, str]:
        head = git(self.root, "rev-parse", "HEAD")
        return {} if head is None else {"version": head.decode().strip()}

    def _definitions(self) -> Iterable[str]:
        names = (self.graph.lockfile, "requirements.lock")
        return [name for name in names if (self.root / name).is_file()]

    def _reports(self) -> list[str]:
        folder = self.root / "reports" / self.graph.suite
        return sorted(file.relative_to(self.root).as_posix() for file in folder.rglob("*") if file.is_file())

    # --- entities -----------------------------------------------------------------------------------

    def _context(self, place: str, kind: str, /, **properties: Any) -> Any:
        if place not in self.entities:
            entity = ContextEntity(self.crate, place, properties={"@type": kind, **properties})
            self.entities[place] = self.crate.add(entity)
        return self.entities[place]

    def _file(self, path: str) -> Any:
        """A file that goes into the crate."""
        if path not in self.entities:
            place = self.root / path
            properties = {
                "name": path,
                "contentSize": str(place.stat().st_size),
                "encodingFormat": guess_type(path)[0] or "text/plain",
            }
            self.entities[path] = self.crate.add_file(place, path, properties=properties)
        return self.entities[path]

    def _thing(self, path: str, hash_: str) -> Any:
        """What a run read or wrote: a file of the crate, or one that is only named, with its hash."""
        if path in self.entities:
            return self.entities[path]
        kind, _, digest = hash_.partition(":")
        about = {"sha256": digest} if kind == "sha256" else {"identifier": hash_}
        return self._context(f"#{path}", "CreativeWork", name=path, description=WHERE, **about)

    def _run(self, run: StageRun) -> None:
        base, _, _ = run.name.partition("@")
        kind = {"name": base, "url": "https://dvc.org", "softwareVersion": self._software(run)}
        tool = self._context(f"#stage-{base}", "SoftwareApplication", **kind)
        about: dict[str, Any] = {
            "name": run.name,
            "description": run.command,
            "endTime": run.ended.isoformat(),
            "actionStatus": {"@id": "http://schema.org/CompletedActionStatus"},
        }
        if run.recorded:
            machine = run.recorded["machine"]
            about["startTime"] = run.started.isoformat()
            about["disambiguatingDescription"] = (
                f"{run.recorded['seconds']} s, {run.recorded['peak_memory_bytes']} bytes at most, on {machine['cpu']}, "
                f"{', '.join(machine['blas'])}"
            )
        self.crate.add_action(
            tool,
            identifier=f"#run-{run.identifier}",
            object=[*self._things(run.inputs), *self._parameters(run)],
            result=self._things(run.outputs),
            properties=about,
        )

    def _software(self, run: StageRun) -> str:
        commit = run.recorded.get("code", {}).get("commit") if run.recorded else self._version().get("version")
        return str(commit or "unknown")

    def _things(self, hashes: Mapping[str, str]) -> list[Any]:
        return [self._thing(path, hash_) for path, hash_ in hashes.items()]

    def _parameters(self, run: StageRun) -> list[Any]:
        """Each parameter that a run tracked, with its value."""
        found = []
        for file, values in run.parameters.items():
            for key, value in values.items():
                place = f"#parameter-{run.name}-{file}-{key}"
                found.append(self._context(place, "PropertyValue", name=f"{file}: {key}", value=str(value)))
        return found

    def _whole_run(self, workflow: Any) -> None:
        suite, parameters = self._suite_file(), "params.yaml"
        times = {"endTime": max(run.ended for run in self.runs).isoformat()}
        self.crate.add_action(
            workflow,
            identifier="#run",
            object=[self.entities[suite], self.entities[parameters]],
            result=[self.entities[path] for path in self._reports()],
            properties={"name": f"suite {self.graph.suite}", **times},
        )


WHERE = "Not in this crate, since it may hold texts of a corpus: `dvc pull` fetches it, `dvc repro` makes it again."
