"""Locally linear embedding of landmarks, which are a sample of the rows; the landmarks map all other rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field
from threadpoolctl import threadpool_limits

from sentfold.errors import ParameterError
from sentfold.kernels.arrays import row_blocks
from sentfold.manifold.base.local import BLOCK, LocalSettings, embed_locally, map_out_of_sample
from sentfold.manifold.base.protocol import Embedded, SolverSettings, Source
from sentfold.manifold.solver.search import Progress
from sentfold.neighbors.neighbors import nearest_neighbors

TITLE = "locally linear embedding of landmarks"
ROLE = "fold"
READS = "vectors"  # not the graph: the neighbours are the nearest landmarks by Euclidean distance
SOLVES = True

Floating = npt.NDArray[np.floating[Any]]
Rows = npt.NDArray[np.int64]
Selection = Literal["random", "kmeans++"]

POOL = 10  # kmeans++ chooses among POOL rows per landmark; its cost grows with their number
TILE = 2048  # rows whose distances are measured at a time
BATCH = 64  # landmarks that kmeans++ draws before it measures distances again


class Settings(LocalSettings):
    """The settings of LocalSettings, and those of the landmarks.

    landmarks  number of landmarks. If there are not more rows than that, all rows are landmarks and the method is LLE
    selection  random, or kmeans++, which spreads the landmarks over the data
    seed       random seed of the selection
    """

    landmarks: int = Field(default=1000, ge=3, le=1_000_000)
    selection: Selection = "random"
    seed: int = Field(default=0, ge=0, lt=2**32)


def embed(source: Source, settings: Settings) -> Embedded:
    """The (n, p) coordinates of all rows, mapped by landmarks. Raises as fit_landmarks and map_out_of_sample do."""
    x, workers = source.vectors, source.workers
    drawn = draw_rows(len(x), settings)
    landmarks = fit_landmarks(x[drawn], drawn, settings, source.solver, workers=workers)
    return Embedded(landmarks.map(x, workers=workers), landmarks.notes)


def same_as(settings: Settings, shape: tuple[int, ...]) -> tuple[str, dict[str, Any]] | None:
    """LLE, if every row is a landmark. The spaces are equal only if the graph of LLE is Euclidean too."""
    own = {"landmarks", "selection", "seed"}
    return ("lle", settings.model_dump(exclude=own)) if shape[0] <= settings.landmarks else None


@dataclass(frozen=True)
class Landmarks:
    """Embedded landmarks, which map all other rows.

    rows         (L,) rows of the landmarks in the data, ascending
    vectors      (L, d) vectors of the landmarks
    coordinates  (L, p) float64, coordinates of the landmarks
    parameters   Settings that the landmarks were chosen and embedded with
    notes        counts, and the certificate of the eigensolve, JSON-able
    """

    rows: Rows
    vectors: Floating
    coordinates: npt.NDArray[np.float64]
    parameters: Settings
    notes: dict[str, Any]

    def map(
        self,
        x: Floating,
        *,
        block: int = BLOCK,
        workers: int = 2,
        progress: Callable[[int], object] | None = None,
    ) -> npt.NDArray[np.float32]:
        """The coordinates, (m, p) float32, of rows (m, d). A row that equals a landmark gets its coordinates.

        The arguments, errors and cost are those of map_out_of_sample, with L fitted rows.
        """
        return map_out_of_sample(
            x,
            self.vectors,
            self.coordinates,
            n_neighbors=self.parameters.neighbors,
            regularization=self.parameters.regularization,
            block=block,
            workers=workers,
            progress=progress,
        ).astype(np.float32)


def draw_rows(n: int, parameters: Settings) -> Rows:
    """The rows, ascending, from which the landmarks are chosen; for `random` the landmarks themselves.

    The draw depends on the number n of rows, not on the vectors, which need not be read for it. Cost at most O(n).
    """
    count = parameters.landmarks * (1 if parameters.selection == "random" else POOL)
    if n <= count:
        return np.arange(n)
    drawn: Rows = np.random.default_rng(parameters.seed).choice(n, size=count, replace=False, shuffle=False)
    return np.sort(drawn)


def fit_landmarks(
    drawn: Floating,
    rows: Rows,
    parameters: Settings,
    solver: SolverSettings,
    *,
    workers: int = 2,
    progress: Progress | None = None,
) -> Landmarks:
    """Choose the landmarks from the drawn rows, and embed them.

    drawn  (m, d), vectors of the rows that draw_rows returned; rows: (m,) the numbers of these rows
    Of equal rows only the first is kept, because copies spoil an embedding: the copies alone rebuild each other.
    Raises ParameterError if k or p does not fit the number of distinct landmarks, SolverError if the eigensolve
    fails. Cost O(L^2 d) time for the neighbours, and the cost of bottom_eigenvectors.
    """
    distinct = first_of_equals(drawn)
    chosen = distinct
    if len(distinct) > parameters.landmarks:
        chosen = distinct[spread_rows(drawn[distinct], parameters.landmarks, seed=parameters.seed)]
    vectors = drawn[chosen]
    neighbors = nearest_neighbors(vectors, parameters.neighbors, workers=workers).indices
    embedded = embed_locally(vectors, neighbors, parameters, solver, workers=workers, progress=progress)
    notes = {
        **embedded.pairs.certificate(),
        "degenerate_landmarks": embedded.degenerate,
        "equal_rows_drawn": len(drawn) - len(distinct),
        "landmarks": len(vectors),
    }
    return Landmarks(rows[chosen], vectors, embedded.coordinates, parameters, notes)


def first_of_equals(x: Floating) -> Rows:
    """The rows, ascending, that equal no earlier row. Cost O(n d log n)."""
    # 0.0 and -0.0 are equal numbers with different bytes; the sum turns -0.0 into 0.0.
    content = np.ascontiguousarray(x + x.dtype.type(0))
    keys = content.view(np.dtype((np.void, content.dtype.itemsize * content.shape[1]))).ravel()
    return np.sort(np.unique(keys, return_index=True)[1])


def spread_rows(x: Floating, count: int, *, seed: int, batch: int = BATCH) -> Rows:
    """`count` rows, ascending, drawn as k-means++ draws centres.

    The probability of a row is proportional to its squared Euclidean distance to the nearest row already drawn.
    x      (n, d) finite, n >= count >= 1
    batch  largest number of rows drawn before the distances are computed again. It is also limited by the number
           of rows already drawn. Rounds of this kind spread rows as well as single draws do (see k-means||)
    If there are fewer than `count` distinct rows, the rest are drawn with equal probability. Distances are float32,
    on one thread. Raises ParameterError if count does not fit. Cost O(n count d).
    Source: Arthur & Vassilvitskii 2007, SODA; Bahmani et al. 2012, doi:10.14778/2180912.2180915
    """
    if not 1 <= count <= len(x):
        raise ParameterError(
            "that number of landmarks cannot be chosen",
            where="landmarks",
            expected=f"1 to {len(x)}",
            got=str(count),
        )
    rng = np.random.default_rng(seed)
    factor = 2.0 ** -float(np.round(np.log2(max(float(np.abs(x).max()), 1e-300))))  # float32 could overflow
    if not factor <= float(np.finfo(x.dtype).max):
        x = x.astype(np.float64)  # for such small numbers the factor itself leaves the type of the rows
    scale = x.dtype.type(factor)
    centred = (x * scale - (x.mean(axis=0, dtype=np.float64) * scale).astype(x.dtype)).astype(np.float32)
    lengths = np.einsum("ij,ij->i", centred, centred)
    nearest = np.full(len(x), np.inf)
    chosen = np.zeros(len(x), dtype=bool)
    fresh = rng.integers(len(x), size=1)
    with threadpool_limits(1):
        while True:
            chosen[fresh] = True
            wanted = min(batch, int(chosen.sum()), count - int(chosen.sum()))
            if wanted == 0:
                return np.flatnonzero(chosen)
            np.minimum(nearest, _squared_distances(centred, lengths, fresh), out=nearest)
            fresh = _draw(rng, np.where(chosen, 0.0, nearest), ~chosen, wanted)


def _squared_distances(
    x: npt.NDArray[np.float32], lengths: npt.NDArray[np.float32], to: Rows
) -> npt.NDArray[np.float64]:
    """From every row to the nearest of the rows `to`. A distance that rounding alone can cause counts as 0."""
    halves, least = lengths[to] / 2, np.empty(len(x), dtype=np.float32)
    for rows in row_blocks(len(x), TILE):
        np.min(halves - x[rows] @ x[to].T, axis=1, out=least[rows])
    squared = lengths + 2 * least.astype(np.float64)
    return np.where(squared > 1e-6 * (lengths + lengths[to].max()), squared, 0.0)


def _draw(rng: np.random.Generator, chances: npt.NDArray[np.float64], open_: npt.NDArray[np.bool_], count: int) -> Rows:
    """From 1 to `count` distinct rows, drawn with probabilities proportional to `chances`."""
    if not chances.sum() > 0:
        return np.sort(rng.choice(np.flatnonzero(open_), size=count, replace=False))
    reached = np.cumsum(chances)
    drawn = np.searchsorted(reached, rng.random(count) * reached[-1], side="right")
    return np.unique(np.minimum(drawn, np.flatnonzero(chances)[-1]))
