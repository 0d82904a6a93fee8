"""Soft ZCA: whitening that is held back by a constant added to every variance, and rotated back."""

from __future__ import annotations

from pydantic import Field

from sentfold.manifold.base.linear import LinearMap, PrincipalAxes
from sentfold.manifold.base.protocol import Embedded, Source, embed_linearly
from sentfold.settings import Parameters

TITLE = "soft ZCA whitening"
ROLE = "adjustment"
READS = "vectors"
SOLVES = False


class Settings(Parameters):
    """epsilon: added to every variance, as a fraction of the mean variance; large values only centre."""

    epsilon: float = Field(default=0.1, gt=0, le=1e6)


def embed(source: Source, settings: Settings) -> Embedded:
    """The (n, d) whitened vectors."""
    return embed_linearly(source, soft_zca_map(source.axes, epsilon=settings.epsilon), rank=source.axes.rank)


def fits(settings: Settings, shape: tuple[int, ...], held: int) -> bool:
    """Whether there are more than two rows: all variance of two rows is along one line."""
    return shape[0] > 2


def soft_zca_map(axes: PrincipalAxes, *, epsilon: float) -> LinearMap:
    """The map x -> (x - mean) U (L + e I)^(-1/2) U', with e = epsilon times the mean variance.

    Returns a map with a symmetric (d, d) matrix; its eigenvalues are the variances L. Cost O(d^3).
    Source: arXiv:2411.17538, where e is absolute. A fraction does not depend on the scale of the vectors: the mean
    variance of unit vectors of 384 dimensions is below 0.003, and an absolute e of 0.1 would change nothing.
    """
    held = axes.variances + (epsilon * axes.variances.mean() or 1.0)
    return LinearMap(axes.mean, (axes.axes * held**-0.5) @ axes.axes.T, axes.variances)
