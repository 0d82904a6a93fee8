"""Controls: what a manifold has to beat beside the encoder's own cosine."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import ParameterError


def principal_components(x: npt.NDArray[np.floating[Any]], p: int) -> tuple[npt.NDArray[np.float64], float]:
    """The p leading principal components of centred rows, and their share of the variance.

    x  (n, d); p <= min(n, d). Returns (n, p) float64 scores and a number in [0, 1].
    Raises ParameterError if p does not fit. Cost O(n d^2) time.
    Source: scikit-learn's PCA with the full, deterministic solver.
    """
    if not 1 <= p <= min(x.shape):
        raise ParameterError(
            "p does not fit the data",
            where="components",
            expected=f"1 <= p <= min(n, d) = {min(x.shape)}",
            got=f"p = {p}",
            remedy="lower `components` of the manifold that this control stands beside",
        )
    # Here, so that reading the parameters of this stage does not wait for scikit-learn.
    from sklearn.decomposition import PCA

    model = PCA(n_components=p, svd_solver="full")
    scores: npt.NDArray[np.float64] = model.fit_transform(np.asarray(x, dtype=np.float64))
    return scores, float(model.explained_variance_ratio_.sum())
