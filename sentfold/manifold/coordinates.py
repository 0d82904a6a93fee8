"""Random coordinates: some coordinates of each vector, the same ones for all, chosen without looking."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from sentfold.manifold.base.linear import check_count
from sentfold.manifold.base.protocol import Embedded, Source
from sentfold.settings import Parameters

TITLE = "random coordinates"
ROLE = "control"
READS = "vectors"
SOLVES = False


class Settings(Parameters):
    """components: p. seed: of the choice; for one seed a smaller p chooses a subset."""

    components: int = Field(default=128, ge=1, le=10_000)
    seed: int = Field(default=0, ge=0, lt=2**32)


def embed(source: Source, settings: Settings) -> Embedded:
    """The (n, p) chosen coordinates: what every other reduction has to beat. Raises ParameterError if p > d."""
    d, p = source.vectors.shape[1], settings.components
    check_count(p, "p", least=1, most=d, where="components", meaning="d")
    chosen = np.random.default_rng(settings.seed).permutation(d)[:p]
    return Embedded(np.asarray(source.vectors[:, chosen], dtype=np.float32), {})
