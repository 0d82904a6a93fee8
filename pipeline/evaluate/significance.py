"""Many differences at once, from paired bootstrap replicates: which are real, and how small a one would show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from pipeline.errors import ParameterError

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Compared:
    """One difference among all those of a table.

    difference   score minus score, in the units of the scores
    error        its standard error, the standard deviation of its replicates
    low, high    simultaneous interval: with the stated confidence all intervals of the table hold at once
    adjusted_p   the smallest family-wise level at which this difference is told from 0
    """

    difference: float
    error: float
    low: float
    high: float
    adjusted_p: float


def compare_all(
    differences: Mapping[str, float], replicates: Mapping[str, Float64], *, confidence: float
) -> dict[str, Compared]:
    """Simultaneous intervals and adjusted p-values of a whole table of differences, by the maximum of |t|.

    differences  by name of the cell, on the sample; replicates: (b,) of each, (score - score) of each resample,
                 row i of all being one and the same resample where the cells share a corpus
    Each replicate is centred on its difference and divided by its standard error; the largest of all cells in
    a replicate is what the largest |difference| / error of the table is held against, and, with the cells
    above it taken out, the next (step-down). It is sharper than Bonferroni and Holm where cells hang
    together, as spaces on one corpus do; cells of different corpora are resampled apart. A cell that never
    varies (two equal spaces) has error 0: interval its difference, p 1 if that is 0, else 0.
    Raises ParameterError if replicates are undefined or their numbers differ. Cost O(cells b).
    Source: Westfall & Young 1993; Romano & Wolf 2005, doi:10.1198/016214504000000539
    """
    names = list(differences)
    if not names:
        return {}
    drawn = _stack(names, replicates)
    sample = np.array([differences[name] for name in names])
    errors = drawn.std(axis=1, ddof=1)
    varies = errors > 0
    scale = np.where(varies, errors, 1.0)
    deviations = np.where(varies[:, None], np.abs(drawn - sample[:, None]) / scale[:, None], 0.0)
    observed = np.where(varies, np.abs(sample) / scale, np.where(sample == 0, 0.0, np.inf))
    half = np.quantile(deviations.max(axis=0), confidence)
    levels = _step_down(observed, deviations)
    return {
        name: Compared(
            difference=float(sample[place]),
            error=float(errors[place]),
            low=float(sample[place] - half * errors[place]),
            high=float(sample[place] + half * errors[place]),
            adjusted_p=float(levels[place]) if varies[place] else float(sample[place] == 0),
        )
        for place, name in enumerate(names)
    }


def smallest_detectable(error: float, *, confidence: float, power: float = 0.8, comparisons: int = 1) -> float:
    """The smallest true difference that a two-sided test would tell from 0 with the stated power.

    error        standard error of the difference, e.g. that of Compared
    confidence   1 - level of the test; comparisons: cells among which the level is shared (Bonferroni)
    (z of 1 - level / 2 + z of the power) errors: 2.80 errors for one cell at 95% and 80%.
    """
    level = (1 - confidence) / comparisons
    return float((norm.ppf(1 - level / 2) + norm.ppf(power)) * error)


def _stack(names: list[str], replicates: Mapping[str, Float64]) -> Float64:
    lengths = {len(replicates[name]) for name in names}
    undefined = [name for name in names if not np.isfinite(replicates[name]).all()]
    if len(lengths) > 1 or undefined:
        raise ParameterError(
            "differences cannot be compared as one family",
            where=undefined[0] if undefined else "replicates",
            expected="defined replicates, as many of each",
            got="an undefined replicate" if undefined else f"numbers {sorted(lengths)}",
            remedy="leave the cell out of the family, or evaluate all spaces with the same parameters",
        )
    return np.array([replicates[name] for name in names])


def _step_down(observed: Float64, deviations: Float64) -> Float64:
    """Adjusted p-values: each |t| against the maximum over the cells that are no larger, made monotone."""
    order = np.argsort(-observed, kind="stable")
    levels, largest = np.empty(len(observed)), np.zeros(deviations.shape[1])
    for place in order[::-1]:
        largest = np.maximum(largest, deviations[place])
        levels[place] = (1 + (largest >= observed[place]).sum()) / (1 + len(largest))
    levels[order] = np.maximum.accumulate(levels[order])
    return levels
