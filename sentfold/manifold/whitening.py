"""Whitening: principal components, each divided by a power of its standard deviation."""

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
    """components: p. power: components are divided by this power of their standard deviation; 0 is PCA, 1 whitens."""

    components: int = Field(default=128, ge=1, le=10_000)
    power: float = Field(default=1.0, ge=0, le=1)


def embed(source: Source, settings: Settings) -> Embedded:
    """The (n, p) whitened components. Raises ParameterError if p > min(n, d).

    variance_share in the notes is computed before the division.
    """
    axes, p = source.axes, settings.components
    share = round(axes.share(p), 6)
    return embed_linearly(source, whitening_map(axes, p, power=settings.power), rank=axes.rank, variance_share=share)


def fits(settings: Settings, shape: tuple[int, ...], held: int) -> bool:
    """Whether there are p axes."""
    return settings.components <= min(shape)


def same_as(settings: Settings, shape: tuple[int, ...]) -> tuple[str, dict[str, Any]] | None:
    """Principal components, if the power is 0: every component is then divided by 1."""
    return ("pca", {"components": settings.components}) if settings.power == 0 else None


def whitening_map(axes: PrincipalAxes, p: int | None, *, power: float) -> LinearMap:
    """The projection onto the p leading axes, each divided by a power of its standard deviation.

    p      1 <= p <= min(n, d); None for all of these
    power  0 <= power <= 1; 0 is PCA, 1 gives the fitted rows unit covariance
    The deviation along an axis beyond the rank is rounding only. For power > 0 such an axis maps to 0, because a
    division by its deviation would turn rounding into coordinates of full size.
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
