"""Inference: how well one threshold on the cosine separates entailment from contradiction."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sentfold.compare.bootstrap import make_design
from sentfold.measures.base.case import Case
from sentfold.measures.base.pairs import cosines
from sentfold.measures.base.scores import CaseScores, ScoreSettings, blank, resample
from sentfold.measures.registry import TaskPanel, TaskTable, Text

Float64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

ENTAILMENT, NEUTRAL = 0, 1  # labels of the items; 2 is contradiction
THRESHOLDS = np.arange(100) / 100  # 0.00 to 0.99: below 0 only trivial decisions remain (docs/protocols.md)

TITLE = "Inference"
COLUMNS = {"premise": Text, "hypothesis": Text, "label": int}
WORDS = {"mean-f1": "mean F1 over thresholds", "best-f1": "best F1 over thresholds"}
SHORT: dict[str, str] = {}
TABLES = (
    TaskTable(
        name="inference",
        title="Entailment against contradiction by a threshold, in every space of the suite",
        about="F1 of the decision that a pair is entailed if its cosine passes a threshold; neutral pairs are left "
        "out. The mean over thresholds rewards cosines that are all large, so the best threshold is shown too.",
        panels=(TaskPanel("F1 over thresholds of cosine", ("mean-f1.cosine", "best-f1.cosine")),),
    ),
)


class Settings(ScoreSettings):
    """Inference has no settings of its own."""


def score(case: Case, settings: Settings) -> CaseScores:
    """F1 of thresholds on the cosine, entailment against contradiction."""
    label = np.array(case.items["label"])
    kept = np.flatnonzero(label != NEUTRAL)
    if not len(kept):
        return blank(("best-f1.cosine", "mean-f1.cosine"), "undefined: every pair is neutral")
    pairs, entailed = case.pairs[kept], label[kept] == ENTAILMENT
    cosine, undefined = cosines(case.vectors, pairs)

    def f1(weights: Float64) -> dict[str, Float64]:
        best, _ = best_f1(cosine, entailed, weights)
        return {"best-f1.cosine": best, "mean-f1.cosine": mean_f1(cosine, entailed, weights)}

    _, threshold = best_f1(cosine, entailed, np.ones((1, len(kept))))
    share = float(entailed.mean())
    design = make_design(case.notes["resample"], pairs, [""] * len(kept))
    return resample(case, settings, design, f1).with_facts(
        best_threshold=round(float(threshold[0]), 4),
        constant_f1=round(100 * 2 * share / (1 + share), 2),
        entailed=int(entailed.sum()),
        left_out=len(label) - len(kept),
        n=len(kept),
        thresholds="0.00 to 0.99 by 0.01",
        undefined_cosines=undefined,
    )


def positive_pairs(case: Case) -> tuple[str, npt.NDArray[np.int64]]:
    """Premises with the hypotheses that they entail."""
    return "entailment", case.pairs[np.array(case.items["label"]) == ENTAILMENT]


def mean_f1(cosine: Float64, entailed: Bools, weights: Float64) -> Float64:
    """(b,) F1 of `cosine >= t`, averaged over the thresholds t = 0.00, 0.01 ... 0.99.

    cosine, entailed  (m,); weights: (b, m)
    F1 is 0 where no pair is entailed and none passes. This score rewards cosines that are all large; best_f1 does not.
    """
    place = np.searchsorted(THRESHOLDS, cosine, side="right")  # number of thresholds that each cosine passes
    passed = [_tails(place, weights * side) for side in (entailed, ~entailed)]
    positives = (weights * entailed).sum(axis=1, keepdims=True)
    f1: Float64 = _f1(passed[0], passed[1], positives).mean(axis=1)
    return f1


def best_f1(cosine: Float64, entailed: Bools, weights: Float64) -> tuple[Float64, Float64]:
    """(b,) the largest F1 that any threshold gives on these same pairs, and (b,) that threshold.

    The threshold is the smallest cosine that passes. Each resample chooses its own threshold, because the
    score is the F1 of the best threshold, with the optimism of this choice.
    """
    order = np.argsort(-cosine, kind="stable")
    ordered = cosine[order]
    last = np.append(ordered[1:] != ordered[:-1], True)  # no threshold separates equal cosines
    drawn = weights[:, order]
    right = np.cumsum(drawn * entailed[order], axis=1)
    wrong = np.cumsum(drawn * ~entailed[order], axis=1)
    f1 = _f1(right[:, last], wrong[:, last], right[:, -1:])
    best = f1.argmax(axis=1)
    return f1[np.arange(len(f1)), best], ordered[last][best]


def _tails(place: npt.NDArray[np.int64], weights: Float64) -> Float64:
    """(b, 100) weight of the pairs that pass each threshold."""
    bins = len(THRESHOLDS) + 1
    counts = np.array([np.bincount(place, weights=row, minlength=bins) for row in weights])
    tails: Float64 = counts[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
    return tails


def _f1(right: Float64, wrong: Float64, positives: Float64) -> Float64:
    size = right + wrong + positives
    f1: Float64 = 2 * right / np.where(size > 0, size, 1.0)
    return f1
