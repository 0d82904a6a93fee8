"""Mean removal: vectors without their mean, or without their part in the direction of the mean."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field

from sentfold.manifold.base.linear import EPS, LinearMap, PrincipalAxes
from sentfold.manifold.base.protocol import Embedded, Source, embed_linearly
from sentfold.settings import Parameters

TITLE = "removal of the mean"
ROLE = "adjustment"
READS = "vectors"
SOLVES = False


class Settings(Parameters):
    """how: subtract the mean, or project every vector onto the complement of the mean's direction."""

    how: Literal["subtract", "project"] = Field(default="project")


def embed(source: Source, settings: Settings) -> Embedded:
    """The (n, d) vectors without their mean."""
    return embed_linearly(source, mean_map(source.axes, how=settings.how))


def same_as(settings: Settings, shape: tuple[int, ...]) -> tuple[str, dict[str, Any]] | None:
    """Centred vectors, if the mean is subtracted."""
    return ("abtt", {"removed": 0}) if settings.how == "subtract" else None


def mean_map(axes: PrincipalAxes, *, how: str) -> LinearMap:
    """The map x -> x - m, or x -> x - (x . u) u with u = m / |m|; a mean that is rounding error removes nothing.

    Returns a map with a (d, d) matrix and no eigenvalues. Cost O(d^2).
    Source: arXiv:2511.11041, R1 (subtract) and R2 (project). Its claim for R2: over 38 models a mean paired t of 3.31
    on classification and no losses; whitening by all principal components hurts every model that was tried.
    """
    mean, identity = axes.mean, np.eye(len(axes.mean))
    if how == "subtract":
        return LinearMap(mean, identity, np.empty(0))
    squared = float(mean @ mean)
    rounding = (axes.rows * EPS) ** 2 * axes.variances.sum()
    part = np.outer(mean, mean) / squared if squared > rounding else np.zeros_like(identity)
    return LinearMap(np.zeros_like(mean), identity - part, np.empty(0))
