"""How far a difference of accuracies moves when single texts have another label: some texts vote for many others."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.decision.folds import FoldPlan
from sentfold.decision.tasks import LabelsTask, Task, most_frequent

Floating = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]

DRAWS = 12  # other labels that each text is given, one at a time


def spread_of_labels(task: Task, plan: FoldPlan, *spaces: Floating, seed: int) -> float:
    """The standard deviation that the chance in the labels makes, in points: of an accuracy, or a difference of two.

    0 for other tasks than labels.

    Half the sum, over the texts, of the mean square of the change that follows when one text has the label of one of
    its neighbours. Resamples of items do not show this spread: few texts that are neighbours of many (hubs) decide many
    items together. Texts of one group get their label together. Texts that vote and are not judged, those of the train
    part of a split, count too: other labels there would give another difference.
    Cost: that of the measurement once more. Source: Efron & Stein 1981, doi:10.1214/aos/1176345462
    """
    if not isinstance(task, LabelsTask):
        return 0.0
    groups, labels = task.groups, task.labels
    tests = [fold.test for folds in plan.repeats for fold in folds]
    voters = [
        [task.voters(space, fold.train, fold.test) for folds in plan.repeats for fold in folds] for space in spaces
    ]
    others = _labels_of_neighbors(tests, voters, labels, groups, seed)
    changes = np.zeros(others.shape)
    is_split = len(plan.repeats[0]) == 1
    for sign, of_space in zip((-1.0, 1.0), voters, strict=False):
        for test, found in zip(tests, of_space, strict=True):
            _add_voters_changes(changes, sign, found, test, labels, groups, others)
            if not is_split:  # else resamples of the items show it
                _add_own_changes(changes, sign, found, test, labels, groups, others)
    changes /= len(plan.judged) * len(plan.repeats)
    return 100 * float(np.sqrt(0.5 * (changes**2).sum(axis=0).mean()))


def _labels_of_neighbors(tests: list[Ints], voters: list[list[Ints]], labels: Ints, groups: Ints, seed: int) -> Ints:
    """(groups, DRAWS) labels, each that of a random neighbour of a text of the group, in any space.

    Of texts that are not judged the neighbours are those for which they vote.
    """
    asked = np.concatenate(
        [test.repeat(found.shape[1]) for one in voters for test, found in zip(tests, one, strict=True)]
    )
    voting = np.concatenate([found.ravel() for one in voters for found in one])
    alone = ~np.isin(groups[voting], groups[asked])
    texts = np.concatenate([groups[asked], groups[voting[alone]]])
    near = labels[np.concatenate([voting, asked[alone]])]
    order = np.argsort(texts, kind="stable")
    counts = np.bincount(texts, minlength=int(groups.max()) + 1)
    ends = np.cumsum(counts)
    places = np.random.default_rng([seed, len(labels)]).random((len(counts), DRAWS))
    return np.asarray(near[order[(ends[:, None] - 1 - np.floor(places * counts[:, None])).astype(np.int64)]])


def _add_own_changes(
    changes: npt.NDArray[np.float64], sign: float, voters: Ints, test: Ints, labels: Ints, groups: Ints, others: Ints
) -> None:
    """Add to the group of each test item whether it is answered rightly more often with each of its other labels."""
    chosen = most_frequent(labels[voters])
    right = (chosen == labels[test]).astype(np.float64)
    for draw in range(others.shape[1]):
        answered = (chosen == others[groups[test], draw]).astype(np.float64)
        np.add.at(changes[:, draw], groups[test], sign * (answered - right))


def _add_voters_changes(
    changes: npt.NDArray[np.float64], sign: float, voters: Ints, test: Ints, labels: Ints, groups: Ints, others: Ints
) -> None:
    """Add to the group of each voter how many more test items are answered rightly with each of its other labels."""
    votes = labels[voters]
    right = (most_frequent(votes) == labels[test]).astype(np.float64)
    for draw in range(others.shape[1]):
        for place in range(voters.shape[1]):
            group = groups[voters[:, place]]
            together = groups[voters] == group[:, None]
            now = most_frequent(np.where(together, others[group, draw][:, None], votes)) == labels[test]
            np.add.at(changes[:, draw], group, sign * (now - right) / together.sum(axis=1))
