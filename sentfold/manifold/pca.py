"""Principal components: the control for every manifold method of the same dimension."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from sentfold.manifold.base.linear import principal_map
from sentfold.manifold.base.protocol import Embedded, Source, embed_linearly
from sentfold.settings import Parameters

TITLE = "principal components"
ROLE = "control"
READS = "vectors"
SOLVES = False


class Settings(Parameters):
    """components: p."""

    components: int = Field(default=128, ge=1, le=10_000)


def embed(source: Source, settings: Settings) -> Embedded:
    """The (n, p) projections onto the leading axes. Raises ParameterError if p > min(n, d)."""
    axes, p = source.axes, settings.components
    share = round(axes.share(p), 6)
    return embed_linearly(source, principal_map(axes, p), rank=axes.rank, variance_share=share)


def fits(settings: Settings, shape: tuple[int, ...], held: int) -> bool:
    """Whether there are p axes."""
    return settings.components <= min(shape)


def same_as(settings: Settings, shape: tuple[int, ...]) -> tuple[str, dict[str, Any]] | None:
    """The centred vectors, if every axis is kept: the components are then a rotation of the centred vectors."""
    n, d = shape
    return ("abtt", {"removed": 0}) if settings.components >= min(n - 1, d) else None
