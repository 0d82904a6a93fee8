"""Stage `sweep_clusters`: score a grid by k-means on a clustering corpus and choose; the other ones are an oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field
from threadpoolctl import threadpool_limits

from pipeline.base.params import load_parameters
from pipeline.base.suite import Suite
from pipeline.manifolds import load_grid, load_solver, sweep_folder
from pipeline.stages.sweep import ORACLE, Sweep, describe_oracle, describe_surface
from sentfold.errors import SuiteError, located
from sentfold.files import write_json
from sentfold.measures.base.case import Case
from sentfold.measures.clustering import agreement, cluster, contingency
from sentfold.selection.surface import DIGITS, Surface, best_place, fitting_spaces
from sentfold.settings import Parameters

PROTOCOL = "nmi.kmeans"


class ClusterParameters(Parameters):
    """What this stage needs of the block `evaluate`, so that a point has the score that `evaluate` gives its space."""

    model_config = ConfigDict(extra="ignore")

    kmeans_seeds: int = Field(ge=2, le=1000)
    seed: int = Field(ge=0, lt=2**32)


def sweep_clusters(chosen: Suite, encoder: str, selection: str) -> dict[str, Any]:
    """Write surface.json, selected.json and oracle.json of one grid over one encoder. Returns the selected.

    The choice is made and written before any test corpus is read.
    Raises SuiteError if the development corpus of the space cannot be clustered.
    """
    swept = Sweep(chosen, encoder, selection, load_grid(selection), load_solver())
    points, folder = swept.grid.points, sweep_folder(chosen.suite, encoder, selection)
    development = str(chosen.stages["sweep_clusters"][f"{encoder}-{selection}"]["development"])
    case = swept.case(development, "clustering")
    if isinstance(case, str):
        raise SuiteError(
            "the development corpus cannot be scored",
            where=f"{chosen.written}: chosen_on.{encoder}-{selection}",
            expected="a clustering corpus that the source holds",
            got=f"{development}: {case}",
            remedy="name another corpus",
        )
    values = _score_points(swept, case)
    best = best_place(values)
    selected = {
        "corpus": development,
        "method": swept.grid.method,
        "parameters": points[best].model_dump(),
        "points": len(points),
        "protocol": PROTOCOL,
        "value": values[best],
    }
    blank: list[float | None] = [None] * len(points)
    surface = describe_surface(Surface(values, blank, blank, []), points, development)
    write_json(folder / "surface.json", {**surface, "protocol": PROTOCOL})
    write_json(folder / "selected.json", selected)
    write_json(folder / "oracle.json", _oracle(swept, best, development))
    return selected


def kmeans_nmi(vectors: npt.NDArray[np.floating[Any]], case: Case, judged: ClusterParameters) -> float:
    """NMI x100 of k-means on (n, d) vectors with the classes of a case, the mean over starts.

    This is the score `nmi.kmeans` of sentfold.measures.clustering, without bootstrap. Cost: the cost of `cluster`.
    """
    labels, rows = case.labels, np.array(case.items["row"])
    partitions = cluster(vectors, clusters=len(set(labels)), seeds=judged.kmeans_seeds, first_seed=judged.seed)
    once = np.ones((1, len(labels)))
    each = [agreement(contingency(labels, partition, once))["nmi"][0] for partition in partitions[:, rows]]
    return round(100 * float(np.mean(each)), DIGITS)


def _score_points(swept: Sweep, case: Case) -> list[float | None]:
    """The score of each point on a corpus; None where a point does not fit it."""
    judged = load_parameters(ClusterParameters, "evaluate")
    values: list[float | None] = [None] * len(swept.grid.points)
    with threadpool_limits(1), located(f"corpus {case.corpus}, params.yaml: manifolds.{swept.name}"):
        for number, space in fitting_spaces(swept.grid, swept.source(case.corpus)):
            values[number] = kmeans_nmi(space, case, judged)
    return values


def _oracle(swept: Sweep, selected: int, development: str) -> dict[str, Any]:
    """Surfaces of the other clustering corpora."""
    points, corpora = swept.grid.points, dict[str, Any]()
    for corpus in swept.suite.corpora:
        case = "it is the development corpus" if corpus == development else swept.case(corpus, "clustering")
        values = [] if isinstance(case, str) else _score_points(swept, case)
        if any(value is not None for value in values):
            corpora[corpus] = {"leads": {}, "protocol": PROTOCOL, **describe_oracle(values, points, selected)}
    return {"corpora": corpora, "label": ORACLE, "points": [point.model_dump() for point in points]}
