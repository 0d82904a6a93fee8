"""Example: cosines of a few pairs that a paper prints, next to the printed values."""

from __future__ import annotations

from sentfold.measures.base.case import Case
from sentfold.measures.base.pairs import cosines
from sentfold.measures.base.scores import CaseScores, ScoreSettings
from sentfold.measures.registry import Text

TITLE = "Examples"
COLUMNS = {"sentence1": Text, "sentence2": Text, "score": float, "subset": str}
GEOMETRY = False  # a few sentences are too few to describe a geometry


class Settings(ScoreSettings):
    """Examples have no settings of their own."""


def score(case: Case, settings: Settings) -> CaseScores:
    """The cosines as facts; nothing is resampled, so there are no scores."""
    cosine, _ = cosines(case.vectors, case.pairs)
    pairs = [
        {"cosine": round(float(value), 3), "published": printed, "variant": variant}
        for value, printed, variant in zip(cosine, case.items["score"], case.items["subset"], strict=True)
    ]
    return CaseScores(facts={"n": len(pairs), "pairs": pairs})
