"""Protocols in words, and what they are called in a narrow column."""

from __future__ import annotations

WORDS = {
    "spearman": "Spearman",
    "pearson": "Pearson",
    "accuracy": "accuracy",
    "f1": "F1",
    "map": "MAP",
    "mi": "mutual information",
    "nmi": "normalised mutual information",
    "ari": "adjusted Rand index",
    "purity": "purity",
    "v-measure": "V-measure",
    "mean-f1": "mean F1 over thresholds",
    "best-f1": "best F1 over thresholds",
    "all": "all pairs",
    "mean": "mean over subsets",
    "wmean": "mean over subsets weighted by pairs",
    "dot": "inner product",
    "euclidean": "negative Euclidean distance",
    "manhattan": "negative Manhattan distance",
    "abs-cosine": "absolute cosine",
    "3nn-euclidean": "Euclidean 3-NN",
    "3nn-training-set": "Euclidean 3-NN, training-set scoring",
    "logistic": "logistic regression",
    "trained-head": "a trained head",
    "kmeans": "k-means",
    "search-engine": "the search engine's own order",
    "mixed": "unlike protocols",
}
SHORT = {"mi": "MI", "nmi": "NMI", "ari": "ARI", "purity": "purity", "f1": "F1", "map": "MAP"}


def protocol_words(protocol: str) -> str:
    """A protocol in words: "spearman.all.cosine" is "Spearman of cosine, all pairs"."""
    parts = [_word(part) for part in protocol.split(".", 2)]  # the last may hold a point: lorentz-0.01
    if len(parts) == 3:
        return f"{parts[0]} of {parts[2]}, {parts[1]}"
    return f"{parts[0]} of {parts[1]}" if len(parts) == 2 else parts[0]


def _word(part: str) -> str:
    if part.startswith("lorentz-"):
        return f"Lorentzian similarity, β = {part.removeprefix('lorentz-')}"
    return WORDS.get(part, part)


def short_metric(protocol: str) -> str:
    """The metric of a protocol as a column's head has room for, e.g. "NMI"."""
    metric = protocol.partition(".")[0]
    return SHORT.get(metric, metric)
