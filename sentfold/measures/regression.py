"""Regression: pairs with human scores that train the head of another corpus. They have no score of their own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sentfold.measures.base.case import Case, most_alike
from sentfold.measures.base.scores import CaseScores, ScoreSettings
from sentfold.measures.registry import Text

TITLE = "Training pairs of similarity"
COLUMNS = {"sentence1": Text, "sentence2": Text, "score": float, "subset": str}


class Settings(ScoreSettings):
    """Training pairs have no settings of their own."""


def score(case: Case, settings: Settings) -> CaseScores:
    """No scores: a fact says where the score of the head is."""
    return CaseScores(
        facts={
            "blank": "its pairs train the head of another corpus, where the score stands",
            "n": len(case.items["split"]),
        }
    )


def positive_pairs(case: Case) -> tuple[str, npt.NDArray[np.int64]]:
    """The pairs that people find most alike."""
    return most_alike(case)
