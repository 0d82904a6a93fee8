"""Similarity: correlation of similarities with human scores, in every protocol that papers have used.

A protocol is named `<correlation>.<aggregation>.<similarity>`:
correlation  spearman (rank) or pearson
aggregation  all: one correlation over all pairs; mean: the plain mean of the subsets' correlations; wmean: their mean
             weighted by numbers of pairs
similarity   cosine has all of these protocols; every other similarity of pair_similarities has only
             `spearman.all.<similarity>`
Two more protocols score SentEval's trained head, where the corpus has training pairs: `<correlation>.trained-head`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.compare.bootstrap import Design, draw_weights, make_design, sort_once, weighted_pearson, weighted_spearman
from sentfold.errors import ArtifactError, ParameterError, SolverError
from sentfold.measures.base.case import Case, most_alike
from sentfold.measures.base.classifiers import Strengths
from sentfold.measures.base.logistic import Features, fit_logistic, prepare_features
from sentfold.measures.base.newton import forward
from sentfold.measures.base.pairs import BETAS, pair_features, pair_similarities, varies
from sentfold.measures.base.rating import UNCONVERGED, UNFITTED
from sentfold.measures.base.scores import CaseScores, ScoreSettings, blank, describe_design, resample, seed_of
from sentfold.measures.registry import TaskPanel, TaskTable, Text

Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_BINS = 1000
HEAD_PROTOCOLS = ("pearson.trained-head", "spearman.trained-head")

TITLE = "Similarity"
COLUMNS = {"sentence1": Text, "sentence2": Text, "score": float, "subset": str}
WORDS = {
    "spearman": "Spearman",
    "pearson": "Pearson",
    "all": "all pairs",
    "mean": "mean over subsets",
    "wmean": "mean over subsets weighted by pairs",
    "dot": "inner product",
    "euclidean": "negative Euclidean distance",
    "manhattan": "negative Manhattan distance",
    "abs-cosine": "absolute cosine",
    **{f"lorentz-{beta:g}": f"Lorentzian similarity, β = {beta:g}" for beta in BETAS},
    "trained-head": "a trained head",
}
# Short names of the similarities other than cosine, for narrow columns.
SHORT = {
    "dot": "inner product",
    "euclidean": "−Euclidean",
    "manhattan": "−Manhattan",
    "abs-cosine": "|cosine|",
    **{f"lorentz-{beta:g}": f"Lorentz {beta:g}" for beta in BETAS},
}
TABLES = (
    TaskTable(
        name="similarity",
        title="Similarity in every space of the suite",
        about="",
        panels=(
            TaskPanel("Spearman of cosine, all pairs", ("spearman.all.cosine",)),
            TaskPanel("Pearson of cosine, all pairs", ("pearson.all.cosine",)),
        ),
    ),
    TaskTable(
        name="trained-head",
        title="Similarity by a trained head in every space of the suite",
        about="SentEval's regression on |u − v| and u ∗ v, fitted on training pairs, its strength chosen on "
        "development pairs. A whole space is scaled so that the median length of its vectors is 1.",
        panels=(TaskPanel("Correlation of the head's scores", HEAD_PROTOCOLS),),
    ),
)


class Settings(ScoreSettings):
    """strengths: candidate values of C for the trained head, ascending; the development pairs choose one."""

    strengths: Strengths = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


def score(case: Case, settings: Settings) -> CaseScores:
    """Correlations with human scores: of the similarities, and of the trained head if the corpus has a head."""
    human, subsets = np.array(case.items["score"], dtype=np.float64), case.items["subset"]
    similarities, undefined = pair_similarities(case.vectors, case.pairs)
    design = make_design(case.notes["resample"], case.pairs, subsets)
    drawing = {"resamples": settings.resamples, "seed": seed_of(case, settings)}
    replicates = resample_similarity(similarities, human, subsets, design, **drawing)
    scores = score_similarity(similarities, human, subsets)
    facts = {
        "drawn": describe_design(design),
        "n": len(human),
        "subsets": {
            name: {key: value if key == "n" else round(100 * value, 2) for key, value in part.items()}
            for name, part in subset_scores(similarities["cosine"], human, subsets).items()
        },
        "undefined_cosines": undefined,
    }
    return CaseScores(scores, {name: replicates[name] for name in scores}, facts).joined(score_head(case, settings))


def positive_pairs(case: Case) -> tuple[str, Ints]:
    """The pairs that people find most alike."""
    return most_alike(case)


# --- correlations --------------------------------------------------------------------------------


def score_similarity(similarities: dict[str, Float64], human: Float64, subsets: list[str]) -> dict[str, float | None]:
    """Every protocol's score, in [-1, 1]; None where it is undefined.

    similarities  {name: (m,)}, `cosine` among them; human: (m,)
    subsets       (m,) names, all empty where the source gives none
    """
    parts = _parts(subsets)
    scores: dict[str, float | None] = {}
    cosine = similarities["cosine"]
    for name in ("spearman", "pearson"):
        scores[f"{name}.all.cosine"] = _correlate(name, cosine, human)
        if parts:
            each = [_correlate(name, cosine[part], human[part]) for part in parts.values()]
            values = np.array([np.nan if value is None else value for value in each])
            sizes = [len(part) for part in parts.values()]
            scores[f"{name}.mean.cosine"] = _defined(np.mean(values))
            scores[f"{name}.wmean.cosine"] = _defined(np.average(values, weights=sizes))
    for name, values in similarities.items():
        scores[f"spearman.all.{name}"] = _correlate("spearman", values, human)
    return scores


def subset_scores(cosine: Float64, human: Float64, subsets: list[str]) -> dict[str, dict[str, float]]:
    """n, Spearman and Pearson of each named subset in which the cosines and the human scores vary."""
    described: dict[str, dict[str, float]] = {}
    for name, part in _parts(subsets).items():
        correlations = {one: _correlate(one, cosine[part], human[part]) for one in ("spearman", "pearson")}
        defined = {one: value for one, value in correlations.items() if value is not None}
        if len(defined) == 2:
            described[name] = {"n": len(part), **defined}
    return described


def resample_similarity(
    similarities: dict[str, Float64], human: Float64, subsets: list[str], design: Design, *, resamples: int, seed: int
) -> dict[str, Float64]:
    """(resamples,) replicate scores of every protocol. Cost O(resamples m) per protocol."""
    parts = _parts(subsets)
    cosine = similarities["cosine"]
    everything = [sort_once(values) for values in similarities.values()], sort_once(human)
    by_part = {name: ([sort_once(cosine, part)], sort_once(human, part)) for name, part in parts.items()}
    collected: dict[str, list[Float64]] = {}
    for weights in draw_weights(design, resamples=resamples, seed=seed):
        chunk = {"pearson.all.cosine": weighted_pearson(cosine, human, weights)}
        for name, values in zip(similarities, weighted_spearman(*everything, weights), strict=True):
            chunk[f"spearman.all.{name}"] = values
        if parts:
            sizes = np.array([weights[:, part].sum(axis=1) for part in parts.values()])
            each = {
                "spearman": [weighted_spearman(*ranked, weights)[0] for ranked in by_part.values()],
                "pearson": [weighted_pearson(cosine, human, weights, part) for part in parts.values()],
            }
            for name, columns in each.items():
                chunk[f"{name}.mean.cosine"] = np.mean(columns, axis=0)
                chunk[f"{name}.wmean.cosine"] = (np.array(columns) * sizes).sum(axis=0) / sizes.sum(axis=0)
        for name, values in chunk.items():
            collected.setdefault(name, []).append(values)
    return {name: np.concatenate(columns) for name, columns in collected.items()}


def _parts(subsets: list[str]) -> dict[str, Ints]:
    """Rows of each subset by name; empty if the source names no subsets, or only one."""
    names = np.array(subsets)
    distinct = sorted(set(subsets))
    return {name: np.flatnonzero(names == name) for name in distinct} if len(distinct) > 1 else {}


def _correlate(name: str, x: Float64, y: Float64) -> float | None:
    from scipy import stats  # slow to import, and a check of parameters does not need it

    if len(x) < 2 or not (varies(x) and varies(y)):
        return None
    result = stats.spearmanr(x, y) if name == "spearman" else stats.pearsonr(x, y)
    return _defined(result.statistic)


def _defined(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


# --- the trained head ----------------------------------------------------------------------------


@dataclass(frozen=True)
class TrainedHead:
    """The scores that a trained head gives to the test pairs.

    values    (m,) on the human scale
    strength  the chosen regularisation
    dev       Pearson on the development pairs with this strength
    """

    values: Float64
    strength: float
    dev: float


def score_head(case: Case, settings: Settings) -> CaseScores:
    """SentEval's trained regression, scored on the test pairs that the corpus shares with its training corpus.

    Raises ArtifactError if the two corpora do not have the same test pairs.
    """
    pool = case.training if case.fitted or case.training is None else UNFITTED
    if pool is None:
        return CaseScores()
    if isinstance(pool, str):
        return blank(HEAD_PROTOCOLS, pool)
    human, splits = np.array(pool.items["score"], dtype=np.float64), pool.items["split"]
    tested = human[np.array(splits) == "test"]
    _check_test_pairs(case, pool, tested)
    try:
        head = train_head(pair_features(pool.scaled, pool.pairs), human, splits, strengths=settings.strengths)
    except SolverError:
        return blank(HEAD_PROTOCOLS, UNCONVERGED)
    trained = {
        "corpus": pool.corpus,
        "dev_pearson": round(100 * head.dev, 2),
        "fitted_on": splits.count("train"),
        "selected_on": splits.count("dev"),
        "strength": head.strength,
    }
    if np.ptp(head.values) == 0:
        constant = blank(HEAD_PROTOCOLS, "undefined: the head gives every pair one score")
        return constant.with_facts(trained_head=trained)
    ranked, ranked_human = [sort_once(head.values)], sort_once(tested)

    def correlations(weights: Float64) -> dict[str, Float64]:
        both = weighted_pearson(head.values, tested, weights), weighted_spearman(ranked, ranked_human, weights)[0]
        return dict(zip(HEAD_PROTOCOLS, both, strict=True))

    design = make_design(case.notes["resample"], case.pairs, case.items["subset"])
    return resample(case, settings, design, correlations).with_facts(trained_head=trained)


def train_head(
    x: npt.NDArray[np.float32], human: Float64, splits: list[str], *, strengths: Sequence[float]
) -> TrainedHead:
    """Fit a softmax over the bins of the human scale on `train`, choose its strength on `dev`, predict `test`.

    x      (n, 2 d) pair features; human: (n,) scores; splits: (n,) train, dev or test
    A score between two whole numbers becomes a distribution over these two numbers, whose mean is the score (Tai et
    al. 2015, eq. 15). The bins are the whole numbers from the lowest to the highest train score. The strength is
    chosen by Pearson. The loss is Tai's cross-entropy; SentEval's code uses the squared error and stops early on dev.
    Raises ParameterError for more than 1,000 bins, and if there are no pairs of train or of dev.
    """
    names = np.array(splits)
    train, dev, test = (np.flatnonzero(names == name) for name in ("train", "dev", "test"))
    if not len(train) or not len(dev):
        raise ParameterError(
            "a trained head needs pairs of train and of dev",
            where="split",
            expected="both splits among the training pairs",
            got=", ".join(sorted(set(splits))) or "no pairs",
        )
    lowest, highest = float(np.floor(human[train].min())), float(np.ceil(human[train].max()))
    if not highest - lowest < MOST_BINS:
        raise ParameterError(
            "the scale of the human scores is too long for a trained head",
            where="score",
            expected=f"at most {MOST_BINS} whole numbers from the lowest to the highest score",
            got=f"{lowest:g} to {highest:g}",
        )
    bins = np.arange(lowest, highest + 1)
    features = prepare_features(x)
    fitted = Features(features.z[train], features.scale)
    everyone = np.ones((len(train), 1))
    coefficients = fit_logistic(fitted, spread_over_bins(human[train], bins), everyone, strengths)[:, 0]
    tried = expected_values(forward(features.z[dev], coefficients), bins)
    pearson = [-1.0 if (one := _correlate("pearson", values, human[dev])) is None else one for values in tried.T]
    best = int(np.round(pearson, 6).argmax())
    logits = forward(features.z[test], coefficients[best : best + 1])
    return TrainedHead(expected_values(logits, bins)[:, 0], float(strengths[best]), pearson[best])


def spread_over_bins(scores: Float64, bins: Float64) -> Float64:
    """(n, c) each score as shares of the two bins around it; bins are consecutive whole numbers; rows sum to 1."""
    shares: Float64 = np.maximum(1.0 - np.abs(scores[:, None] - bins[None, :]), 0.0)
    return shares


def expected_values(logits: Float64, bins: Float64) -> Float64:
    """(m, q) mean of the bins under the softmax of (m, q, c) logits."""
    powers = np.exp(logits - logits.max(axis=2, keepdims=True))
    values: Float64 = (powers @ bins) / powers.sum(axis=2)
    return values


def _check_test_pairs(case: Case, pool: Case, tested: Float64) -> None:
    if not np.array_equal(tested, case.items["score"]):
        raise ArtifactError(
            "a corpus and its training corpus do not have the same test pairs",
            where=f"{case.corpus} and {pool.corpus}",
            expected=f"{len(case.items['score'])} human scores, the same in both, in the same order",
            got=f"{len(tested)} human scores that differ",
            remedy="use one source for both corpora: correct pipeline/catalogue.yaml",
        )
