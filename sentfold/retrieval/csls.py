"""CSLS: the cosine less the document's hubness, its mean cosine with its nearest neighbours."""

from __future__ import annotations

from pydantic import Field

from sentfold.retrieval.base.protocol import Source
from sentfold.retrieval.base.ranking import Scorer
from sentfold.retrieval.base.scorers import hubness, inner_products
from sentfold.settings import Parameters

TITLE = "CSLS"
LEARNS = "documents"


class Settings(Parameters):
    """neighbors: k of the mean."""

    neighbors: int = Field(default=10, ge=1, le=10_000)


def prepare(source: Source, settings: Settings) -> Scorer:
    """Scores q . d - r(d) / 2. The hubness r(q) of the query orders no documents and is left out.

    The authors take the neighbours of a document among the queries that are tested, which is transductive. Here
    they are other documents; among development queries CSLS is nearest-neighbour normalisation with weight 1/2.
    Cost O(n^2 d) once; per query O(n d).
    Source: arXiv:1710.04087, eq. 3; its claim is for dictionaries of words, where hubs are fewer.
    """
    near = hubness(source, settings.neighbors)
    return inner_products(source.documents, near / 2)
