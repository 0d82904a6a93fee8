"""The protocols of each task, applied to one corpus in one space."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.errors import ArtifactError, SolverError
from pipeline.evaluate.bootstrap import (
    item_design,
    make_design,
    sort_once,
    weighted_means,
    weighted_pearson,
    weighted_spearman,
)
from pipeline.evaluate.case import Case
from pipeline.evaluate.classification import pair_features
from pipeline.evaluate.clustering import MEASURES, agreement, cluster, contingency, mean_over_starts
from pipeline.evaluate.inference import best_f1, mean_f1
from pipeline.evaluate.judge_classes import UNCONVERGED, UNFITTED, judge_classification, judge_pairs
from pipeline.evaluate.parameters import EvaluateParameters
from pipeline.evaluate.ranking import average_precisions
from pipeline.evaluate.resample import Judged, describe_design, resample, resampling
from pipeline.evaluate.similarities import cosines, pair_similarities
from pipeline.evaluate.similarity import resample_similarity, score_similarity, subset_scores
from pipeline.evaluate.trained_head import train_head

Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

HEAD_PROTOCOLS = ("pearson.trained-head", "spearman.trained-head")
ENTAILMENT, NEUTRAL = 0, 1  # labels of inference items


def judge(case: Case, parameters: EvaluateParameters, *, pool: Case | str | None = None, fitted: bool = True) -> Judged:
    """Score one space on one corpus by every protocol of the corpus's task.

    pool    the same pairs with their training pairs, for the trained head of a similarity corpus; or why
            there is none; None where no such head is known
    fitted  whether regressions are fitted too; what they would score is blank with its reason if not
    """
    match case.task:
        case "similarity":
            known = pool if fitted or pool is None else UNFITTED
            return judge_similarity(case, parameters).joined(judge_head(case, known, parameters))
        case "classification":
            return judge_classification(case, parameters, fitted=fitted)
        case "paraphrase":
            return judge_pairs(case, parameters, fitted=fitted)
        case "clustering":
            return judge_clustering(case, parameters)
        case "ranking":
            return judge_ranking(case, parameters)
        case "inference":
            return judge_inference(case, parameters)
        case "regression":
            blank = "its pairs train the head of another corpus, where the score stands"
            return Judged(facts={"blank": blank, "n": len(case.items["split"])})
        case _:
            return judge_examples(case)


def judge_similarity(case: Case, parameters: EvaluateParameters) -> Judged:
    """Correlations of similarities with human scores."""
    human, subsets = np.array(case.items["score"], dtype=np.float64), case.items["subset"]
    similarities, undefined = pair_similarities(case.vectors, case.pairs)
    design = make_design(case.notes["resample"], case.pairs, subsets)
    replicates = resample_similarity(similarities, human, subsets, design, **resampling(case, parameters))
    scores = score_similarity(similarities, human, subsets)
    facts = {
        "drawn": describe_design(design),
        "n": len(human),
        "subsets": {
            name: {key: value if key == "n" else round(100 * value, 2) for key, value in found.items()}
            for name, found in subset_scores(similarities["cosine"], human, subsets).items()
        },
        "undefined_cosines": undefined,
    }
    return Judged(scores, {name: replicates[name] for name in scores}, facts)


def judge_head(case: Case, pool: Case | str | None, parameters: EvaluateParameters) -> Judged:
    """SentEval's trained regression, on the test pairs that the corpus and its pool share."""
    if pool is None:
        return Judged()
    if isinstance(pool, str):
        return Judged(dict.fromkeys(HEAD_PROTOCOLS), reasons=dict.fromkeys(HEAD_PROTOCOLS, pool))
    human, splits = np.array(pool.items["score"], dtype=np.float64), pool.items["split"]
    tested = human[np.array(splits) == "test"]
    if not np.array_equal(tested, case.items["score"]):
        raise ArtifactError(
            "a corpus and the one that its head is trained on do not share their test pairs",
            where=f"{case.corpus} and {pool.corpus}",
            expected=f"{len(case.items['score'])} equal scores in one order",
            got=f"{len(tested)} others",
            remedy="let both come from one source: correct pipeline/corpora/catalogue.yaml",
        )
    try:
        head = train_head(pair_features(pool.scaled, pool.pairs), human, splits, strengths=parameters.strengths)
    except SolverError:
        return Judged(dict.fromkeys(HEAD_PROTOCOLS), reasons=dict.fromkeys(HEAD_PROTOCOLS, UNCONVERGED))
    facts = {
        "trained_head": {
            "corpus": pool.corpus,
            "dev_pearson": round(100 * head.dev, 2),
            "fitted_on": splits.count("train"),
            "selected_on": splits.count("dev"),
            "strength": head.strength,
        }
    }
    if np.ptp(head.values) == 0:
        reason = "undefined: the head gives every pair one score"
        return Judged(dict.fromkeys(HEAD_PROTOCOLS), {}, facts, dict.fromkeys(HEAD_PROTOCOLS, reason))
    ranked, ranked_human = [sort_once(head.values)], sort_once(tested)

    def correlations(weights: Float64) -> dict[str, Float64]:
        found = weighted_pearson(head.values, tested, weights), weighted_spearman(ranked, ranked_human, weights)[0]
        return dict(zip(HEAD_PROTOCOLS, found, strict=True))

    design = make_design(case.notes["resample"], case.pairs, case.items["subset"])
    judged = resample(design, correlations, items=len(tested), **resampling(case, parameters))
    return judged.joined(Judged(facts=facts))


def judge_clustering(case: Case, parameters: EvaluateParameters) -> Judged:
    """Agreement of k-means with the classes: the mean over starts, and their spread. Items and starts are drawn."""
    labels, rows = case.labels, np.array(case.items["row"])
    seed, starts = parameters.seed, parameters.kmeans_seeds
    found = cluster(case.vectors, clusters=len(set(labels)), seeds=starts, first_seed=seed)[:, rows]

    def measures(weights: Float64) -> dict[str, Float64]:
        each = [agreement(contingency(labels, clusters, weights)) for clusters in found]
        return {f"{name} {start}": values[name] for start, values in enumerate(each) for name in values}

    design, drawing = item_design([""] * len(labels)), resampling(case, parameters)
    each = resample(design, measures, items=len(labels), **drawing)
    judged, spread = Judged(), {}
    for name in MEASURES:
        scores = np.array([each.scores[f"{name} {start}"] for start in range(starts)], dtype=np.float64)
        replicates = np.array([each.replicates[f"{name} {start}"] for start in range(starts)])
        judged.scores[f"{name}.kmeans"] = float(scores.mean())
        judged.replicates[f"{name}.kmeans"] = mean_over_starts(scores, replicates, seed=drawing["seed"])
        spread[f"{name}.kmeans"] = round(100 * float(np.std(scores, ddof=1)), 2)
    facts = {
        "clusters": len(set(labels)),
        "drawn": describe_design(design) | {"unit": "items and starts"},
        "n": len(labels),
        "seeds": starts,
        "spread_over_seeds": spread,
        "text": case.notes["text"],
        "units": {"mi.kmeans": "nats x 100"},
    }
    return judged.joined(Judged(facts=facts))


def judge_ranking(case: Case, parameters: EvaluateParameters) -> Judged:
    """Mean average precision of cosine, and of the order in which the search engine gave the candidates."""
    cosine, undefined = cosines(case.vectors, case.pairs)
    engine = -np.array(case.items["rank"], dtype=np.float64)
    relevant, queries = np.array(case.items["relevance"]), case.items["query_id"]
    precisions = {
        f"map.{name}": average_precisions(queries, order, relevant, case.items["candidate_id"])
        for name, order in (("cosine", cosine), ("search-engine", engine))
    }
    count = len(precisions["map.cosine"])
    design = item_design([""] * count)

    def means(weights: Float64) -> dict[str, Float64]:
        return {name: weighted_means(values, weights) for name, values in precisions.items()}

    facts = {
        "candidates": len(queries),
        "drawn": {**describe_design(design), "unit": "queries"},
        "n": count,
        "queries_without_relevant": int((precisions["map.search-engine"] == 0).sum()),
        "undefined_cosines": undefined,
    }
    return resample(design, means, items=count, **resampling(case, parameters)).joined(Judged(facts=facts))


def judge_inference(case: Case, parameters: EvaluateParameters) -> Judged:
    """F1 of thresholds on the cosine, entailment against contradiction; neutral pairs are left out."""
    label = np.array(case.items["label"])
    kept = np.flatnonzero(label != NEUTRAL)
    pairs, entailed = case.pairs[kept], label[kept] == ENTAILMENT
    cosine, undefined = cosines(case.vectors, pairs)
    design = make_design(case.notes["resample"], pairs, [""] * len(kept))

    def f1(weights: Float64) -> dict[str, Float64]:
        best, _ = best_f1(cosine, entailed, weights)
        return {"best-f1.cosine": best, "mean-f1.cosine": mean_f1(cosine, entailed, weights)}

    _, threshold = best_f1(cosine, entailed, np.ones((1, len(kept))))
    share = float(entailed.mean())
    facts = {
        "best_threshold": round(float(threshold[0]), 4),
        "constant_f1": round(100 * 2 * share / (1 + share), 2),
        "drawn": describe_design(design),
        "entailed": int(entailed.sum()),
        "left_out": len(label) - len(kept),
        "n": len(kept),
        "thresholds": "0.00 to 0.99 by 0.01",
        "undefined_cosines": undefined,
    }
    return resample(design, f1, items=len(kept), **resampling(case, parameters)).joined(Judged(facts=facts))


def judge_examples(case: Case) -> Judged:
    """Cosines of single pairs beside what a paper printed; nothing to resample."""
    cosine, _ = cosines(case.vectors, case.pairs)
    pairs = [
        {"cosine": round(float(value), 3), "published": printed, "variant": variant}
        for value, printed, variant in zip(cosine, case.items["score"], case.items["subset"], strict=True)
    ]
    return Judged(facts={"n": len(pairs), "pairs": pairs})
