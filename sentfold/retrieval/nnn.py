"""Nearest-neighbour normalisation: the cosine less a share of the document's mean cosine with its nearest queries."""

from __future__ import annotations

from pydantic import Field

from sentfold.retrieval.base.protocol import Source
from sentfold.retrieval.base.ranking import Scorer
from sentfold.retrieval.base.scorers import hubness, inner_products
from sentfold.settings import Parameters

TITLE = "nearest-neighbour normalisation"
LEARNS = "bank"


class Settings(Parameters):
    """neighbors: k nearest queries of the bank. weight: of their mean cosine; 0 is cosine."""

    neighbors: int = Field(default=16, ge=1, le=10_000)
    weight: float = Field(default=0.75, ge=0, le=10)


def prepare(source: Source, settings: Settings) -> Scorer:
    """Scores q . d - weight r(d), with r over queries of the bank. With weight 1/2 it orders as CSLS among the bank.

    Cost O(n b d) once for a bank of b queries; per query O(n d).
    Source: arXiv:2410.24114, whose claim is for captions and images; both parameters are chosen on training data.
    """
    near = hubness(source, settings.neighbors, among=source.known_bank)
    return inner_products(source.documents, settings.weight * near)
