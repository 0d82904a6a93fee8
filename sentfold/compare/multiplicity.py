"""Multiple comparisons: simultaneous intervals, adjusted p-values, smallest detectable differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import NormalDist
from zlib import crc32

import numpy as np
import numpy.typing as npt

from sentfold.errors import ParameterError

POWER = 0.8  # probability that a true difference of size `detectable` is found significant

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Contrast:
    """One difference of a family.

    value       the difference itself, in points
    replicates  (b,) its paired bootstrap replicates, in the same unit
    data        the name of the data: contrasts share their resamples if their data are the same, and only then
    """

    value: float
    replicates: Float64
    data: str


@dataclass(frozen=True)
class Adjusted:
    """A difference judged together with the others of its family.

    low, high   simultaneous interval: with the given confidence, every interval of the family contains its true
                difference
    p           adjusted p-value: the probability that some studentised difference of the family is at least this
                large if all true differences are zero
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

    Contrasts of the same data keep the dependence of their paired replicates. Contrasts of different data are
    independent: the replicates of each data are first permuted, by a permutation drawn from the name of the data.
    A contrast without spread (two spaces with equal scores in every resample) is not a comparison: its interval is
    its value alone, its p is 1, and the other intervals are computed without it.
    Returns one Adjusted per contrast, in the order of the contrasts; () for none. Raises ParameterError if the
    contrasts have different numbers of replicates or fewer than 2, or a value or a replicate is not finite.
    Cost O(family x b).
    Source: Westfall & Young 1993, Resampling-Based Multiple Testing, section 2.6; Romano & Wolf 2005,
    doi:10.1198/016214504000000539
    """
    if not contrasts:
        return ()
    draws = {contrast.replicates.shape for contrast in contrasts}
    finite = all(isfinite(contrast.value) and np.isfinite(contrast.replicates).all() for contrast in contrasts)
    if len(draws) > 1 or len(contrasts[0].replicates) < 2 or not finite:
        raise ParameterError(
            "contrasts cannot be judged together",
            expected="finite values and replicates, equally many and at least 2",
            got=f"replicates {draws}, {'all' if finite else 'not all'} finite",
        )
    spread = np.array([contrast.replicates.std(ddof=1) for contrast in contrasts])
    moving = spread > 1e-12
    deviations = np.stack([deal(c.replicates - c.replicates.mean(), c.data) for c in contrasts])
    largest = np.max(np.abs(deviations[moving]) / spread[moving, None], axis=0) if moving.any() else np.zeros(1)
    critical = float(np.quantile(largest, confidence))
    return tuple(_adjusted(c, float(se), largest, critical) for c, se in zip(contrasts, spread, strict=True))


def deal(replicates: Float64, data: str) -> Float64:
    """The replicates, permuted by the name of their data: replicates of different data become independent."""
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
