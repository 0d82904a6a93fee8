"""Retrieval: a collection of documents and judged queries. Searches score it (sentfold/retrieval), not this measure."""

from __future__ import annotations

from sentfold.measures.base.case import Case
from sentfold.measures.base.scores import CaseScores, ScoreSettings
from sentfold.measures.registry import Text

TITLE = "Retrieval in a collection"
COLUMNS = {"query_id": str, "query": Text, "document_id": str, "document": Text, "relevance": int}
GEOMETRY = False  # a collection can have more documents than the geometry, which compares all pairs, has time for


class Settings(ScoreSettings):
    """Retrieval has no settings of its own."""


def score(case: Case, settings: Settings) -> CaseScores:
    """The number of judgements as a fact, and no scores: a space is scored by the searches in it."""
    return CaseScores(facts={"n": len(case.items["relevance"])})
