"""The facts of a space's geometry on one corpus."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.artifacts import Vectors
from pipeline.evaluate.case import Case
from pipeline.evaluate.geometry import (
    alignment,
    effective_rank,
    hubness,
    mean_cosine,
    sample_rows,
    squared_distances,
    trustworthiness,
    uniformity,
    unit_rows,
)
from pipeline.evaluate.parameters import EvaluateParameters

POSITIVE_SHARE = 0.8  # of the highest human score: 4 of 5, as usual for STS


def describe_geometry(case: Case, parameters: EvaluateParameters, *, source: Vectors | None = None) -> dict[str, Any]:
    """Alignment, uniformity, anisotropy and hubness of a space on one corpus, JSON-able, rounded.

    source  (n, d) vectors of the encoder's own space, for a space made from it: adds trustworthiness and
            continuity. Distances are between unit vectors, since cosine is what the spaces are judged by
    The sample is of distinct sentences; every pair of the sample counts, whoever paired them.
    """
    rows = sample_rows(len(case.vectors), at_most=parameters.geometry_sample, seed=parameters.seed)
    k = parameters.geometry_neighbors
    unit = unit_rows(case.vectors[rows])
    lengths = np.linalg.norm(case.vectors[rows].astype(np.float64), axis=1)
    squared = squared_distances(unit)
    enough = len(rows) > 3 * k
    facts = {
        "effective_rank": round(effective_rank(case.vectors[rows]), 1),
        "hubness": round(hubness(squared, k), 3) if enough else None,
        "length_mean": round(float(lengths.mean()), 4),
        "length_sd": round(float(lengths.std()), 4),
        "mean_cosine": round(mean_cosine(unit), 4),
        "neighbors": k,
        "sampled": len(rows),
        "sentences": len(case.vectors),
        "uniformity": round(uniformity(unit), 3),
        "uniformity_pairs": f"all {len(rows) * (len(rows) - 1) // 2} pairs of the sampled distinct sentences",
        **_alignment(case),
    }
    if source is not None and enough:
        before = squared_distances(unit_rows(source[rows]))
        facts["trustworthiness"] = round(trustworthiness(before, squared, k), 4)
        facts["continuity"] = round(trustworthiness(squared, before, k), 4)
    return facts


def _alignment(case: Case) -> dict[str, Any]:
    kind, pairs = _positive_pairs(case)
    if not len(pairs):
        return {"alignment": None, "alignment_pairs": kind}
    texts, places = np.unique(pairs, return_inverse=True)
    value = alignment(unit_rows(case.vectors[texts]), places.reshape(pairs.shape))
    return {"alignment": round(value, 4), "alignment_pairs": f"{len(pairs)}: {kind}"}


def _positive_pairs(case: Case) -> tuple[str, npt.NDArray[np.int64]]:
    items, none = case.items, np.empty((0, 2), dtype=np.int64)
    match case.task:
        case "similarity" | "regression":
            human = np.array(items["score"], dtype=np.float64)
            least = POSITIVE_SHARE * human.max()
            return f"human score >= {least:g}", case.pairs[human >= least]
        case "inference":
            return "entailment", case.pairs[np.array(items["label"]) == 0]
        case "paraphrase" if len(set(items["label"])) == 2:
            return "paraphrases", case.pairs[np.array(items["label"]) == 1]
        case "ranking":
            return "relevant candidates", case.pairs[np.array(items["relevance"]) == 1]
    return f"none: no positive pairs in a corpus for {case.task}", none
