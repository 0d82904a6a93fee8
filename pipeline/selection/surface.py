"""The score of every point of a grid on one corpus, and the point that it makes one choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

from pipeline.errors import ParameterError
from pipeline.evaluate.nearest import predict_by_neighbors
from pipeline.evaluate.similarities import cosines
from pipeline.manifold.manifolds import LleParameters
from pipeline.manifold.solver_parameters import SolverParameters
from pipeline.selection.grids import Point
from pipeline.selection.rules import procrustes_statistic, residual_variance
from pipeline.selection.spaces import spaces_of

Floating = npt.NDArray[np.floating[Any]]
Rows = npt.NDArray[np.integer[Any]]

PROTOCOL = "spearman.all.cosine"
DIGITS = 3  # of scores x100: what differs less, differs by the arithmetic of the processor
SAMPLE = 500  # sentences whose distances, and a fifth of them whose neighbourhoods, the two rules look at


@dataclass(frozen=True)
class Material:
    """One similarity corpus: (n, d) vectors, (n, k) neighbours, (m, 2) rows of pairs, (m,) human scores."""

    x: Floating
    neighbors: Rows
    pairs: Rows
    human: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Classes:
    """One classification corpus: vectors and neighbours as above; of each item its row, its class and its split."""

    x: Floating
    neighbors: Rows
    rows: Rows
    labels: npt.NDArray[np.int64]
    splits: list[str]


@dataclass(frozen=True)
class Surface:
    """By point: score x100, None where the point does not fit or is undefined; and both rules, of LLE alone."""

    values: list[float | None]
    residual_variance: list[float | None]
    procrustes: list[float | None]


def score_surface(material: Material, points: Sequence[Point], solver: SolverParameters, *, rules: bool) -> Surface:
    """Score every point by the Spearman of its cosines; with `rules`, judge LLE's by the two rules too.

    Cost: see spaces_of. The rules look at a fixed sample, evenly spread over the rows.
    """
    blank: list[float | None] = [None] * len(points)
    surface = Surface(blank, blank.copy(), blank.copy())
    rows = np.unique(np.linspace(0, len(material.x) - 1, SAMPLE).astype(np.int64))
    centres = rows[::5]
    for place, space in spaces_of(material.x, material.neighbors, points, solver):
        # As float32, since that is how a space is stored, and judged.
        cosine, _ = cosines(space.astype(np.float32), material.pairs)
        surface.values[place] = _score(cosine, material.human)
        point = points[place]
        if rules and isinstance(point, LleParameters):
            surface.residual_variance[place] = round(residual_variance(material.x[rows], space[rows]), 6)
            near = material.neighbors[centres, : point.neighbors]
            surface.procrustes[place] = round(procrustes_statistic(material.x, space, centres, near), 6)
    return surface


def score_classes(
    classes: Classes, points: Sequence[Point], solver: SolverParameters, *, k: int, folds: int, seed: int
) -> list[float | None]:
    """Accuracy x100 of the k nearest neighbours at each point, None where it does not fit; see predict_by_neighbors."""
    values: list[float | None] = [None] * len(points)
    for place, space in spaces_of(classes.x, classes.neighbors, points, solver):
        items = space.astype(np.float32)[classes.rows]
        said = predict_by_neighbors(items, classes.labels, classes.splits, k=k, folds=folds, seed=seed)
        values[place] = round(100 * float((said.predicted == classes.labels[said.items]).mean()), DIGITS)
    return values


def best_place(values: Sequence[float | None]) -> int:
    """The first place of the highest value. Raises ParameterError if no point has one."""
    scored = [value for value in values if value is not None]
    if not scored:
        raise ParameterError(
            "no point of a grid fits the development corpus",
            where="params.yaml: manifolds",
            expected="some k and p below the number of its sentences",
            got=f"{len(values)} points without a score",
            remedy="lower k and p, or name a larger corpus as `development` in the suite file",
        )
    return list(values).index(max(scored))


def _score(cosine: npt.NDArray[np.float64], human: npt.NDArray[np.float64]) -> float | None:
    value = float(spearmanr(cosine, human).statistic) if np.ptp(cosine) > 0 and np.ptp(human) > 0 else float("nan")
    return round(100 * value, DIGITS) if np.isfinite(value) else None
