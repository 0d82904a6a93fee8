"""The blocks of `manifolds:` in params.yaml, and the inputs of the stages that make spaces from spaces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from pipeline.base.artifacts import absence, graph_path, no_pool, read_rows, read_table, read_vectors, space_path
from pipeline.base.params import PARAMS_FILE, load_parameters
from sentfold.errors import ParameterError, located
from sentfold.manifold.base.grid import SUFFIX, Grid, read_grid
from sentfold.manifold.base.protocol import ManifoldMethod, SolverSettings, Source, find_method
from sentfold.settings import Parameters, validate


class ManifoldBlock(Parameters):
    """A block of `manifolds:`; the Settings of the method check all keys other than `method`."""

    model_config = ConfigDict(extra="allow")

    method: str

    @property
    def is_grid(self) -> bool:
        """Whether the block is a grid of settings to select from."""
        return self.method.endswith(SUFFIX)


@dataclass(frozen=True)
class Maker:
    """A method with its settings: one way to make a space from a space.

    name      of the block in params.yaml
    method    the name of a file of sentfold/manifold
    module    the module of that file
    settings  of the method, checked
    """

    name: str
    method: str
    module: ManifoldMethod
    settings: Parameters

    def record(self, solver: SolverSettings) -> dict[str, Any]:
        """The method and settings that an artifact records, JSON-able; plus the solver's settings if it solves."""
        solved = {"eigensolve": solver.model_dump()} if self.module.SOLVES else {}
        return {"method": self.method, **self.settings.model_dump(), **solved}


def load_block(name: str, path: Path = PARAMS_FILE) -> ManifoldBlock:
    """The block manifolds.<name> of params.yaml. Raises ParameterError if it is missing or names no method."""
    return load_parameters(ManifoldBlock, f"manifolds.{name}", path=path)


def load_maker(name: str, path: Path = PARAMS_FILE) -> Maker:
    """The block manifolds.<name> as a method with its settings. Raises ParameterError, also for a grid."""
    block, where = load_block(name, path), f"{path}: manifolds.{name}"
    return make_maker(name, block.method, block.model_extra or {}, where=where)


def load_weigher(name: str) -> Maker:
    """load_maker for a method that reads reconstruction weights. Raises ParameterError for another method."""
    maker = load_maker(name)
    if maker.module.READS != "weights":
        raise ParameterError(
            f"'{name}' is not made from reconstruction weights",
            where=f"{PARAMS_FILE}: manifolds.{name}.method",
            expected='a method whose file states READS = "weights"',
            got=maker.method,
            remedy="run `sentfold plan`, which names the stage that makes each space",
        )
    return maker


def make_maker(name: str, method: str, settings: dict[str, Any], *, where: str) -> Maker:
    """A maker from a method name and settings, both checked. `where` is the place that errors name."""
    with located(where):
        module = find_method(method)
    return Maker(name, method, module, validate(module.Settings, settings, where=where))


def load_grid(name: str, path: Path = PARAMS_FILE) -> Grid:
    """The block manifolds.<name> as a grid. Raises ParameterError, also for a block that is no grid."""
    block, where = load_block(name, path), f"{path}: manifolds.{name}"
    if not block.is_grid:
        raise ParameterError(
            f"'{name}' is no grid",
            where=f"{where}.method",
            expected=f"a method that ends in {SUFFIX}",
            got=block.method,
        )
    return read_grid(block.model_dump(), where=where)


def load_solver() -> SolverSettings:
    """The block `eigensolve` of params.yaml."""
    return load_parameters(SolverSettings, "eigensolve")


def inputs_of(suite: str, encoder: str, corpus: str, method: ManifoldMethod) -> list[Path]:
    """The artifacts that a method reads for one corpus: the graph, if the method needs it, and the space."""
    graph = [] if method.READS == "vectors" else [graph_path(suite, encoder, corpus)]
    return [*graph, space_path(suite, encoder, corpus)]


def why_absent(inputs: list[Path]) -> str | None:
    """The reason why no space can be made for a corpus, or None."""
    graph, space = inputs[:-1], inputs[-1]
    return absence(graph[0], kind="graph") if graph else absence(space, kind="vectors") or no_pool(space)


def read_source(inputs: list[Path], solver: SolverSettings | None = None) -> Source:
    """The artifacts that inputs_of returned, as arrays. Raises ArtifactError for a graph of other rows."""
    graph, vectors = inputs[:-1], read_vectors(inputs[-1])
    neighbors = None
    if graph:
        neighbors = read_rows(read_table(graph[0], kind="graph"), "neighbor", path=graph[0], of=len(vectors))
    return Source(vectors, neighbors, solver or SolverSettings())


def sweep_folder(suite: str, encoder: str, selection: str) -> Path:
    """The folder of surface.json and selected.json (development data) and of oracle.json (test data)."""
    return Path("reports") / suite / "sweeps" / f"{encoder}-{selection}"
