"""The scale of each dimension of an eigenvector space."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.errors import ParameterError
from pipeline.manifold.manifolds import Scaling

Float64 = npt.NDArray[np.float64]

POWERS: dict[str, float] = {"unit": 0.0, "quarter": -0.25, "half": -0.5}


def scale_eigenvectors(vectors: Float64, values: Float64, scaling: Scaling) -> Float64:
    """Eigenvectors as coordinates: times sqrt(n), and times a power of each eigenvalue over the last.

    vectors  (n, p) orthonormal columns
    values   (p,) eigenvalues of the columns, > 0
    scaling  unit: power 0, so Y^T Y / n = I, the paper's; quarter: power -1/4; half: power -1/2, as in a
             commute-time embedding. The smaller an eigenvalue, the more its dimension then weighs.
    Returns (n, p); with any scaling the last column has mean square 1. Cosines see only the ratios.
    Raises ParameterError for another scaling, or an eigenvalue that is not positive.
    Source: SBERT-LP eq. 15 (unit)
    """
    if scaling not in POWERS:
        raise ParameterError(
            "there is no such scaling", where="scaling", expected=f"one of: {', '.join(POWERS)}", got=repr(scaling)
        )
    if not (values > 0).all():
        raise ParameterError(
            "a null vector has no scale",
            where="eigenvalues",
            expected="all > 0",
            got=f"{values.min():.3g}",
            remedy="raise `null_tolerance`, so that null vectors are skipped",
        )
    scaled: Float64 = vectors * (np.sqrt(len(vectors)) * (values / values[-1]) ** POWERS[scaling])
    return scaled
