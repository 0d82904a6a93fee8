"""The score of every point of a grid on one corpus, the best point, and two selection rules that need no labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from sentfold.compare.bootstrap import Design, Ranked, draw_weights, item_design, sort_once, weighted_spearman
from sentfold.errors import ParameterError
from sentfold.manifold.base.grid import Grid
from sentfold.manifold.base.protocol import Source, embed_each
from sentfold.measures.base.classifiers import predict_by_neighbors
from sentfold.measures.base.pairs import cosines, varies

Floating = npt.NDArray[np.floating[Any]]
Rows = npt.NDArray[np.integer[Any]]

PROTOCOL = "spearman.all.cosine"
DIGITS = 3  # decimals of scores x100: smaller differences come from the arithmetic of the processor
SAMPLE = 500  # rows in the sample of the two rules; the Procrustes rule uses every fifth of them


@dataclass(frozen=True)
class Material:
    """One similarity corpus: vectors and neighbours, (m, 2) rows of pairs, (m,) human scores, the resampling design."""

    source: Source
    pairs: Rows
    human: npt.NDArray[np.float64]
    design: Design | None = None


@dataclass(frozen=True)
class Classes:
    """One classification corpus: vectors and neighbours, and the row, the class and the split of each item."""

    source: Source
    rows: Rows
    labels: npt.NDArray[np.int64]
    splits: list[str]


@dataclass(frozen=True)
class Draws:
    """The number of bootstrap resamples for which the best point is determined, and their seed."""

    resamples: int
    seed: int


@dataclass(frozen=True)
class Surface:
    """Results per point of the grid; None where a point does not fit the corpus or has no defined value.

    values             score x100
    residual_variance  see the function of that name; of folds only
    procrustes         see procrustes_statistic; of folds only
    leaders            the number of the best point in each resample; empty without resampling
    """

    values: list[float | None]
    residual_variance: list[float | None]
    procrustes: list[float | None]
    leaders: list[int]


def fitting_spaces(grid: Grid, source: Source) -> Iterator[tuple[int, Floating]]:
    """The number of each point that fits the source, and its (n, p) space; the method chooses the order."""
    module, shape = grid.module, source.vectors.shape
    points = {number: point for number, point in enumerate(grid.points) if module.fits(point, shape, source.held)}
    yield from embed_each(module, source, points)


def score_surface(grid: Grid, material: Material, *, rules: bool, draws: Draws | None = None) -> Surface:
    """Score every point by the Spearman correlation of its cosines; with `rules`, also compute both rules for a fold.

    Cost: the cost of fitting_spaces. The rules use a fixed sample, evenly spread over the rows.
    """
    source, surface = material.source, _blank_surface(grid)
    rows = np.unique(np.linspace(0, len(source.vectors) - 1, SAMPLE).astype(np.int64))
    centres = rows[::5]
    judged = rules and grid.module.ROLE == "fold"
    ranked: dict[int, Ranked] = {}
    for number, space in fitting_spaces(grid, source):
        # As float32, because a space is stored and evaluated as float32.
        cosine, _ = cosines(space.astype(np.float32), material.pairs)
        surface.values[number] = _score(cosine, material.human)
        if surface.values[number] is not None:
            ranked[number] = sort_once(cosine)
        if judged and source.neighbors is not None:
            surface.residual_variance[number] = round(residual_variance(source.vectors[rows], space[rows]), 6)
            near = source.neighbors[centres, : getattr(grid.points[number], "neighbors", source.held)]
            surface.procrustes[number] = round(procrustes_statistic(source.vectors, space, centres, near), 6)
    if draws is not None and material.design is not None and ranked:
        human, points = sort_once(material.human), list(ranked)
        for weights in draw_weights(material.design, resamples=draws.resamples, seed=draws.seed):
            surface.leaders.extend(_leaders(points, weighted_spearman(list(ranked.values()), human, weights)))
    return surface


def score_classes(
    grid: Grid, classes: Classes, *, k: int, folds: int, seed: int, draws: Draws | None = None
) -> Surface:
    """Accuracy x100 of k-nearest-neighbour classification at each point that fits; see predict_by_neighbors."""
    surface, right = _blank_surface(grid), dict[int, npt.NDArray[np.float64]]()
    for number, space in fitting_spaces(grid, classes.source):
        items = space.astype(np.float32)[classes.rows]
        said = predict_by_neighbors(items, classes.labels, classes.splits, k=k, folds=folds, seed=seed)
        right[number] = (said.predicted == classes.labels[said.items]).astype(np.float64)
        surface.values[number] = round(100 * float(right[number].mean()), DIGITS)
    if draws is not None and right:
        points, columns = list(right), np.array(list(right.values()))
        design = item_design([""] * columns.shape[1])
        for weights in draw_weights(design, resamples=draws.resamples, seed=draws.seed):
            surface.leaders.extend(_leaders(points, columns @ weights.T))
    return surface


def _blank_surface(grid: Grid) -> Surface:
    blank = [None] * len(grid.points)
    return Surface([*blank], [*blank], [*blank], [])


def _leaders(points: Sequence[int], replicates: npt.NDArray[np.float64]) -> list[int]:
    """The point with the highest score in each column of (points, b) replicates; first of equals; NaN is lowest."""
    return [points[place] for place in np.where(np.isnan(replicates), -np.inf, replicates).argmax(axis=0)]


def lead_shares(points: Sequence[Any], leaders: Sequence[int]) -> dict[str, dict[str, float]]:
    """Setting -> value -> share of resamples whose best point has that value, for settings with several values."""
    settings = points[0].model_dump()
    shares: dict[str, dict[str, float]] = {}
    for setting in settings:
        values = [getattr(point, setting) for point in points]
        if leaders and len(set(values)) > 1:
            counts = Counter(values[leader] for leader in leaders)
            shares[setting] = {str(value): round(counts[value] / len(leaders), 4) for value in dict.fromkeys(values)}
    return shares


def best_place(values: Sequence[float | None]) -> int:
    """The first index of the highest value. Raises ParameterError if all values are None."""
    scored = [value for value in values if value is not None]
    if not scored:
        raise ParameterError(
            "no point of a grid fits the development corpus",
            where="params.yaml: manifolds",
            expected="a point with k and p below the number of sentences",
            got=f"{len(values)} points without a score",
            remedy="lower k and p, or name a larger corpus as `development` in the suite file",
        )
    return list(values).index(max(scored))


def _score(cosine: npt.NDArray[np.float64], human: npt.NDArray[np.float64]) -> float | None:
    value = float(spearmanr(cosine, human).statistic) if varies(cosine) and varies(human) else float("nan")
    return round(100 * value, DIGITS) if np.isfinite(value) else None


# --- two rules that choose a neighbourhood size without labels; SBERT-LP rejects them without showing figures ---


def residual_variance(x: Floating, y: Floating) -> float:
    """1 - r^2, r the correlation of the pairwise distances in x and in y; 0 if they are proportional, 1 if unrelated.

    x  (n, d); y: (n, p), the same rows. If the distances in x or in y are all equal, the result is 1.
    Cost O(n^2 (d + p)) time, O(n^2) memory. Source: Kouropteva et al. 2002; Ghojogh et al. 2020, section 8
    """
    before, after = pdist(np.asarray(x, dtype=np.float64)), pdist(np.asarray(y, dtype=np.float64))
    if np.ptp(before) == 0 or np.ptp(after) == 0:
        return 1.0
    return 1.0 - float(np.corrcoef(before, after)[0, 1]) ** 2


def procrustes_statistic(x: Floating, y: Floating, rows: Rows, neighbors: Rows) -> float:
    """Mean misfit between neighbourhoods in x and in y after the best rotation, shift and scaling.

    x          (n, d); y: (n, p); rows: (m,) centres of the neighbourhoods; neighbors: (m, k) rows around each centre
    The misfit of one centred neighbourhood is 1 - (sum of singular values of X^T Y)^2 / (|X|^2 |Y|^2), between 0 and
    1; it is 1 if X or Y is a single point. Scaling is allowed because the scale of an LLE space is arbitrary.
    Cost O(m k^2 (d + p + k)). Source: Goldberg & Ritov 2009, doi:10.1007/s10994-009-5107-9
    """
    members = np.column_stack([rows, neighbors])
    bases = [_triangles(np.asarray(values, dtype=np.float64), members) for values in (x, y)]
    # The product is Qx Rx Ry^T Qy^T, and Qx and Qy change no singular value: the small Rx Ry^T is enough.
    singular = np.linalg.svd(bases[0] @ bases[1].transpose(0, 2, 1), compute_uv=False).sum(axis=1)
    sizes = np.prod([np.square(base).sum(axis=(1, 2)) for base in bases], axis=0)
    misfits = np.where(sizes > 0, 1.0 - singular**2 / np.where(sizes > 0, sizes, 1.0), 1.0)
    return float(np.clip(misfits, 0.0, 1.0).mean())


def _triangles(values: npt.NDArray[np.float64], members: Rows) -> npt.NDArray[np.float64]:
    """(m, r, k + 1) triangular factors R of the centred neighbourhoods, each a (d, k + 1) matrix."""
    centred = values[members] - values[members].mean(axis=1, keepdims=True)
    return np.asarray(np.linalg.qr(centred.transpose(0, 2, 1), mode="r"))
