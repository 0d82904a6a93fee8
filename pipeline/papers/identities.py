"""Mathematics that papers claim, computed both ways on random numbers: equal to rounding error, or not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
TRIALS = 100
# Both ways are a few hundred additions and products, and a factorisation, of numbers near 1.
ROUNDING = 1e4 * np.finfo(np.float64).eps


def greatest_error(identity: str) -> float:
    """The greatest relative difference of both sides over random trials. Raises KeyError for an unknown identity."""
    rng = np.random.default_rng(0)
    sides = [IDENTITIES[identity](rng) for _ in range(TRIALS)]
    return max(abs(left - right) / max(abs(left), abs(right)) for left, right in sides)


def gem_residual(rng: np.random.Generator) -> tuple[float, float]:
    """The last diagonal element of QR, and the least distance to the span of the context (GEM, section 2.2)."""
    context, word = rng.standard_normal((50, 14)), rng.standard_normal(50)
    nearest = context @ np.linalg.lstsq(context, word, rcond=None)[0]
    return abs(_last_of_qr(context, word)[1]), float(np.linalg.norm(word - nearest))


def gem_significance(rng: np.random.Generator) -> tuple[float, float]:
    """|sigma * U^T q| / (2m + 1) by singular vectors, and r / (2m + 1) (GEM, section 2.3)."""
    context, word = rng.standard_normal((50, 14)), rng.standard_normal(50)
    q, r = _last_of_qr(context, word)
    u, sigma, _ = np.linalg.svd(np.column_stack([context, word]), full_matrices=False)
    return float(np.linalg.norm(sigma * (u.T @ q))) / 15, abs(r) / 15


def _last_of_qr(context: Float64, word: Float64) -> tuple[Float64, float]:
    q, r = np.linalg.qr(np.column_stack([context, word]))
    return q[:, -1], float(r[-1, -1])


def lorentz_distance(rng: np.random.Generator) -> tuple[float, float]:
    """The squared Lorentzian norm of a - b on the hyperboloid, and equation 8 in x and y (hyperboloid paper, 3.2.2)."""
    x, y, beta = rng.standard_normal(50), rng.standard_normal(50), rng.uniform(0.01, 10)
    a, b = (np.concatenate([[np.sqrt(v @ v + beta)], v]) for v in (x, y))
    difference = a - b
    left = difference[1:] @ difference[1:] - difference[0] ** 2
    return float(left), float(-2 * (beta + x @ y - np.sqrt(x @ x + beta) * np.sqrt(y @ y + beta)))


IDENTITIES: dict[str, Callable[[np.random.Generator], tuple[float, float]]] = {
    "gem-residual": gem_residual,
    "gem-significance": gem_significance,
    "lorentz-distance": lorentz_distance,
}
