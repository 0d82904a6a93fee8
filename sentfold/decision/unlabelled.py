"""Sentences without labels: what their geometry shows, and what it cannot decide."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.data.tables import DataError
from sentfold.decision.families import FAMILIES, Family, Rows, refuse_wide
from sentfold.decision.progress import counted
from sentfold.decision.spaces import Space
from sentfold.errors import SentfoldError
from sentfold.kernels.threads import one_blas_thread
from sentfold.measures.geometry import hubness, squared_distances, unit_rows
from sentfold.neighbors.neighbors import nearest_neighbors

Floating = npt.NDArray[np.floating[Any]]
Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SAMPLE = 2_000  # texts that are looked at
NEAREST = 10
LEAST = 3 * (NEAREST + 1)  # texts: each third has nearest neighbours


@dataclass(frozen=True)
class Shape:
    """A space of sentences without labels.

    kept     share of the 10 nearest neighbours in the encoder's space that are nearest here too
    stable   the same between this space fitted on one half of the texts and on the other, for texts of neither
    hubness  skewness of how often a text is among the nearest of others; 0 for none
    """

    name: str
    point: str
    kept: float
    stable: float
    hubness: float


@dataclass(frozen=True)
class Geometry:
    """What sentences alone show.

    looked_at       of the texts, which all numbers are of; hubness grows with their number
    cosine_hubness  of the encoder's own space
    reasons         family -> why it is left out
    """

    texts: int
    looked_at: int
    cosine_hubness: float
    shapes: tuple[Shape, ...]
    reasons: dict[str, str]

    def describe(self) -> str:
        """At most 10 lines, the first of them what cannot be decided."""
        lines = [
            "No decision: without scores or labels nothing tells which space is better. The numbers only describe.",
            f"  cosine, {self.looked_at:,} of {self.texts:,} texts: hubness {self.cosine_hubness:.1f}",
        ]
        lines += [
            f"  {shape.name}, {shape.point or 'no parameter'}: {shape.kept:.0%} of the nearest {NEAREST} kept, "
            f"{shape.stable:.0%} the same on other texts, hubness {shape.hubness:.1f}"
            for shape in self.shapes
        ]
        return "\n".join(lines[:10])

    def to_json(self) -> dict[str, Any]:
        """All numbers, JSON-able."""
        return {**asdict(self), "shapes": [asdict(shape) for shape in self.shapes], "verdict": self.describe()}


def describe_sentences(vectors: Floating, *, families: tuple[Family, ...] = FAMILIES, seed: int = 0) -> Geometry:
    """The geometry of every label-free family on (n, d) vectors. Raises DataError for n < 33, and as refuse_wide does.

    A third of a sample of the texts is mapped by spaces that were fitted on the other two thirds, one each.
    Cost: two fits of every family at one point of its grid, the middle one.
    """
    if len(vectors) < LEAST:
        raise DataError(
            "there are too few different sentences to describe", where="sentences", expected=f"at least {LEAST}",
            got=str(len(vectors)),
        )  # fmt: skip
    refuse_wide(vectors.shape[1])
    order = np.random.default_rng(seed).permutation(len(vectors))[:SAMPLE]
    held_out, first, second = (vectors[np.sort(part)] for part in np.array_split(order, 3))
    tried = [family for family in families if not family.supervised]
    shapes, reasons = [], {}
    with one_blas_thread():
        for family in counted(tried, len(tried), "space"):
            try:
                shapes.append(_shape_of(family, held_out, first, second, seed))
            except (SentfoldError, ValueError, np.linalg.LinAlgError) as error:
                reasons[family.name] = str(error).partition("\n")[0]
    return Geometry(len(vectors), len(held_out), _hubness(held_out), tuple(shapes), reasons)


def _shape_of(family: Family, held_out: Floating, first: Floating, second: Floating, seed: int) -> Shape:
    """Raises ValueError if no point of the family's grid fits the texts."""
    (point, one), (_, two) = (_middle_point(family, half) for half in (first, second))
    images, others = one.transform(held_out), two.transform(held_out)
    return Shape(
        name=family.name,
        point=point,
        kept=round(shared_neighbors(held_out, images), 3),
        stable=round(shared_neighbors(images, others), 3),
        hubness=_hubness(images),
    )


def _middle_point(family: Family, x: Floating) -> tuple[str, Space]:
    points = [(name, p, point.space) for point in family.spaces(Rows(x, x, x[:0])) for name, p in point.names.items()]
    if not points:
        raise ValueError("too few texts")
    name, dimensions, space = points[len(points) // 2]
    return name, space.cut(dimensions) if dimensions else space


def _hubness(x: Floating) -> float:
    unit = unit_rows(x)
    known = unit[unit.any(axis=1)]  # zero vectors have no direction, and would be near to all others
    return round(float(hubness(squared_distances(known), NEAREST)), 2) if len(known) > NEAREST else 0.0


def shared_neighbors(x: Floating, y: Floating) -> float:
    """The mean share of each row's 10 nearest by cosine in x that are among its 10 nearest in y."""
    one, two = (nearest_neighbors(space, NEAREST, metric="cosine", workers=1).indices for space in (x, y))
    return float((one[:, :, None] == two[:, None, :]).any(axis=2).mean())
