"""Paraphrase: accuracy and F1 of classifiers on the features |u - v|, u * v of pairs of texts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sentfold.measures.base.case import Case
from sentfold.measures.base.pairs import pair_features
from sentfold.measures.base.rating import CLASSIFIER_SHORT, CLASSIFIER_WORDS, ClassifierSettings, rate_classifiers
from sentfold.measures.base.scores import CaseScores
from sentfold.measures.registry import TaskPanel, TaskTable, Text

TITLE = "Classification of pairs"
COLUMNS = {"sentence1": Text, "sentence2": Text, "label": int}
WORDS, SHORT = CLASSIFIER_WORDS, CLASSIFIER_SHORT
TABLES = (
    TaskTable(
        name="paraphrase",
        title="Classification of pairs in every space of the suite",
        about="Features of a pair are |u − v| and u ∗ v, as SentEval has them. A whole space is scaled so that the "
        "median length of its vectors is 1. F1 is that of class 1, or of three classes the plain mean.",
        panels=(
            TaskPanel("Accuracy and F1 of logistic regression", ("accuracy.logistic", "f1.logistic")),
            TaskPanel("Accuracy of a perceptron with one hidden layer", ("accuracy.perceptron",)),
            TaskPanel(
                "Accuracy and F1 of the three nearest neighbours", ("accuracy.3nn-euclidean", "f1.3nn-euclidean")
            ),
            TaskPanel(
                "Training-set scoring of 3-NN: each item among its own neighbours", ("accuracy.3nn-training-set",)
            ),
        ),
    ),
)


class Settings(ClassifierSettings):
    """The settings of the classifiers."""


def score(case: Case, settings: Settings) -> CaseScores:
    """Accuracy and F1 of every classifier."""
    outcome, _ = rate_classifiers(pair_features(case.scaled, case.pairs), case, settings, with_f1=True)
    kind = "of class 1" if len(set(case.items["label"])) == 2 else "plain mean over the classes"
    return outcome.with_facts(f1=kind, features="|u - v|, u * v")


def positive_pairs(case: Case) -> tuple[str, npt.NDArray[np.int64]]:
    """The pairs that are paraphrases; no pairs if there are more than two classes."""
    labels = np.array(case.items["label"])
    if len(set(case.items["label"])) != 2:
        return "", case.pairs[:0]
    return "paraphrases", case.pairs[labels == 1]
