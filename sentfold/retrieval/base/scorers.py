"""Parts of several search methods: inner products with a bias, and the hubness of documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.neighbors.neighbors import nearest_among
from sentfold.retrieval.base.protocol import Source
from sentfold.retrieval.base.ranking import Scorer, Singles


def inner_products(documents: Singles, bias: npt.NDArray[np.floating[Any]] | None = None) -> Scorer:
    """Scores q . d - bias(d). Cost O(n d) per query."""
    if bias is None:
        return lambda queries: queries @ documents.T
    subtracted = bias.astype(np.float32)
    return lambda queries: queries @ documents.T - subtracted


def hubness(source: Source, k: int, *, among: Singles | None = None) -> npt.NDArray[np.float64]:
    """(n,) mean cosine of each document with its k nearest among b queries; among the other documents, if None.

    k is lowered to what is there. Exact. Cost O(n b d); O(n^2 d) once for the documents themselves.
    """
    if among is None:
        near = source.nearest(k)
    else:
        near = nearest_among(source.documents, among, min(k, len(among)), metric="cosine", workers=source.workers)
    means: npt.NDArray[np.float64] = 1 - near.distances.mean(axis=1)
    return means
