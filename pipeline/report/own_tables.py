"""The suite's own tables: every corpus it has, every space it makes, the headline protocols."""

from __future__ import annotations

from pipeline.report.plan import Column, Hero, PanelPlan, Printed, TablePlan
from pipeline.report.results import Results

HERO = Hero(ours="minilm-lp", than="minilm", control="minilm-pca")
MTEB = "cosine, all pairs"
# Panels whose rows are held against another protocol of the same space.
AGAINST = {"MAP of cosine against the search engine's own order": "map.search-engine"}
MEASURES = ("mi", "nmi", "ari", "purity", "v-measure")


# Tables of one kind of corpus each: the task, then the title, what it is about, and panels of (title, protocols).
Kind = tuple[str, str, str, tuple[tuple[str, tuple[str, ...]], ...]]
KINDS: dict[str, Kind] = {
    "classification": (
        "classification",
        "Classification in every space of the suite",
        "No item is scored by a classifier that was fitted on it, but in the last panel, which is there to be "
        "compared with printed figures that look as if they had been made so. A space is scaled as a whole, so that "
        "the median length of its vectors is 1: a penalty would otherwise judge lengths.",
        (
            ("Accuracy of the three nearest neighbours", ("accuracy.3nn-euclidean",)),
            ("Accuracy of logistic regression", ("accuracy.logistic",)),
            ("Training-set scoring of 3-NN: each item among its own neighbours", ("accuracy.3nn-training-set",)),
        ),
    ),
    "paraphrase": (
        "paraphrase",
        "Classification of pairs in every space of the suite",
        "Features of a pair are |u − v| and u ∗ v, as SentEval has them, u and v from the space scaled "
        "as a whole so that their median length is 1. F1 is that of class 1, or of three classes the plain mean.",
        (
            ("Accuracy and F1 of logistic regression", ("accuracy.logistic", "f1.logistic")),
            ("Accuracy and F1 of the three nearest neighbours", ("accuracy.3nn-euclidean", "f1.3nn-euclidean")),
            ("Training-set scoring of 3-NN: each item among its own neighbours", ("accuracy.3nn-training-set",)),
        ),
    ),
    "trained-head": (
        "similarity",
        "Similarity by a trained head in every space of the suite",
        "SentEval's regression on |u − v| and u ∗ v, fitted on training pairs, its strength chosen on development "
        "pairs; the space scaled as a whole so that the median length of its vectors is 1.",
        (("Correlation of the head's scores", ("pearson.trained-head", "spearman.trained-head")),),
    ),
    "clustering": (
        "clustering",
        "Clustering in every space of the suite",
        "k-means with as many clusters as classes, the mean over starts, on vectors as they are: not of unit length. "
        "V-measure is the same number as NMI by the arithmetic mean, and stands here because papers print it.",
        (
            (
                "Agreement with the classes",
                tuple(f"{name}.kmeans" for name in MEASURES),
            ),
        ),
    ),
    "ranking": (
        "ranking",
        "Ranking of candidates in every space of the suite",
        "Mean average precision of ten candidates a query. A query without a relevant candidate counts as 0, for every "
        "method alike. The order in which the search engine gave the candidates is what a method has to beat.",
        (
            ("MAP of cosine", ("map.cosine",)),
            ("MAP of cosine against the search engine's own order", ("map.cosine",)),
            ("MAP of the search engine's own order, the same in every space", ("map.search-engine",)),
        ),
    ),
    "inference": (
        "inference",
        "Entailment against contradiction by a threshold, in every space of the suite",
        "F1 of calling a pair entailed when its cosine passes a threshold; neutral pairs are left out. The mean over "
        "thresholds rewards cosines that are all large, so the best threshold stands beside it.",
        (("F1 over thresholds of cosine", ("mean-f1.cosine", "best-f1.cosine")),),
    ),
}


def own_plans(results: Results) -> dict[str, TablePlan]:
    """Plans of the suite's own tables, those that it has scores for."""
    similar = results.corpora_of("similarity")
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
    for name, (task, title, about, wanted) in KINDS.items():
        panels = [panel for words, protocols in wanted for panel in _panels(results, task, words, protocols)]
        if panels:
            plans[name] = TablePlan(
                source="mteb", table="none", title=title, about=about, spaces=["encoders", "derived", "words"],
                hero=HERO, panels=panels,
            )  # fmt: skip
    return plans


def _panels(results: Results, task: str, title: str, protocols: tuple[str, ...]) -> list[PanelPlan]:
    """A panel of the corpora of a task that have a place for these scores; none without such corpora."""
    columns = [
        Column(corpus=corpus, protocol=protocol, unit="nats" if protocol.startswith("mi.") else "x100")
        for corpus in results.corpora_of(task)
        for protocol in protocols
        if _names(results, corpus, protocol)
    ]
    return [PanelPlan(title=title, columns=columns, against=AGAINST.get(title, ""))] if columns else []


def _names(results: Results, corpus: str, protocol: str) -> bool:
    """Whether any space has a place for this score, be it blank."""
    return any(protocol in results.facts(space, corpus).get("scores", {}) for space in results.suite.spaces)


def _similarity(similar: list[str], correlation: str) -> PanelPlan:
    columns = [Column(corpus=corpus, protocol=f"{correlation}.all.cosine") for corpus in similar]
    # MTEB's Spearman figures name the revision of the model, its Pearson figures do not.
    revision = "; revision 8b3219a92973c328a8e22fadcfa821b5dc75636a" if correlation == "spearman" else ""
    title = f"{correlation.capitalize()} of cosine, all pairs"
    return PanelPlan(title=title, columns=columns, printed=Printed(statement=MTEB + revision))
