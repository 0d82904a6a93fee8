"""The suite's own tables: every corpus it has, every space it makes, the headline protocols."""

from __future__ import annotations

from pipeline.report.plan import Column, Hero, PanelPlan, Printed, TablePlan
from pipeline.report.results import Results

HERO = Hero(ours="minilm-lp", than="minilm", control="minilm-pca")
MTEB = "cosine, all pairs"


def own_plans(results: Results) -> dict[str, TablePlan]:
    """Plans of the suite's own tables, those that it has corpora for."""
    similar, classified = results.corpora_of("similarity"), results.corpora_of("classification")
    plans = {}
    if similar:
        panels = [_similarity(similar, correlation) for correlation in ("spearman", "pearson")]
        plans["similarity"] = TablePlan(
            source="mteb",
            table="results",
            title="Similarity in every space of the suite",
            about="MTEB's printed results for all-MiniLM-L6-v2 are the referee: the same model, data and protocol.",
            spaces=["encoders", "derived", "words"],
            hero=HERO,
            panels=panels,
        )
    if classified:
        plans["classification"] = TablePlan(
            source="mteb",
            table="none",
            title="Classification in every space of the suite",
            about="No item is scored by a classifier that was fitted on it.",
            spaces=["encoders", "derived", "words"],
            hero=HERO,
            panels=[_accuracy(classified, "3nn-euclidean"), _accuracy(classified, "logistic")],
        )
    return plans


def _similarity(corpora: list[str], correlation: str) -> PanelPlan:
    columns = [Column(corpus=corpus, protocol=f"{correlation}.all.cosine") for corpus in corpora]
    # MTEB's Spearman figures name the revision of the model, its Pearson figures do not.
    revision = "; revision 8b3219a92973c328a8e22fadcfa821b5dc75636a" if correlation == "spearman" else ""
    title = f"{correlation.capitalize()} of cosine, all pairs"
    return PanelPlan(title=title, columns=columns, printed=Printed(statement=MTEB + revision))


def _accuracy(corpora: list[str], classifier: str) -> PanelPlan:
    columns = [Column(corpus=corpus, protocol=f"accuracy.{classifier}") for corpus in corpora]
    words = {"3nn-euclidean": "the three nearest neighbours", "logistic": "logistic regression"}[classifier]
    return PanelPlan(title=f"Accuracy of {words}", columns=columns)
