"""What a space is judged by: Spearman of pairs, 3 nearest neighbours of labels, nDCG@10 of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sentfold.compare.bootstrap import sort_once, weighted_spearman
from sentfold.measures.base.pairs import cosines
from sentfold.neighbors.neighbors import nearest_among
from sentfold.retrieval.base.ranking import unit_rows

Floating = npt.NDArray[np.floating[Any]]
Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NEIGHBORS = 3
TIED = 1e-6  # distances of unit vectors that differ by less may be equal, for float32 rounds: then a draw decides
RANDOM = 8  # dimensions of the random part that each vector has then
# Length of the random part of a train item. That of a text is this times the distance of its neighbours: the nearer
# they are, the smaller are the differences of squared distances that rounding makes.
SHAKEN = 1e-3
TOP = 10
CLOSE = 1e-5  # float32 tells cosines apart that are farther from each other; nearer ones are computed in float64


class Task(Protocol):
    """Items with texts, a value of each item in a space, and a score of the values.

    metric       in words; item: what an item is called
    independent  whether an item's value depends on its own texts alone, and on no other item
    keys         (m, w) the texts of each item that are held out with it
    groups       (m,) number of the group of each item: items of one group share texts, directly or through others
    """

    @property
    def metric(self) -> str: ...
    @property
    def item(self) -> str: ...
    @property
    def independent(self) -> bool: ...
    @property
    def keys(self) -> Ints: ...
    @property
    def groups(self) -> Ints: ...

    def groups_among(self, items: Ints) -> Ints:
        """(k,) the group of each of some items, where other items join none of them."""

    def texts(self, train: Ints, test: Ints) -> Ints:
        """The rows that are looked at when the test items are measured with the train items known."""

    def measure(self, space: Floating, train: Ints, test: Ints) -> Float64:
        """(t,) value of each test item in a space, (n, p), with the train items known."""

    def score(self, values: Float64, test: Ints, weights: Float64) -> Float64:
        """(c, b) score of each of c rows of values, (c, t), under each of b rows of weights, (b, t)."""

    def alike(self, train: Ints) -> tuple[Ints, Ints, Float64]:
        """Rows of vectors that should be near each other by the labels of the train items, and weights."""


def most_frequent(votes: Ints) -> Ints:
    """(t,) the most frequent of each row of votes; of equally frequent ones the first, which is the nearest item's."""
    frequent = (votes[:, :, None] == votes[:, None, :]).sum(axis=2)
    return np.asarray(votes[np.arange(len(votes)), frequent.argmax(axis=1)])


def first_of_each(values: Ints, most: int) -> Ints:
    """The places of at most so many of each value, the first ones, in their order."""
    order = np.argsort(values, kind="stable")
    begins = np.flatnonzero(np.r_[True, values[order][1:] != values[order][:-1]])
    number = np.arange(len(values)) - np.repeat(begins, np.diff(np.r_[begins, len(values)]))
    return np.sort(order[number < most])


@dataclass(frozen=True)
class PairsTask:
    """rows (m, 2), scores (m,): Spearman of the cosine with the score. kin (n,): see first_kin."""

    rows: Ints
    scores: Float64
    kin: Ints | None = None
    metric = "Spearman of cosine"
    item = "pairs"
    independent = True

    @property
    def keys(self) -> Ints:
        """Both texts."""
        return first_kin(self.kin, self.rows)

    @property
    def groups(self) -> Ints:
        return self.groups_among(np.arange(len(self.rows)))

    def groups_among(self, items: Ints) -> Ints:
        """Pairs that share a text, directly or through others."""
        return connect(np.repeat(np.arange(len(items)), 2), self.keys[items].ravel())

    def texts(self, train: Ints, test: Ints) -> Ints:
        """Those of the test items."""
        return np.unique(self.rows[test])

    def measure(self, space: Floating, train: Ints, test: Ints) -> Float64:
        """Cosines, without the last digits of float32."""
        return join_cosines(cosines(space, self.rows[test])[0])

    def score(self, values: Float64, test: Ints, weights: Float64) -> Float64:
        """Weighted Spearman; NaN where a variable is constant."""
        return weighted_spearman([sort_once(row) for row in values], sort_once(self.scores[test]), weights)

    def alike(self, train: Ints) -> tuple[Ints, Ints, Float64]:
        """Pairs in the upper half of the scale, by how far they are above its middle."""
        scores = self.scores[train]
        low, high = scores.min(), scores.max()
        weights = np.maximum(scores - (low + high) / 2, 0.0)
        chosen = train[weights > 0]
        return self.rows[chosen, 0], self.rows[chosen, 1], weights[weights > 0]


def join_cosines(values: Float64) -> Float64:
    """Cosines, each as the smallest of those that float32 does not tell from it: ties have one value again.

    After a rotation in float32, equal cosines differ by up to 1.7e-7 times the root of their distance from 1, as was
    seen with 16 to 1,024 dimensions. Cosines within 3e-7 times this root are joined. One step for all would be too
    wide for vectors in a narrow cone, such as those of a first token in an early layer, whose cosines are all 0.999999.
    Cost O(n log n).
    """
    there = np.flatnonzero(np.isfinite(values))
    order = there[np.argsort(values[there], kind="stable")]
    ordered = values[order]
    reach = np.maximum(3e-7 * np.sqrt(np.maximum(1 - ordered, 0.0)), 1e-12)
    begins = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > np.append(0.0, reach[:-1]))
    ends = np.append(begins[1:], len(ordered))[: len(begins)]
    wide = ordered[ends - 1] - ordered[begins] > reach[begins]  # each value near to the next, but not to the last
    starts: list[int] = begins.tolist()
    for begin, end in zip(begins[wide].tolist(), ends[wide].tolist(), strict=True):
        while (begin := int(np.searchsorted(ordered[:end], ordered[begin] + reach[begin], side="right"))) < end:
            starts.append(begin)
    starts.sort()
    joined = values.copy()
    joined[order] = np.repeat(ordered[starts], np.diff([*starts, len(ordered)]))
    return joined


@dataclass(frozen=True)
class LabelsTask:
    """rows (m,), labels (m,) from 0: share of items whose class the 3 nearest of the train items by cosine give.

    kin (n,): see first_kin
    """

    rows: Ints
    labels: Ints
    kin: Ints | None = None
    metric = "accuracy of 3 nearest neighbours"
    item = "texts"
    independent = False

    @property
    def keys(self) -> Ints:
        """The text."""
        return first_kin(self.kin, self.rows)[:, None]

    @property
    def groups(self) -> Ints:
        return self.groups_among(np.arange(len(self.rows)))

    def groups_among(self, items: Ints) -> Ints:
        """Items of one text."""
        return np.unique(self.keys[items, 0], return_inverse=True)[1]

    def texts(self, train: Ints, test: Ints) -> Ints:
        """Those of all these items."""
        return np.union1d(self.rows[train], self.rows[test])

    def measure(self, space: Floating, train: Ints, test: Ints) -> Float64:
        """1 or 0 of each item: whether its voters have its class. Cost O(t n p), where t and n count each text once."""
        chosen = most_frequent(self.labels[self.voters(space, train, test)])
        return np.asarray(chosen == self.labels[test], dtype=np.float64)

    def voters(self, space: Floating, train: Ints, test: Ints) -> Ints:
        """(t, 3) the train items nearest to each test item, the nearest first; fewer where there are fewer.

        Of equally near ones those that a draw puts first, for each text another: a random part of its own is added to
        each vector. The file can have one class before the other, and of codes of few bits many are equally near to
        many, so one draw for all texts would decide about them together.
        """
        unit = unit_rows(space)
        draw = np.random.default_rng(0)
        train = draw.permutation(train)
        # Of a text that comes a thousand times, one is searched for, and three of those that are found can vote.
        rows, places = np.unique(self.rows[test], return_inverse=True)
        train = train[first_of_each(self.rows[train], NEIGHBORS)]
        asked, known = unit[rows], unit[self.rows[train]]
        if (zero := ~known.any(axis=1)).any():
            # A zero vector is 1 from each unit vector, nearer than one at a cosine of 0, which is the root of 2 away.
            # One more dimension, in which the asked ones are 0, puts it there.
            known = np.column_stack([known, zero.astype(known.dtype)])
            asked = np.column_stack([asked, np.zeros(len(asked), dtype=asked.dtype)])
        near = nearest_among(asked, known, min(NEIGHBORS + 1, len(train)), workers=1)
        chosen = train[near.indices[:, :NEIGHBORS]]
        if len(tied := np.flatnonzero((np.diff(near.distances, axis=1) <= TIED).any(axis=1))):
            reach = SHAKEN * np.maximum(near.distances[tied, chosen.shape[1] - 1, None], TIED)
            one, other = (
                np.column_stack([some, (length * unit_rows(draw.normal(size=(len(some), RANDOM)))).astype(some.dtype)])
                for some, length in ((asked[tied], reach), (known, SHAKEN))
            )
            found = nearest_among(one, other, chosen.shape[1], workers=1).indices
            # The random part suits the farthest of these; the order of nearer ones needs a smaller one.
            apart = np.stack([np.linalg.norm(asked[tied] - known[column], axis=1) for column in found.T], axis=1)
            order = np.argsort(apart + draw.uniform(0, TIED, size=apart.shape), axis=1)
            chosen[tied] = train[np.take_along_axis(found, order, axis=1)]
        return np.asarray(chosen[places])

    def score(self, values: Float64, test: Ints, weights: Float64) -> Float64:
        """Weighted means."""
        return mean_scores(values, weights)

    def alike(self, train: Ints) -> tuple[Ints, Ints, Float64]:
        """Each text with the next of its class, in the order of the items."""
        order = train[np.argsort(self.labels[train], kind="stable")]
        same = self.labels[order[1:]] == self.labels[order[:-1]]
        return self.rows[order[:-1][same]], self.rows[order[1:][same]], np.ones(int(same.sum()))


@dataclass(frozen=True)
class QueriesTask:
    """rows (q,) of queries, documents (D,), relevant: per query row of a document -> grade: nDCG of the first 10.

    same   (q,) row of the document that a query never finds, because it is the query itself; or -1
    kin    (n,): see first_kin
    empty  rows of the documents without a text, which rank behind all others: their vectors say nothing
    """

    rows: Ints
    documents: Ints
    relevant: Sequence[Mapping[int, float]]
    same: Ints
    kin: Ints | None = None
    empty: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    metric = "nDCG@10"
    item = "queries"
    independent = True

    @property
    def keys(self) -> Ints:
        """The query's text. Documents are known whenever a query is answered."""
        return first_kin(self.kin, self.rows)[:, None]

    @property
    def groups(self) -> Ints:
        return self.groups_among(np.arange(len(self.rows)))

    def groups_among(self, items: Ints) -> Ints:
        """Queries that share a relevant document, or their text."""
        edges = [(place, row) for place, query in enumerate(items) for row in self.relevant[query]]
        places, rows = np.array([*edges, *enumerate(self.rows[items])], dtype=np.int64).T
        return connect(places, first_kin(self.kin, rows))

    def answers_of(self, items: Ints | Sequence[int]) -> Ints:
        """The texts of the relevant documents of some queries, as keys has those of queries."""
        rows = np.array([row for query in items for row in self.relevant[query]], dtype=np.int64)
        return first_kin(self.kin, rows)

    def texts(self, train: Ints, test: Ints) -> Ints:
        """All documents, and the test queries."""
        return np.union1d(self.documents, self.rows[test])

    def measure(self, space: Floating, train: Ints, test: Ints) -> Float64:
        """nDCG@10 of each query, expected over all orders of equally similar documents. Cost O(t D p)."""
        unit = unit_rows(space)
        documents = unit[self.documents]
        gains = np.empty(len(test))
        for place, query in enumerate(test):
            similar = (documents @ unit[self.rows[query]]).astype(np.float64)
            self.put_back(similar, self.documents, query)
            near = np.flatnonzero(similar >= tenth(similar) - CLOSE)
            similar[near] = exact_cosines(space[self.documents[near]], space[self.rows[query]])
            self.put_back(similar, self.documents, query)
            gains[place] = expected_ndcg(similar, self.documents, self.relevant[query])
        return gains

    def put_back(self, similar: Floating, documents: Ints, query: int) -> None:
        """Lower, in place, the similarities of documents: without a text below all cosines, the query itself last."""
        if len(self.empty):
            similar[np.isin(documents, self.empty)] = -2.0
        similar[documents == self.same[query]] = -np.inf

    def score(self, values: Float64, test: Ints, weights: Float64) -> Float64:
        """Weighted means."""
        return mean_scores(values, weights)

    def alike(self, train: Ints) -> tuple[Ints, Ints, Float64]:
        """Queries with their relevant documents, those without a text left out."""
        bare = set(self.empty.tolist())
        found = [(query, row, grade) for query in train for row, grade in self.relevant[query].items()]
        edges = [(self.rows[query], row, grade) for query, row, grade in found if row not in bare]
        queries, rows = np.array([edge[:2] for edge in edges], dtype=np.int64).reshape(-1, 2).T
        return queries, rows, np.array([edge[2] for edge in edges], dtype=np.float64)


def first_kin(kin: Ints | None, rows: Ints) -> Ints:
    """For each of some rows the first row that is the same text or nearly so, (n,) in `kin`; None: all texts differ."""
    return rows if kin is None else kin[rows]


def mean_scores(values: Float64, weights: Float64) -> Float64:
    """(c, b) weighted means of (c, t) values under (b, t) weights; NaN for no weight at all."""
    total = weights.sum(axis=1)
    with np.errstate(invalid="ignore"):
        means: Float64 = (values @ weights.T) / total
    return means


def ndcg(found: Ints, relevant: Mapping[int, float]) -> float:
    """Discounted gain of the documents found over that of the best order; gain = grade, discount = log2(rank + 1).

    Source: Järvelin & Kekäläinen 2002, doi:10.1145/582415.582418, as trec_eval and BEIR compute it
    """
    gains = np.array([relevant.get(int(row), 0.0) for row in found])
    return _discounted(gains) / _discounted(np.array(sorted(relevant.values(), reverse=True)[:TOP]))


def tenth(similar: Floating) -> float:
    """The tenth largest similarity, or the smallest of fewer."""
    place = -min(TOP, len(similar))
    return float(np.partition(similar, place)[place])


def exact_cosines(documents: Floating, query: Floating) -> Float64:
    """Cosines in float64, in which those that differ by rounding alone are equal."""
    unit, own = unit_rows(documents.astype(np.float64)), unit_rows(query[None].astype(np.float64))[0]
    return np.asarray(np.round(unit @ own, 12))


def expected_ndcg(similar: Floating, documents: Ints, relevant: Mapping[int, float]) -> float:
    """ndcg of the most similar documents, expected over all orders of equally similar ones."""
    near = np.flatnonzero(similar >= tenth(similar))
    order = near[np.argsort(-similar[near], kind="stable")]
    gains = np.array([relevant.get(int(row), 0.0) for row in documents[order]])
    tied = np.unique(-similar[order], return_inverse=True)[1]
    means = np.bincount(tied, gains) / np.bincount(tied)
    return _discounted(means[tied][:TOP]) / _discounted(np.array(sorted(relevant.values(), reverse=True)[:TOP]))


def _discounted(gains: Float64) -> float:
    return float((gains / np.log2(np.arange(2, len(gains) + 2))).sum())


def connect(items: Ints, keys: Ints) -> Ints:
    """The number of the group of each item, 0 to m - 1 items: items that share a key are in one group.

    items, keys  the ends of the edges
    """
    count = int(items.max()) + 1
    named, places = np.unique(keys, return_inverse=True)
    size = count + len(named)
    graph = coo_array((np.ones(len(items)), (items, count + places)), shape=(size, size))
    labels = connected_components(graph, directed=False)[1][:count]
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def chance(task: Task) -> float:
    """What vectors that tell nothing score: of labels the accuracy of three neighbours drawn at random; else 0."""
    if not isinstance(task, LabelsTask):
        return 0.0
    shares = np.bincount(task.labels) / len(task.labels)
    # The vote of three draws is a class drawn three times or twice, or that of the first draw if all three differ.
    differ = (1 - shares) ** 2 - ((shares**2).sum() - shares**2)
    votes = shares**3 + 3 * shares**2 * (1 - shares) + shares * differ
    return float(100 * (shares * votes).sum())


def chance_notes(task: Task, score: float, units: float) -> list[str]:
    """A note where cosine scores little above chance or below, for pairs and labels.

    score  x100; units: items that are independent of each other. The bound is two standard deviations of the score of
           vectors that tell nothing, and at most 20 points, as few units leave any score possible.
    """
    if isinstance(task, QueriesTask):
        return []
    share = chance(task) / 100
    deviation = (share * (1 - share) / units) ** 0.5 if share else 1 / max(units - 1, 1) ** 0.5
    if score > 100 * (share + min(2 * deviation, 0.2)):
        return []
    turned = " Do scores rise as texts become less alike?" if isinstance(task, PairsTask) and score < 0 else ""
    return [
        f"cosine scores these {task.item} little above chance, or below: are the vectors those of the texts, in their "
        f"order?{turned}"
    ]
