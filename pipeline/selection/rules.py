"""Two rules that choose a neighbourhood size without any labels; SBERT-LP names and rejects them, unshown."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import pdist

Floating = npt.NDArray[np.floating[Any]]
Rows = npt.NDArray[np.integer[Any]]


def residual_variance(x: Floating, y: Floating) -> float:
    """1 - r^2 of the pairwise distances of rows before and after; 0 where they are proportional, 1 if unrelated.

    x  (n, d); y: (n, p), the same rows. Where one of the two does not vary it is 1.
    Cost O(n^2 (d + p)) time, O(n^2) memory. Source: Kouropteva et al. 2002; Ghojogh et al. 2020, section 8
    """
    before, after = pdist(np.asarray(x, dtype=np.float64)), pdist(np.asarray(y, dtype=np.float64))
    if np.ptp(before) == 0 or np.ptp(after) == 0:
        return 1.0
    return 1.0 - float(np.corrcoef(before, after)[0, 1]) ** 2


def procrustes_statistic(x: Floating, y: Floating, rows: Rows, neighbors: Rows) -> float:
    """Mean misfit of neighbourhoods before and after, each turned, moved and scaled onto the other as well as can be.

    x          (n, d); y: (n, p); rows: (m,) whose neighbourhoods are looked at; neighbors: (m, k) of them
    Of one neighbourhood, centred: 1 - (sum of singular values of X^T Y)^2 / (|X|^2 |Y|^2), between 0 and 1;
    1 where either has collapsed to a point. Scaling is allowed because an LLE has no scale of its own.
    Cost O(m k^2 (d + p + k)). Source: Goldberg & Ritov 2009, doi:10.1007/s10994-009-5107-9
    """
    members = np.column_stack([rows, neighbors])
    bases = [_triangles(np.asarray(values, dtype=np.float64), members) for values in (x, y)]
    # X^T Y = Qx Rx Ry^T Qy^T, and turning by Q changes no singular value: k x k is enough.
    singular = np.linalg.svd(bases[0] @ bases[1].transpose(0, 2, 1), compute_uv=False).sum(axis=1)
    sizes = np.prod([np.square(base).sum(axis=(1, 2)) for base in bases], axis=0)
    misfits = np.where(sizes > 0, 1.0 - singular**2 / np.where(sizes > 0, sizes, 1.0), 1.0)
    return float(np.clip(misfits, 0.0, 1.0).mean())


def _triangles(values: npt.NDArray[np.float64], members: Rows) -> npt.NDArray[np.float64]:
    """(m, r, k + 1) the triangular factors of the transposed centred neighbourhoods, (d, k + 1) each."""
    centred = values[members] - values[members].mean(axis=1, keepdims=True)
    return np.asarray(np.linalg.qr(centred.transpose(0, 2, 1), mode="r"))
