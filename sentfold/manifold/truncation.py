"""Truncation: the first coordinates of each vector."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from sentfold.manifold.base.linear import check_count
from sentfold.manifold.base.protocol import Embedded, Source
from sentfold.settings import Parameters

TITLE = "first coordinates"
ROLE = "control"
READS = "vectors"
SOLVES = False


class Settings(Parameters):
    """components: p."""

    components: int = Field(default=128, ge=1, le=10_000)


def embed(source: Source, settings: Settings) -> Embedded:
    """The (n, p) first coordinates. Raises ParameterError if p > d.

    Source: arXiv:2508.17744, whose claim is that half of the dimensions cost less than 10%
    """
    d, p = source.vectors.shape[1], settings.components
    check_count(p, "p", least=1, most=d, where="components", meaning="d")
    return Embedded(np.ascontiguousarray(source.vectors[:, :p], dtype=np.float32), {})
