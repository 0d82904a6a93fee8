"""All but the top: centred vectors without their first principal directions."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from sentfold.manifold.base.linear import LinearMap, PrincipalAxes, check_count
from sentfold.manifold.base.protocol import Embedded, Source, embed_linearly
from sentfold.settings import Parameters

TITLE = "all but the top directions"
ROLE = "adjustment"
READS = "vectors"
SOLVES = False


class Settings(Parameters):
    """removed: number of leading principal directions to remove; 0 only centres."""

    removed: int = Field(default=1, ge=0, le=10_000)


def embed(source: Source, settings: Settings) -> Embedded:
    """The (n, d) vectors without the removed directions. Raises ParameterError if no direction would be left."""
    axes, removed = source.axes, settings.removed
    share = round(1 - axes.share(removed), 6)
    return embed_linearly(source, removal_map(axes, removed), rank=axes.rank, variance_share=share)


def fits(settings: Settings, shape: tuple[int, ...], held: int) -> bool:
    """Whether some direction would be left."""
    n, d = shape
    return settings.removed < min(n - 1, d)


def removal_map(axes: PrincipalAxes, removed: int) -> LinearMap:
    """The map that centres rows and projects away the first principal axes. It keeps the dimension.

    removed  D, 0 <= D < rank; 0 only centres. The authors' rule of thumb for word vectors is d / 100.
    Returns a map with a (d, d) matrix; its eigenvalues are the D removed variances. Rows are centred before they
    are projected, so the images of the fitted rows have mean zero.
    Raises ParameterError if no direction would be left.
    Source: Mu & Viswanath 2018, arXiv:1702.01417, algorithm 1
    """
    check_count(removed, "D", least=0, most=axes.rank - 1, where="removed", meaning="rank of the centred rows - 1")
    top = axes.axes[:, :removed]
    return LinearMap(axes.mean, np.eye(len(axes.mean)) - top @ top.T, axes.variances[:removed])
