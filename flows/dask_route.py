# mypy: disallow-untyped-calls=False
"""Run stages on the workers of a Dask cluster, each of which has its own clone of the checkout (see clone.py).

Prefect's tasks wait in the flow's process for what the workers make, so a worker needs no Prefect server, and no
password of one. The checkout of the run gets the entries of dvc.lock while the run goes on, and the data at its end.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any

from distributed import Client, Future

from flows.clone import Basis, Made, Parcel, basis_of, make_in_clone, read_files, replace_files
from flows.dask_cluster import existing_cluster, is_encrypted
from flows.graph import dvcfile_of
from flows.lock_entries import hash_in, read_entry, split_entries, write_entries
from flows.plan import Plan, RunRequest
from flows.processes import new_log
from flows.profile import read_profile
from flows.run_stage import Maker, Order, StageResult, log_file
from flows.schedule import order_of
from flows.transfer import Remote
from pipeline.environment import travelling
from pipeline.lineage.hashes import folder_digest, md5_of_bytes
from pipeline.lineage.runs import append_line, runs_path
from pipeline.lineage.stages import Graph, Stage, is_inside, load_graph, related
from pipeline.lineage.trees import WorkingTree
from sentfold.errors import RunError


def pull_recorded(request: RunRequest, root: Path) -> None:
    """Bring outputs that dvc.lock records and that are absent here from the remote, as far as it has them.

    An interrupted run leaves such entries: their stages need not be made again. Raises RunError.
    """
    graph, dvcfile = load_graph(WorkingTree(root), request.suite), dvcfile_of(request.suite)
    prefix = "" if dvcfile == Path("dvc.yaml") else f"{dvcfile}:"
    recorded = [stage for name, stage in graph.stages.items() if name in graph.locked]
    absent = [prefix + stage.name for stage in recorded if _is_absent(stage, root)]
    if absent:
        profile = read_profile(root, Path(request.profile) if request.profile else None)
        Remote(str(request.remote), profile.retries.remote).pull(absent, root, missing=True)


@contextmanager
def stages_on_workers(plan: Plan) -> Iterator[Maker]:
    """A running Dask cluster for the length of a `with` block, whose workers make the stages of a plan.

    At the end, what the workers made is pulled; after an error it stays in the remote, and the next run pulls it.
    Raises RunError if the checkout is not committed or the remote is not set up, and UnreachableClusterError.
    """
    address, remote = str(plan.request.address), Remote(str(plan.request.remote), plan.profile.retries.remote)
    basis = basis_of(plan.root)
    require_commit(basis)
    remote.require_verified(plan.root)
    order = replace(order_of(plan), sent=travelling(encrypted=is_encrypted(address)))
    with existing_cluster(address) as client:
        graph = load_graph(WorkingTree(plan.root), plan.request.suite)
        route = Route(plan, order, client, basis, remote, graph, split_entries(order.lock))
        route.push_inputs()
        yield route.make, route.stop
        route.pull_made()


def require_commit(basis: Basis) -> None:
    """Raise RunError if a checkout differs from its commit: clones of the commit would not have the difference."""
    if basis.edited or not basis.commit:
        raise RunError(
            "this checkout is not committed" if basis.commit else "there is no commit here",
            where=", ".join(basis.edited[:5]),
            expected="what the clones of the workers have: nothing but a commit, reports and dvc.lock",
            state="no stage was started",
            remedy="git add and git commit, and bring the commit to the clones",
        )


def cached_outs(stage: Stage) -> tuple[str, ...]:
    """The outputs of a stage that go through a remote."""
    return tuple(out for out in stage.outs if out not in stage.uncached)


@dataclass
class Route:
    """The way of a plan's stages to the workers and back.

    graph    the definitions of the stages
    entries  what dvc.lock has now, by stage
    made     stages whose outputs the workers pushed
    """

    plan: Plan
    order: Order
    client: Client
    basis: Basis
    remote: Remote
    graph: Graph
    entries: dict[str, str]
    made: list[str] = field(default_factory=list)
    _sent: set[Future[Made]] = field(default_factory=set)
    _turn: Lock = field(default_factory=Lock)

    def push_inputs(self) -> None:
        """Send what the workers will read and none of them will make. Raises RunError."""
        plan = self.plan
        read = {parent for stage in plan.stale for parent in plan.graph.parents[stage]} - set(plan.stale)
        if wanted := sorted(stage for stage in read if cached_outs(self._stage(stage))):
            self.remote.push(wanted, plan.root)

    def pull_made(self) -> None:
        """Bring what the workers made. Raises RunError."""
        if wanted := [stage for stage in self.made if cached_outs(self._stage(stage))]:
            self.remote.pull(wanted, self.plan.root)

    def make(self, stage: str) -> StageResult:
        """Have a worker make one stage, and record it here. Raises RunError, and what Dask raises."""
        parcel, key = self.parcel(stage), f"{stage}-{uuid.uuid4().hex[:8]}"
        future = self.client.submit(make_in_clone, parcel, key, key=key)
        self._sent.add(future)
        try:
            made = future.result()
        except RunError as error:
            log = new_log(log_file(stage, root=self.plan.root))
            log.write_text(f"{error}\n", encoding="utf-8")
            raise
        finally:
            self._sent.discard(future)
        return self.accept(parcel, made)

    def stop(self) -> None:
        """End what the workers are at."""
        self.client.cancel(list(self._sent), force=True)

    def parcel(self, stage: str) -> Parcel:
        """What goes to a worker with a stage."""
        own, parents = self._stage(stage), self.plan.graph.parents[stage]
        uncached = [out for parent in parents for out in self._stage(parent).uncached]
        needed = [name for name in (*map(_name, parents), own.name) if name in self.entries]
        return Parcel(
            stage,
            self.order,
            self.basis,
            self.remote,
            {name: self.entries[name] for name in needed},
            tuple(parent for parent in parents if any(_is_read(out, own) for out in cached_outs(self._stage(parent)))),
            {dep: read_files(self.plan.root, [dep]) for dep in own.deps if any(related(dep, out) for out in uncached)},
            cached_outs(own),
            own.uncached,
        )

    def accept(self, parcel: Parcel, made: Made) -> StageResult:
        """Record here what a worker made: the files that came along, the entry of dvc.lock, the run. Raises RunError.

        The files have the hashes of the entry. What DVC caches stays in the remote until the end of the run.
        Cost: dvc.lock is written anew, as DVC does it.
        """
        name, root = _name(parcel.stage), self.plan.root
        entry = read_entry(name, made.entry)
        arrived = {out: _files_of(out, made.files, entry) for out in parcel.uncached}
        with self._turn:
            before = self.entries.get(name)
            for out, files in arrived.items():
                replace_files(root, out, files)
            self.entries[name] = made.entry
            write_entries(self.order.lock, self.entries.values())
            if made.record:
                append_line(runs_path(root, self.order.suite), made.record)
            self.made.append(parcel.stage)
        changed = before is None or read_entry(name, before).get("outs") != entry.get("outs")
        return replace(made.result, outputs_changed=changed)

    def _stage(self, address: str) -> Stage:
        return self.graph.stages[_name(address)]


def _name(address: str) -> str:
    return address.rpartition(":")[2]


def _is_absent(stage: Stage, root: Path) -> bool:
    return not all((root / out).exists() for out in cached_outs(stage))


def _is_read(out: str, stage: Stage) -> bool:
    return any(related(out, dep) for dep in stage.deps)


def _files_of(out: str, files: Mapping[str, bytes], entry: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of one output among those that arrived. Raises RunError unless they are those of its entry."""
    own = {path: content for path, content in files.items() if path == out or path.startswith(f"{out}/")}
    hashes = {path.removeprefix(f"{out}/"): md5_of_bytes(content) for path, content in own.items()}
    whole = hashes[out] if list(own) == [out] else folder_digest(hashes).md5
    if whole != hash_in(dict(entry), out) or not all(map(is_inside, own)):
        raise RunError(
            "an output did not arrive as it was made",
            where=out,
            expected=f"md5 {hash_in(dict(entry), out)}",
            got=f"md5 {whole} over {len(own)} files",
            state="the stage is not recorded as made",
            remedy="run again",
        )
    return own
