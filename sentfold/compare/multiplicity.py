"""Differences judged together: simultaneous intervals, adjusted p-values, smallest detectable differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from zlib import crc32

import numpy as np
import numpy.typing as npt

from sentfold.errors import ParameterError

POWER = 0.8  # probability that a difference as large as `detectable` is called

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Contrast:
    """One difference of a family.

    value       the difference itself, in points
    replicates  (b,) its paired bootstrap replicates, in the same unit
    data        the name of the data: contrasts of the same data share their resamples, others do not
    """

    value: float
    replicates: Float64
    data: str


@dataclass(frozen=True)
class Adjusted:
    """A difference judged together with the others of its family.

    low, high   simultaneous interval: with the confidence asked for, all intervals of the family contain their truth
    p           adjusted p-value: probability of a studentised difference this large anywhere in the family if all
                true differences were zero
    detectable  smallest true difference that this contrast shows with 80% power, in points
    """

    value: float
    low: float
    high: float
    p: float
    detectable: float

    @property
    def sign(self) -> int:
        """1 or -1 if the simultaneous interval is on one side of 0, otherwise 0."""
        return int(self.low > 0) - int(self.high < 0)


def adjust(contrasts: Sequence[Contrast], *, confidence: float) -> tuple[Adjusted, ...]:
    """Simultaneous intervals by the largest studentised deviation over the family (single-step max-T).

    Contrasts of the same data keep the dependence of their paired replicates. Different data are independent, so the
    replicates of each data are first put into an order that is drawn from its name.
    A contrast without spread (two spaces with equal scores in every resample) is no comparison: its interval is its
    value, its p is 1, and the other intervals do not widen by it.
    Returns one Adjusted per contrast, in their order; () for none. Raises ParameterError if they have different
    numbers of replicates, or one that is not finite. Cost O(family x b).
    Source: Westfall & Young 1993, Resampling-Based Multiple Testing, section 2.6; Romano & Wolf 2005,
    doi:10.1198/016214504000000539
    """
    if not contrasts:
        return ()
    draws = {contrast.replicates.shape for contrast in contrasts}
    if len(draws) > 1 or not all(np.isfinite(contrast.replicates).all() for contrast in contrasts):
        raise ParameterError(
            "contrasts cannot be judged together", expected="finite replicates, equally many", got=str(draws)
        )
    spread = np.array([contrast.replicates.std(ddof=1) for contrast in contrasts])
    moving = spread > 1e-12
    deviations = np.stack([deal(c.replicates - c.replicates.mean(), c.data) for c in contrasts])
    largest = np.max(np.abs(deviations[moving]) / spread[moving, None], axis=0) if moving.any() else np.zeros(1)
    critical = float(np.quantile(largest, confidence))
    return tuple(_adjusted(c, float(se), largest, critical) for c, se in zip(contrasts, spread, strict=True))


def deal(replicates: Float64, data: str) -> Float64:
    """Replicates in an order drawn from the name of their data: replicates of different data become independent."""
    return replicates[np.random.default_rng(crc32(data.encode())).permutation(len(replicates))]


def _adjusted(contrast: Contrast, spread: float, largest: Float64, critical: float) -> Adjusted:
    if spread <= 1e-12:
        return Adjusted(contrast.value, contrast.value, contrast.value, 1.0, 0.0)
    reach = critical * spread
    exceeding = int((largest >= abs(contrast.value) / spread).sum())
    detectable = (critical + NormalDist().inv_cdf(POWER)) * spread
    return Adjusted(
        contrast.value, contrast.value - reach, contrast.value + reach, (1 + exceeding) / (1 + len(largest)), detectable
    )
