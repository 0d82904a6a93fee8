"""Whitening: principal components, each divided by its standard deviation to a power."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from pydantic import Field

from sentfold.errors import ParameterError
from sentfold.manifold.base.linear import LinearMap, PrincipalAxes, principal_map
from sentfold.manifold.base.protocol import Embedded, Source, embed_linearly
from sentfold.settings import Parameters

TITLE = "whitened principal components"
ROLE = "adjustment"
READS = "vectors"
SOLVES = False


class Settings(Parameters):
    """components: p. power: of the deviation that is divided by; 0 is PCA, 1 whitens in full."""

    components: int = Field(default=128, ge=1, le=10_000)
    power: float = Field(default=1.0, ge=0, le=1)


def embed(source: Source, settings: Settings) -> Embedded:
    """The (n, p) whitened components. Raises ParameterError if p > min(n, d). The share is that before whitening."""
    axes, p = source.axes, settings.components
    share = round(axes.share(p), 6)
    return embed_linearly(source, whitening_map(axes, p, power=settings.power), rank=axes.rank, variance_share=share)


def fits(settings: Settings, shape: tuple[int, ...], held: int) -> bool:
    """Whether there are p axes."""
    return settings.components <= min(shape)


def same_as(settings: Settings, shape: tuple[int, ...]) -> tuple[str, dict[str, Any]] | None:
    """Principal components where the deviations are divided by their power 0, which is 1."""
    return ("pca", {"components": settings.components}) if settings.power == 0 else None


def whitening_map(axes: PrincipalAxes, p: int | None, *, power: float) -> LinearMap:
    """The projection onto the p leading axes, each divided by its standard deviation to a power.

    p      1 <= p <= min(n, d); None for all of these
    power  0 is PCA, 1 gives the fitted rows unit covariance, 0.5 is half-way; 0 <= power <= 1
    An axis beyond the rank has no deviation to divide by, only rounding: for power > 0 it maps to 0,
    so noise is never raised to the size of a signal, for fitted rows or new ones.
    Raises ParameterError if p or power does not fit.
    Source: Su et al. 2021, arXiv:2103.15316 (power 1); Kessy, Lewin & Strimmer 2018,
    doi:10.1080/00031305.2016.1277159
    """
    if isinstance(power, bool) or not (isfinite(power) and 0 <= power <= 1):
        raise ParameterError(
            "the power of a whitening is out of range",
            where="power",
            expected="0 (PCA) <= power <= 1 (full whitening)",
            got=repr(power),
        )
    plain = principal_map(axes, p)
    scale = np.ones(len(plain.eigenvalues))
    if power > 0:
        scale[axes.rank :] = 0.0
        scale[: axes.rank] = plain.eigenvalues[: axes.rank] ** (-power / 2)
    return LinearMap(plain.mean, plain.matrix * scale, plain.eigenvalues)
