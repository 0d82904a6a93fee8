"""Spectral tempering: whitened principal components with a power that is read off the spectrum, without labels."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from sentfold.manifold.base.linear import PrincipalAxes
from sentfold.manifold.base.protocol import Embedded, Source, embed_linearly
from sentfold.manifold.whitening import whitening_map
from sentfold.settings import Parameters

TITLE = "spectrally tempered principal components"
ROLE = "adjustment"
READS = "vectors"
SOLVES = False


class Settings(Parameters):
    """components: p."""

    components: int = Field(default=128, ge=1, le=10_000)


def embed(source: Source, settings: Settings) -> Embedded:
    """The (n, p) components. Raises ParameterError if p > min(n, d)."""
    axes, p = source.axes, settings.components
    power = tempered_power(axes, p)
    return embed_linearly(source, whitening_map(axes, p, power=power), rank=axes.rank, power=round(power, 6))


def tempered_power(axes: PrincipalAxes, p: int) -> float:
    """The power of whitening_map for p components: 1 where the p-th axis is signal, towards 0 where it is noise.

    log(l_p / noise) / log(l_knee / noise), cut to [0, 1]. l are the variances within the rank. The curve (axis, log l)
    bends at the axis farthest below the line through its ends; the knee is the axis before, and noise the median
    variance from the bend on. 0 if the curve does not bend downwards. Cost O(d).
    Source: after arXiv:2603.19339, whose abstract names the parts (a power for each p by the local ratio of signal to
    noise, normalised at the knee) but not the formula. This formula has to be compared with the paper before it
    stands for the paper. The claim: near the best power of a search, without labels.
    """
    logs = np.log(axes.variances[: axes.rank])
    if len(logs) < 3:
        return 0.0
    below = np.linspace(logs[0], logs[-1], len(logs)) - logs
    bend = int(below.argmax())
    signal = logs - np.median(logs[bend:])
    if bend == 0 or signal[bend - 1] <= 0:
        return 0.0
    return float(np.clip(signal[min(p, len(logs)) - 1] / signal[bend - 1], 0, 1))
