"""Classification protocols, applied to one corpus in one space, whose vectors are of length 1 by their median."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import numpy.typing as npt

from pipeline.errors import SolverError
from pipeline.evaluate.bootstrap import item_design, make_design
from pipeline.evaluate.case import Case
from pipeline.evaluate.classification import pair_features, predict_by_logistic
from pipeline.evaluate.folds import scheme_of
from pipeline.evaluate.nearest import Predictions, predict_by_neighbors, predict_training_set
from pipeline.evaluate.newton import STEPS
from pipeline.evaluate.parameters import EvaluateParameters
from pipeline.evaluate.rates import accuracies, f1_scores
from pipeline.evaluate.resample import Judged, describe_design, resample, resampling

Float64 = npt.NDArray[np.float64]

UNFITTED = "no regression is fitted on this space: params.yaml, evaluate.unfitted"
UNCONVERGED = f"the regression did not converge in {STEPS} Newton steps"


def judge_classification(case: Case, parameters: EvaluateParameters, *, fitted: bool = True) -> Judged:
    """Accuracy of nearest neighbours and, if `fitted`, of logistic regression on the vectors of single texts."""
    texts = np.array(case.items["row"])
    predictions = _predict(case.scaled[texts], case, parameters, fitted=fitted)
    scored = predictions["3nn"].items
    repeated = int(np.isin(texts[scored], np.delete(texts, scored)).sum())
    judged = _rate(case, predictions, parameters, with_f1=False, missing=UNCONVERGED if fitted else UNFITTED)
    return judged.joined(Judged(facts={"scored_texts_also_fitted": repeated}))


def judge_pairs(case: Case, parameters: EvaluateParameters, *, fitted: bool = True) -> Judged:
    """Accuracy and F1 of the same classifiers on the features |u - v|, u * v of pairs of texts."""
    predictions = _predict(pair_features(case.scaled, case.pairs), case, parameters, fitted=fitted)
    judged = _rate(case, predictions, parameters, with_f1=True, missing=UNCONVERGED if fitted else UNFITTED)
    kind = "of class 1" if len(set(case.items["label"])) == 2 else "plain mean over the classes"
    return judged.joined(Judged(facts={"f1": kind, "features": "|u - v|, u * v"}))


def _predict(
    x: npt.NDArray[np.float32], case: Case, parameters: EvaluateParameters, *, fitted: bool
) -> dict[str, Predictions]:
    labels, splits, k = case.labels, case.items["split"], parameters.knn_neighbors
    folds = {"folds": parameters.folds, "seed": parameters.seed}
    found = {
        "3nn": predict_by_neighbors(x, labels, splits, k=k, **folds),
        "3nn-training-set": predict_training_set(x, labels, splits, k=k),
    }
    if fitted:
        with suppress(SolverError):
            found["logistic"] = predict_by_logistic(
                x, labels, splits, inner_folds=parameters.inner_folds, strengths=parameters.strengths, **folds
            )
    return found


def _rate(
    case: Case, predictions: dict[str, Predictions], parameters: EvaluateParameters, *, with_f1: bool, missing: str
) -> Judged:
    """Accuracy, and F1 if asked for, of every classifier, each on the items that it predicted.

    missing  why there is no logistic regression, where there is none
    """
    k, labels = parameters.knn_neighbors, case.labels
    names = {"3nn": f"{k}nn-euclidean", "3nn-training-set": f"{k}nn-training-set", "logistic": "logistic"}
    judged = Judged()
    for name, said in reversed(predictions.items()):
        judged = judged.joined(_rate_one(case, said, names[name], parameters, with_f1=with_f1))
    blank = [] if "logistic" in predictions else ["accuracy.logistic", *(["f1.logistic"] if with_f1 else [])]
    judged = judged.joined(Judged(dict.fromkeys(blank), reasons=dict.fromkeys(blank, missing)))
    scored = predictions["3nn"].items
    chosen = predictions["logistic"].strengths if "logistic" in predictions else ()
    facts = {
        "fitted_for_training_set": len(predictions["3nn-training-set"].items),
        "majority": round(100 * float(np.bincount(labels[scored]).max() / len(scored)), 2),
        "n": len(scored),
        "scheme": scheme_of(case.items["split"], parameters.folds),
        "strengths": {f"{value:g}": chosen.count(value) for value in sorted(set(chosen))},
    }
    return judged.joined(Judged(facts=facts))


def _rate_one(case: Case, said: Predictions, name: str, parameters: EvaluateParameters, *, with_f1: bool) -> Judged:
    labels, predicted = case.labels[said.items], said.predicted
    blank = [""] * len(labels)
    paired = "row1" in case.items
    design = make_design(case.notes["resample"], case.pairs[said.items], blank) if paired else item_design(blank)

    def rates(weights: Float64) -> dict[str, Float64]:
        found = {f"accuracy.{name}": accuracies(labels, predicted, weights)}
        return found | ({f"f1.{name}": f1_scores(labels, predicted, weights)} if with_f1 else {})

    judged = resample(design, rates, items=len(labels), **resampling(case, parameters))
    return judged.joined(Judged(facts={"drawn": describe_design(design)}))
