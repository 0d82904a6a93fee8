"""Parts of several search methods: inner products with a bias, and the hubness of documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.neighbors.neighbors import nearest_among, nearest_neighbors
from sentfold.retrieval.base.ranking import Scorer, Singles


def inner_products(documents: Singles, bias: npt.NDArray[np.floating[Any]] | None = None) -> Scorer:
    """Scores q . d - bias(d). Cost O(n d) per query."""
    if bias is None:
        return lambda queries: queries @ documents.T
    subtracted = bias.astype(np.float32)
    return lambda queries: queries @ documents.T - subtracted


def hubness(documents: Singles, bank: Singles | None, k: int, *, workers: int) -> npt.NDArray[np.float64]:
    """(n,) mean cosine of each document with its k nearest of the bank; of the other documents, if bank is None.

    k is lowered to what is there. Cost O(n b d) for a bank of b queries, exact.
    """
    if bank is None:
        near = nearest_neighbors(documents, min(k, len(documents) - 1), metric="cosine", workers=workers)
    else:
        near = nearest_among(documents, bank, min(k, len(bank)), metric="cosine", workers=workers)
    means: npt.NDArray[np.float64] = 1 - near.distances.mean(axis=1)
    return means
