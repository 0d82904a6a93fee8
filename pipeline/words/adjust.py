"""What is done to word vectors before any encoder sees them: levelled variance, lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import ParameterError

Float64 = npt.NDArray[np.float64]


def level_variance(vectors: npt.NDArray[np.floating[Any]], components: int) -> Float64:
    """Centred vectors whose leading components are shrunk to the variance of the next one.

    vectors     (v, d), one word a row, every word counting once
    components  D >= 1; D + 1 <= min(v, d)
    Returns (v, d) float64: x - sum_{j<=D} (l_j - l_{D+1}) / l_j (u_j . x) u_j for centred x, with l_j, u_j
    the variances and directions of the principal components.
    Raises ParameterError if there are too few words or dimensions. Cost O(v d^2).
    Source: Wang et al. 2018, "Post-processing of word representations via variance normalization and
    dynamic embedding", arXiv:1808.06305; S3E and LASE apply it with D = 10.
    """
    x = np.asarray(vectors, dtype=np.float64)
    if components + 1 > min(x.shape):
        raise ParameterError(
            "too few words to level the variance of",
            where="pvn",
            expected=f"pvn + 1 <= min(words, dimensions) = {min(x.shape)}",
            got=f"pvn = {components}",
            remedy="lower `pvn`, or add sentences",
        )
    x = x - x.mean(axis=0)
    variances, directions = np.linalg.eigh(x.T @ x)
    leading = variances[::-1][: components + 1]
    u = directions[:, ::-1][:, :components]
    # Two distinct words span one direction: the other variances are 0, and there is nothing to shrink.
    share = np.divide(leading[:-1] - leading[-1], leading[:-1], out=np.zeros(components), where=leading[:-1] > 0)
    shrunk: Float64 = x - ((x @ u) * share) @ u.T
    return shrunk


def unit_length(vectors: npt.NDArray[np.floating[Any]]) -> Float64:
    """Every row divided by its length; a zero row stays."""
    x = np.asarray(vectors, dtype=np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", x, x))
    scaled: Float64 = x / np.where(lengths > 0, lengths, 1.0)[:, None]
    return scaled


def mean_unit_length(vectors: npt.NDArray[np.floating[Any]]) -> Float64:
    """All rows divided by their mean length; unchanged if that is zero."""
    x = np.asarray(vectors, dtype=np.float64)
    mean = float(np.sqrt(np.einsum("ij,ij->i", x, x)).mean())
    return x / (mean if mean > 0 else 1.0)
