"""The map of the page: the sentences of one corpus in an encoder's space and in a fold of it, each in the plane.

t-SNE draws the planes: it keeps near neighbours where linear maps and Isomap lose most of them. A plane still loses
many, so a map is shown only if both planes reach LEAST in trustworthiness.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from pipeline.base.artifacts import corpus_path, kind_of, read_table, read_vectors, space_path
from pipeline.report.comparisons import role_of
from pipeline.report.evidence import Evidence

LEAST = 0.8  # trustworthiness under which a plane misleads more than it shows
NEIGHBORS = 10  # of the trustworthiness, and of what the page marks
SAMPLE = 700  # sentences, evenly spread over the rows: more would be a blot
FEWEST = 100  # sentences; t-SNE's perplexity of 30 needs about three times as many
TRIED = 4  # corpora, because a plane costs seconds
SQUARE = 1000  # side of a plane, in whole steps

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Plane:
    """One space in the plane.

    places           x and y of each sentence, whole numbers from 0 to SQUARE
    neighbors        of each sentence its NEIGHBORS nearest in the space itself, by their place in the sample
    trustworthiness  1 less a penalty for each neighbour in the plane that is none in the space (Venna & Kaski 2001)
    """

    space: str
    trustworthiness: float
    places: list[list[int]] = field(repr=False)
    neighbors: list[list[int]] = field(repr=False)


@dataclass(frozen=True)
class SpaceMap:
    """The planes of one corpus. rows: of its sentences; classes: of the same, [] without labels.

    reason  why there is no map, "" where there is one; then the planes have numbers and no places
    """

    corpus: str
    planes: tuple[Plane, ...]
    rows: list[int] = field(default_factory=list)
    classes: list[int] = field(default_factory=list)
    reason: str = ""

    def content(self) -> dict[str, Any]:
        """For the page, JSON-able."""
        return asdict(self) | {"neighbors": NEIGHBORS}


def map_spaces(evidence: Evidence) -> SpaceMap | None:
    """The map of the first corpus whose two planes can be trusted, corpora with classes first; None without a fold.

    Where no corpus of the first TRIED has such planes, the map of the best one says so and has no places.
    Cost: about 2 s of CPU time for each plane of SAMPLE sentences.
    """
    suite = evidence.results.suite
    folds = (space for space in suite.derived_spaces if role_of(evidence.parameters.get(space, {})) == "fold")
    fold = next(folds, None)
    if fold is None:
        return None
    best: SpaceMap | None = None
    for place, corpus in enumerate(_corpora(evidence, fold)):
        if place == TRIED:
            break
        found = _map_corpus(suite.suite, corpus, (suite.encoder_of(fold), fold))
        if not found.reason:
            return found
        if best is None or _worst(found) > _worst(best):
            best = found
    return best


def _worst(found: SpaceMap) -> float:
    return min(plane.trustworthiness for plane in found.planes)


def _corpora(evidence: Evidence, fold: str) -> Iterator[str]:
    """Corpora with enough sentences in both spaces, those with classes first."""
    results = evidence.results
    labelled = results.corpora_of("classification")
    for corpus in (*labelled, *(name for name in results.suite.corpora if name not in labelled)):
        spaces = (results.suite.encoder_of(fold), fold)
        records = [evidence.records.get((space, corpus), {"notes": {"absent": ""}, "rows": 0}) for space in spaces]
        if all("absent" not in record["notes"] and int(record["rows"]) >= FEWEST for record in records):
            yield corpus


def _map_corpus(suite: str, corpus: str, spaces: tuple[str, str]) -> SpaceMap:
    """Both planes; their places only if both can be trusted."""
    vectors = [read_vectors(space_path(suite, space, corpus)) for space in spaces]
    rows = np.unique(np.linspace(0, len(vectors[0]) - 1, SAMPLE).astype(np.int64))
    planes = tuple(draw_plane(space, x[rows]) for space, x in zip(spaces, vectors, strict=True))
    bad = [f"{plane.trustworthiness:.2f} in {plane.space}" for plane in planes if plane.trustworthiness < LEAST]
    if bad:
        numbers = tuple(Plane(plane.space, plane.trustworthiness, [], []) for plane in planes)
        reason = f"the trustworthiness of a plane of {corpus} is {' and '.join(bad)}, below {LEAST:g}"
        return SpaceMap(corpus, numbers, reason=reason)
    return SpaceMap(corpus, planes, rows.tolist(), _classes(suite, corpus, rows))


def draw_plane(space: str, vectors: npt.NDArray[np.float32]) -> Plane:
    """t-SNE of unit vectors, from their first two principal components; a fixed sequence of steps.

    vectors  (n, d), one row per sentence, n > 3 * 30
    """
    from sklearn.manifold import TSNE, trustworthiness

    x = vectors.astype(np.float64)
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    with threadpool_limits(1):
        places: Floats = TSNE(perplexity=30, init="pca", random_state=0).fit_transform(x).astype(np.float64)
        kept = float(trustworthiness(x, places, n_neighbors=NEIGHBORS))
    low, high = places.min(axis=0), places.max(axis=0)
    square = np.rint(SQUARE * (0.5 + (places - (low + high) / 2) / (high - low).max())).astype(np.int64)
    return Plane(space, round(kept, 2), square.tolist(), find_nearest(x).tolist())


def find_nearest(x: Floats) -> npt.NDArray[np.int64]:
    """The NEIGHBORS nearest rows of each row of unit vectors, the nearest first; of equally near ones the first."""
    likeness = x @ x.T
    np.fill_diagonal(likeness, -np.inf)
    return np.argsort(-likeness, axis=1, kind="stable")[:, :NEIGHBORS]


def _classes(suite: str, corpus: str, rows: npt.NDArray[np.int64]) -> list[int]:
    """The class of each row of a corpus of classification; [] for another corpus, or if a row has no class."""
    path = corpus_path(suite, corpus, "items")
    if kind_of(path) != "items.classification":
        return []
    items = read_table(path, kind="items.classification").to_pydict()
    known = dict(zip(items["row"], items["label"], strict=True))
    return [int(known[row]) for row in rows.tolist()] if all(row in known for row in rows.tolist()) else []
