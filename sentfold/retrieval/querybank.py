"""Querybank normalisation: an inverted softmax over a bank of queries, if the first document is a hub of the bank."""

from __future__ import annotations

import numpy as np
from pydantic import Field
from scipy.special import logsumexp

from sentfold.kernels.arrays import row_blocks
from sentfold.retrieval.base.protocol import Source
from sentfold.retrieval.base.ranking import Scorer, Singles
from sentfold.retrieval.base.scorers import inner_products
from sentfold.settings import Parameters

TITLE = "querybank normalisation"
LEARNS = "bank"


class Settings(Parameters):
    """sharpness: beta of the softmax, the inverse temperature of cosines."""

    sharpness: float = Field(default=20.0, gt=0, le=1000)


def prepare(source: Source, settings: Settings) -> Scorer:
    """Scores exp(beta q . d) / sum over the bank of exp(beta b . d), if the query's first document is active.

    A document is active if it is the first one of a query of the bank. For other queries the score is the cosine
    (the "dynamic" inverted softmax). In logarithms, divided by beta, both are inner products less a bias.
    Cost O(n b d) once for a bank of b queries; per query O(n d). Memory O(block b).
    Source: arXiv:2112.12777; its claims are for text and video.
    """
    bank, beta = source.known_bank, settings.sharpness
    bias = np.empty(len(source.documents), dtype=np.float32)
    best, first = np.full(len(bank), -np.inf, dtype=np.float32), np.zeros(len(bank), dtype=np.int64)
    for rows in row_blocks(len(bias)):
        cosines = source.documents[rows] @ bank.T
        bias[rows] = logsumexp(beta * cosines.astype(np.float64), axis=1) / beta
        better = cosines.max(axis=0) > best
        first[better] = rows.start + cosines.argmax(axis=0)[better]
        best = np.maximum(best, cosines.max(axis=0))
    active = np.zeros(len(bias), dtype=np.bool_)
    active[first] = True
    plain = inner_products(source.documents)

    def score(queries: Singles) -> Singles:
        scores = plain(queries)
        scores[active[scores.argmax(axis=1)]] -= bias
        return scores

    return score
