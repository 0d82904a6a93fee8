"""Cosine: what every other search has to beat."""

from __future__ import annotations

from sentfold.retrieval.base.protocol import Source
from sentfold.retrieval.base.ranking import Scorer
from sentfold.retrieval.base.scorers import inner_products
from sentfold.settings import Parameters

TITLE = "cosine"
LEARNS = "documents"


class Settings(Parameters):
    """Cosine has no settings."""


def prepare(source: Source, settings: Settings) -> Scorer:
    """The cosine. Cost O(n d) per query, nothing per document."""
    return inner_products(source.documents)
