"""Stage `sweep_clusters`: score a grid by k-means on a clustering corpus and choose; the other ones are an oracle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field
from threadpoolctl import threadpool_limits

from pipeline.base.artifacts import absence, corpus_path, kind_of, read_table
from pipeline.base.params import load_parameters
from pipeline.base.suite import Suite
from pipeline.manifolds import load_grid, load_solver, sweep_folder
from pipeline.stages.sweep import LEAST, ORACLE, Mask, Sweep, describe_oracle, describe_surface
from sentfold.errors import SuiteError, located
from sentfold.files import write_json
from sentfold.forms import forms
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

    Texts that another corpus of the suite has choose nothing. Of the other corpora, the choice reads the texts alone.
    Raises SuiteError if the development corpus of the space cannot be clustered, or has too few texts of its own.
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
    own = ~texts_elsewhere(chosen, development)
    if own.sum() < LEAST or len(set(case.labels[own])) < 2:
        raise SuiteError(
            "too few texts of the development corpus are its own, or all of these have one class",
            where=f"{chosen.written}: chosen_on.{encoder}-{selection}",
            expected=f"a corpus with {LEAST} texts or more that no other corpus of the suite has",
            got=f"{development}: {own.sum()} of {len(own)} texts",
            remedy="name another corpus",
        )
    values, choosing = _score_points(swept, case, np.ones_like(own), own)
    best = best_place(choosing)
    selected = {
        "corpus": development,
        "left_out": int((~own).sum()),
        "method": swept.grid.method,
        "parameters": points[best].model_dump(),
        "points": len(points),
        "protocol": PROTOCOL,
        "texts": int(own.sum()),
        "value": choosing[best],
    }
    blank: list[float | None] = [None] * len(points)
    surface = describe_surface(Surface(values, blank, blank, []), points, development, choosing=choosing)
    write_json(folder / "surface.json", {**surface, "protocol": PROTOCOL})
    write_json(folder / "selected.json", selected)
    write_json(folder / "oracle.json", _oracle(swept, best, development))
    return selected


def texts_elsewhere(chosen: Suite, development: str) -> Mask:
    """(n,) whether another corpus has the text of an item, case, punctuation and blanks aside."""
    others = {text for corpus in chosen.corpora if corpus != development for text in _texts_of(chosen.suite, corpus)}
    forms_of_rows = list(_texts_of(chosen.suite, development))
    path = corpus_path(chosen.suite, development, "items")
    return np.array([forms_of_rows[row] in others for row in read_table(path, kind=kind_of(path))["row"].to_pylist()])


def _texts_of(suite: str, corpus: str) -> Iterator[str]:
    """The form of each text; nothing of a corpus that the source lacks."""
    path = corpus_path(suite, corpus, "sentences")
    if absence(path, kind="sentences") is None:
        yield from forms(read_table(path, kind="sentences")["text"].to_pylist())


def kmeans_nmi(
    vectors: npt.NDArray[np.floating[Any]], case: Case, judged: ClusterParameters, parts: Sequence[Mask]
) -> list[float]:
    """For each part, NMI x100 with its classes of k-means on all (n, d) vectors, the mean over starts.

    parts  (m,) which items of the case are in the part
    Of all items, this is the score `nmi.kmeans` of sentfold.measures.clustering, without bootstrap. Cost: the cost of
    `cluster`.
    """
    labels, rows = case.labels, np.array(case.items["row"])
    partitions = cluster(vectors, clusters=len(set(labels)), seeds=judged.kmeans_seeds, first_seed=judged.seed)[:, rows]
    found = []
    for part in parts:
        once = np.ones((1, int(part.sum())))
        each = [agreement(contingency(labels[part], partition, once))["nmi"][0] for partition in partitions[:, part]]
        found.append(round(100 * float(np.mean(each)), DIGITS))
    return found


def _score_points(swept: Sweep, case: Case, *parts: Mask) -> list[list[float | None]]:
    """For each part of a corpus, the score of each point; None where a point does not fit the corpus."""
    judged = load_parameters(ClusterParameters, "evaluate")
    values: list[list[float | None]] = [[None] * len(swept.grid.points) for _ in parts]
    with threadpool_limits(1), located(f"corpus {case.corpus}, params.yaml: manifolds.{swept.name}"):
        for number, space in fitting_spaces(swept.grid, swept.source(case.corpus)):
            for own, value in zip(values, kmeans_nmi(space, case, judged, parts), strict=True):
                own[number] = value
    return values


def _oracle(swept: Sweep, selected: int, development: str) -> dict[str, Any]:
    """Surfaces of the other clustering corpora."""
    points, corpora = swept.grid.points, dict[str, Any]()
    for corpus in swept.suite.corpora:
        case = "it is the development corpus" if corpus == development else swept.case(corpus, "clustering")
        if isinstance(case, str):
            continue
        (values,) = _score_points(swept, case, np.ones(len(case.labels), dtype=np.bool_))
        if any(value is not None for value in values):
            corpora[corpus] = {"leads": {}, "protocol": PROTOCOL, **describe_oracle(values, points, selected)}
    return {"corpora": corpora, "label": ORACLE, "points": [point.model_dump() for point in points]}
