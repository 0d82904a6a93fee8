"""Spectral tempering: whitened principal components with a power that is read off the spectrum, without labels."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from pydantic import Field

from sentfold.kernels.arrays import Float64
from sentfold.manifold.base.linear import PrincipalAxes
from sentfold.manifold.base.protocol import Embedded, Source, embed_linearly
from sentfold.manifold.whitening import whitening_map
from sentfold.settings import Parameters

TITLE = "spectrally tempered principal components"
ROLE = "adjustment"
READS = "vectors"
SOLVES = False

TAIL = 0.1  # share of the axes, those of the lowest variance, that count as noise
SENSITIVITY = 0.5  # of the search for the knee


class Settings(Parameters):
    """components: p."""

    components: int = Field(default=128, ge=1, le=10_000)


def embed(source: Source, settings: Settings) -> Embedded:
    """The (n, p) components. Raises ParameterError if p > min(n, d). The notes have the power."""
    power = tempered_power(source.axes, settings.components)
    made = whitening_map(source.axes, settings.components, power=power)
    return embed_linearly(source, made, rank=source.axes.rank, power=round(power, 6))


def tempered_power(axes: PrincipalAxes, p: int) -> float:
    """The power of whitening_map for p components: min(1, s_p / s_knee).

    s_i = max(0, l_i / noise - 1) is the ratio of signal to noise along axis i, without the TAIL of the axes; noise is
    the mean variance of the tail. The knee is that of the curve s; p / 2 where the curve has none. An axis in the tail
    has the last ratio. 1 if s_knee is 0. Only variances within the rank count. Cost O(d).
    Source: Li, Eustratiadis & Kanoulas 2026, arXiv:2603.19339, and its released code, commit 04c4eb4. The released code
    adds 1e-6 to each variance before the division; this function has no such constant, which depends on the scale.
    """
    variances = axes.variances[: axes.rank]
    kept = int(len(variances) * (1 - TAIL))
    if kept == 0:
        return 1.0
    ratios = np.maximum(0.0, variances[:kept] / variances[kept:].mean() - 1)
    knee = first_knee(ratios)
    at_knee = ratios[min(max(p // 2, 1), kept) - 1 if knee is None else knee]
    return float(min(1.0, ratios[min(p, kept) - 1] / at_knee)) if at_knee > 0 else 1.0


def first_knee(curve: Float64) -> int | None:
    """The index at which a falling curve bends into its flat part; None if it does not bend.

    curve  (m,) falling values at equal steps
    The difference of the curve from the straight line through its ends is largest at a knee. A local maximum counts if
    the difference falls by SENSITIVITY / (m - 1) before the next maximum. Cost O(m).
    Source: Kneedle, Satopaa et al. 2011, doi:10.1109/ICDCSW.2011.20, for convex falling curves
    """
    m, span = len(curve), float(np.ptp(curve)) if len(curve) else 0.0
    if m < 3 or span == 0:
        return None
    below = (curve.max() - curve) / span - np.linspace(0, 1, m)
    knee, threshold = None, 0.0
    for i, (here, after) in enumerate(pairwise(below)):
        before = below[max(i - 1, 0)]
        if here >= before and here >= after:
            knee, threshold = i, here - SENSITIVITY / (m - 1)
        elif here <= before and here <= after:
            threshold = 0.0
        if knee is not None and after < threshold:
            return knee
    return None
