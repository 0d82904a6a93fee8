"""Pairs of vectors: their similarities by every measure that a paper has used, and their features for a regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
Floating = npt.NDArray[np.floating[Any]]
Rows = npt.NDArray[np.integer[Any]]

BETAS = (0.01, 0.1, 1, 10)
BLOCK = 1024  # pairs that are converted to float64 at a time


def pair_similarities(vectors: Floating, rows: Rows) -> tuple[dict[str, Float64], int]:
    """Every similarity of each pair of rows, in float64; a larger value means more alike.

    vectors  (n, d); rows (m, 2)
    cosine        0 where a vector is zero; 1 exactly for identical rows
    dot           inner product
    euclidean, manhattan  negative distances
    abs-cosine    |cosine| (SBERT-LP, section 3.2.1)
    lorentz-<b>   negative Lorentzian distance of the points on the hyperboloid of curvature b (Law et al. 2019);
                  see `lorentz_distances`
    Returns {name: (m,)}, and the number of pairs with a zero vector.
    Cost O(m d) time, O(block d) memory in addition to the result.
    """
    blocks = [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
    parts = [_similarities_of_block(vectors, block) for block in blocks]
    joined = {name: np.concatenate([part[0][name] for part in parts]) for name in parts[0][0]}
    return joined, sum(part[1] for part in parts)


def cosines(vectors: Floating, rows: Rows) -> tuple[Float64, int]:
    """Cosine of each pair of rows, in float64, and the number of pairs with a zero vector (cosine 0).

    vectors  (n, d); rows (m, 2). Identical rows have cosine exactly 1. Memory O(block d).
    """
    values, undefined = np.empty(len(rows)), 0
    for start in range(0, len(rows), BLOCK):
        part = slice(start, start + BLOCK)
        left, right = _sides(vectors, rows[part])
        values[part], zero = _cosine(left, right, rows[part])
        undefined += zero
    return values, undefined


def varies(values: Float64) -> bool:
    """Whether values differ by more than rounding does, (n,), n >= 1.

    Cosines of float32 vectors of one direction differ by about 1e-14; a correlation with them would be one with noise.
    """
    return bool(np.ptp(values) > 1e-12 * np.abs(values).max())


def pair_features(vectors: Floating, rows: Rows) -> npt.NDArray[np.float32]:
    """(m, 2 d) SentEval's features of pairs of rows, (m, 2): |u - v|, then u * v."""
    left, right = vectors[rows[:, 0]], vectors[rows[:, 1]]
    return np.hstack([np.abs(left - right), left * right]).astype(np.float32, copy=False)


def lorentz_distances(left: Float64, right: Float64, beta: float) -> Float64:
    """Lorentzian distance of each pair of vectors, (m, d) each, lifted to the hyperboloid <a, a>_L = -beta.

    d^2 = |x - y|^2 - (sqrt(|x|^2 + beta) - sqrt(|y|^2 + beta))^2. The difference of the roots is computed as
    (x - y)(x + y) over their sum: the literal form subtracts numbers of the size of |x| |y| and loses all digits
    where x is near y.
    """
    apart = left - right
    squared = np.einsum("ij,ij->i", apart, apart)
    roots = sum(np.sqrt(np.einsum("ij,ij->i", side, side) + beta) for side in (left, right))
    lifted = np.einsum("ij,ij->i", apart, left + right) / roots
    distances: Float64 = np.sqrt(np.maximum(squared - lifted**2, 0.0))
    return distances


def _similarities_of_block(vectors: Floating, rows: Rows) -> tuple[dict[str, Float64], int]:
    left, right = _sides(vectors, rows)
    cosine, undefined = _cosine(left, right, rows)
    apart = left - right
    similarities = {
        "cosine": cosine,
        "dot": np.einsum("ij,ij->i", left, right),
        "euclidean": -np.linalg.norm(apart, axis=1),
        "manhattan": -np.abs(apart).sum(axis=1),
        "abs-cosine": np.abs(cosine),
        **{f"lorentz-{beta:g}": -lorentz_distances(left, right, beta) for beta in BETAS},
    }
    return similarities, undefined


def _sides(vectors: Floating, rows: Rows) -> tuple[Float64, Float64]:
    return vectors[rows[:, 0]].astype(np.float64), vectors[rows[:, 1]].astype(np.float64)


def _cosine(left: Float64, right: Float64, rows: Rows) -> tuple[Float64, int]:
    scale = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    undefined = scale == 0
    values = np.einsum("ij,ij->i", left, right) / np.where(undefined, 1.0, scale)
    same = np.where(undefined, 0.0, 1.0)
    return np.clip(np.where(rows[:, 0] == rows[:, 1], same, values), -1.0, 1.0), int(undefined.sum())
