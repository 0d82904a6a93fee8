"""A suite's report as a Workflow Run RO-Crate: the workflow, its runs, what they read, what they wrote.

Source: https://w3id.org/ro/wfrun/workflow/0.5 (Leo et al. 2024, doi:10.1371/journal.pone.0309210).
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from mimetypes import guess_type
from pathlib import Path
from typing import Any

from rocrate.model.computerlanguage import ComputerLanguage
from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate

from pipeline.lineage.hashes import PASSED_OVER, LineageError
from pipeline.lineage.runs import RunFinder, code_text
from pipeline.lineage.stages import Graph, Locked, load_graph, variable_files
from pipeline.lineage.trees import WorkingTree, git
from sentfold.data.tables import refuse_holes
from sentfold.decision.progress import counted
from sentfold.errors import first_line

PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
# The profiles build on this version.
CRATE_VERSION = "1.1"
LICENSE = "https://www.apache.org/licenses/LICENSE-2.0"
WHERE = "Not in this crate, since it may hold texts of a corpus: `dvc repro` makes it again."


def export_crate(root: Path, suite: str, target: Path) -> int:
    """Write the crate of a suite into a new folder. Returns how many runs of stages it describes.

    The report, the definitions and the locks go into it; artifacts under data/ are named with their hashes, since
    they hold corpora. Raises LineageError if the folder is not empty, or a stage has not run. Cost: hashing the
    outputs of recorded runs.
    """
    if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):
        raise LineageError(
            "the folder of a crate is not empty", where=str(target), remedy="name a folder that does not exist yet"
        )
    graph = load_graph(WorkingTree(root), suite)
    for name in graph.stages:
        if name not in graph.locked:
            remedy = f"run `sentfold run --suite {suite}` first"
            raise LineageError(f"stage '{name}' has not run", where=graph.lockfile, remedy=remedy)
    crate = CrateBuilder(root, graph).build()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name[:40]}.", dir=target.parent) as private:
            crate.write(Path(private) / "crate")
            (Path(private) / "crate").rename(target)
    except OSError as error:
        raise LineageError("a crate cannot be written", where=str(target), got=first_line(error)) from None
    return len(graph.stages)


class CrateBuilder:
    """One crate in the making. when: of runs that no record on this machine has, the time of dvc.lock's commit."""

    def __init__(self, root: Path, graph: Graph) -> None:
        self.root = root
        self.graph = graph
        self.when = _lock_time(root, graph.lockfile)
        self.plan = variable_files(WorkingTree(root), graph.suite)[0]
        self.commit = (git(root, "rev-parse", "HEAD") or b"unknown").decode().strip()
        self.crate = ROCrate(version=CRATE_VERSION)
        # RO-Crate 1.1's own context has no word for it yet.
        self.crate.metadata.extra_terms["sha256"] = "http://schema.org/sha256"
        self.entities: dict[str, Any] = {}

    def build(self) -> ROCrate:
        """The whole crate."""
        self._describe()
        workflow = self._workflow()
        folder = self.root / "reports" / self.graph.suite
        below = (file.relative_to(self.root).as_posix() for file in folder.rglob("*") if self._is_own(file))
        # Not what no stage writes, or what editors leave: a crate is published.
        reports = sorted(one for one in below if self.graph.makers_of(one) and not PASSED_OVER.match_file(one))
        definitions = [name for name in (self.graph.lockfile, "requirements.lock") if self._is_own(self.root / name)]
        for path in (*definitions, *reports):
            self._file(path)
        finder = RunFinder(self.root, self.graph.suite)
        for name in counted(self.graph.in_order(), len(self.graph.stages), "stage"):
            self._run(self.graph.locked[name], finder.run_of(self.graph.locked[name]))
        self.crate.add_action(
            workflow,
            identifier="#run",
            object=[self.entities[self.plan], self.entities["params.yaml"]],
            result=[self.entities[path] for path in reports],
            properties={"name": f"suite {self.graph.suite}", "endTime": self.when},
        )
        return self.crate

    def _is_own(self, file: Path) -> bool:
        """Whether a file goes into the crate: behind a link, its own or of a folder, could be any file."""
        return file.is_file() and file.resolve() == self.root.resolve() / file.relative_to(self.root)

    def _describe(self) -> None:
        crate, suite = self.crate, self.graph.suite
        crate.name = f"sentfold, suite {suite}"
        crate.description = (
            f"The report of the suite {suite}: how well spaces of sentence vectors do on its corpora, and the runs of "
            "every stage that made it, each input and output with its hash."
        )
        crate.datePublished = datetime.fromisoformat(self.when)
        crate.license = self._context(LICENSE, "CreativeWork", name="Apache License 2.0", identifier="Apache-2.0")
        crate.root_dataset["conformsTo"] = [
            self._context(url, "CreativeWork", name=name, version=url.rpartition("/")[2])
            for url, name in PROFILES.items()
        ]

    def _workflow(self) -> Any:
        about = {"name": "DVC", "alternateName": "dvc.yaml", "url": "https://dvc.org"}
        dvc = self.crate.add(ComputerLanguage(self.crate, "https://dvc.org", properties=about))
        source = (self.root / self.graph.dvcfile).resolve()
        if source not in (self.root.resolve() / self.graph.dvcfile, self.root.resolve() / "dvc.yaml"):
            raise LineageError(
                "the stages of the suite are a link to another place", where=self.graph.dvcfile,
                expected="a link to ../../dvc.yaml", remedy="see what `sentfold check` says",
            )  # fmt: skip
        named = {"name": "sentfold", "version": self.commit}
        workflow = self.crate.add_workflow(source, "dvc.yaml", main=True, lang=dvc, properties=named)
        self.entities[self.graph.dvcfile] = workflow
        for name, path in (("suite", self.plan), ("parameters", "params.yaml")):
            parameter = self.crate.add_formal_parameter(name, "File", identifier=f"#input-{name}", valueRequired=True)
            self._file(path)["exampleOfWork"] = parameter
            parameter["workExample"] = self.entities[path]
            workflow.append_to("input", parameter)
        return workflow

    # --- entities -----------------------------------------------------------------------------------

    def _context(self, place: str, kind: str, /, **properties: Any) -> Any:
        if place not in self.entities:
            entity = ContextEntity(self.crate, place, properties={"@type": kind, **properties})
            self.entities[place] = self.crate.add(entity)
        return self.entities[place]

    def _file(self, path: str) -> Any:
        """A file that goes into the crate. Raises LineageError for a link: behind it could be any file of the user."""
        if path not in self.entities:
            place = self.root / path
            if not self._is_own(place):
                raise LineageError(
                    "a file of the crate is a link, or is not there", where=path, expected="a file",
                    remedy=f"see what `sentfold check --suite {self.graph.suite}` says",
                )  # fmt: skip
            refuse_holes(place)
            kind = guess_type(path)[0] or "text/plain"
            about = {"name": path, "contentSize": str(place.stat().st_size), "encodingFormat": kind}
            self.entities[path] = self.crate.add_file(place, path, properties=about)
        return self.entities[path]

    def _thing(self, path: str, **about: str) -> Any:
        """What a run read or wrote: a file of the crate, or one that is only named, with its hash."""
        return self.entities.get(path) or self._context(
            f"#{path}", "CreativeWork", name=path, description=WHERE, **about
        )

    def _run(self, locked: Locked, run: Mapping[str, Any] | None) -> None:
        """One stage, by dvc.lock and, where the run that wrote its outputs is recorded here, by that record."""
        base = locked.name.partition("@")[0]
        about: dict[str, Any] = {
            "name": locked.name,
            "description": locked.command,
            "endTime": self.when,
            "actionStatus": {"@id": "http://schema.org/CompletedActionStatus"},
        }
        results = [self._thing(path, identifier=f"md5:{entry.md5}") for path, entry in locked.outs.items()]
        if run is not None:
            about |= {"startTime": run["started"], "endTime": run["ended"]}
            about["disambiguatingDescription"] = (
                f"{run['seconds']} s, {run['peak_memory_bytes']} bytes at most, on {run['machine'].get('cpu')}, "
                f"{code_text(run['code'])}"
            )
            results = [self._thing(path, sha256=facts["sha256"]) for path, facts in run["outputs"].items()]
        kind = {"name": base, "url": "https://dvc.org", "softwareVersion": self.commit}
        self.crate.add_action(
            self._context(f"#stage-{base}", "SoftwareApplication", **kind),
            identifier=f"#run-{uuid.uuid5(uuid.NAMESPACE_URL, f'{self.graph.suite} {locked}')}",
            object=[self._thing(path, identifier=f"md5:{entry.md5}") for path, entry in locked.deps.items()]
            + self._parameters(locked),
            result=results,
            properties=about,
        )

    def _parameters(self, locked: Locked) -> list[Any]:
        """Each parameter that a run tracked, with its value."""
        tracked = [(file, key, value) for file, values in locked.params.items() for key, value in values.items()]
        return [
            self._context(
                f"#parameter-{locked.name}-{file}-{key}", "PropertyValue", name=f"{file}: {key}", value=str(value)
            )
            for file, key, value in tracked
        ]


def _lock_time(root: Path, lockfile: str) -> str:
    """The time of the last commit of dvc.lock; without git, of the last change of the file."""
    committed = (git(root, "log", "-1", "--format=%cI", "--", lockfile) or b"").decode().strip()
    return committed or datetime.fromtimestamp((root / lockfile).stat().st_mtime, UTC).isoformat()
