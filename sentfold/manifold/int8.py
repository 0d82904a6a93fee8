"""int8: each coordinate rounded to one of 256 values between its least and its largest value."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.manifold.base.protocol import Embedded, Source
from sentfold.settings import Parameters

TITLE = "int8"
ROLE = "adjustment"
READS = "vectors"
SOLVES = False

STEPS = 255  # from the least to the largest value of a coordinate


class Settings(Parameters):
    """int8 has no settings."""


def embed(source: Source, settings: Settings) -> Embedded:
    """The (n, d) decoded codes, calibrated on the same vectors: d bytes each are stored in place of 4 d."""
    return Embedded(decode_int8(source.vectors, source.vectors), {"stored_bytes": source.vectors.shape[1]})


def decode_int8(
    x: npt.NDArray[np.floating[Any]], calibration: npt.NDArray[np.floating[Any]]
) -> npt.NDArray[np.float32]:
    """What int8 codes say of vectors: 256 values per coordinate, between its least and its largest value in others.

    x, calibration  (n, d) and (m, d). A value outside the range becomes its end. Cost O((n + m) d)
    """
    low, high = calibration.min(axis=0), calibration.max(axis=0)
    with np.errstate(over="ignore"):
        step = np.where(high > low, (high - low) / STEPS, 1.0)
    if low.dtype != np.float64 and not (np.isfinite(step) & (step > 0)).all():
        # The range of a coordinate, or its 255th part, leaves the type of the vectors.
        return decode_int8(x.astype(np.float64), calibration.astype(np.float64))
    return np.asarray(low + np.clip(np.round((x - low) / step), 0, STEPS) * step, dtype=np.float32)
