"""Classification: accuracy of nearest neighbours and of logistic regression on the vectors of single texts."""

from __future__ import annotations

import numpy as np

from sentfold.measures.base.case import Case
from sentfold.measures.base.rating import CLASSIFIER_SHORT, CLASSIFIER_WORDS, ClassifierSettings, rate_classifiers
from sentfold.measures.base.scores import CaseScores
from sentfold.measures.registry import TaskPanel, TaskTable, Text

TITLE = "Classification"
COLUMNS = {"text": Text, "label": int}
WORDS, SHORT = CLASSIFIER_WORDS, CLASSIFIER_SHORT
TABLES = (
    TaskTable(
        name="classification",
        title="Classification in every space of the suite",
        about="No classifier scores an item that it was fitted on, except in the last panel, which is there for the "
        "comparison with published figures that may have been computed so. A whole space is scaled so that the median "
        "length of its vectors is 1: otherwise a penalty would judge their lengths.",
        panels=(
            TaskPanel("Accuracy of the three nearest neighbours", ("accuracy.3nn-euclidean",)),
            TaskPanel("Accuracy of logistic regression", ("accuracy.logistic",)),
            TaskPanel("Accuracy of a perceptron with one hidden layer", ("accuracy.perceptron",)),
            TaskPanel(
                "Training-set scoring of 3-NN: each item among its own neighbours", ("accuracy.3nn-training-set",)
            ),
        ),
    ),
)


class Settings(ClassifierSettings):
    """The settings of the classifiers."""


def score(case: Case, settings: Settings) -> CaseScores:
    """Accuracy of every classifier. One fact counts the scored items whose text also belongs to a fitted item."""
    texts = np.array(case.items["row"])
    outcome, scored = rate_classifiers(case.scaled[texts], case, settings)
    return outcome.with_facts(scored_texts_also_fitted=int(np.isin(texts[scored], np.delete(texts, scored)).sum()))
