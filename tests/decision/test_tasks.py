"""The values and scores of a task equal those of independent implementations; folds keep apart what shares a text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import ndcg_score
from sklearn.neighbors import KNeighborsClassifier

from sentfold.data.datasets import Dataset
from sentfold.decision.codes import measure_rescored
from sentfold.decision.comparison import plan_comparison
from sentfold.decision.compress import compress_dataset
from sentfold.decision.decide import fold_means
from sentfold.decision.folds import FOLDS, FoldPlan, count_groups, divide_groups, group_count, plan_folds
from sentfold.decision.tasks import LabelsTask, PairsTask, QueriesTask, connect, first_of_each, join_cosines, ndcg
from sentfold.retrieval.base.ranking import first_places

RNG = np.random.default_rng(3)
SPACE = RNG.normal(size=(60, 7)).astype(np.float32)
ALL = np.arange(40)
NONE = np.empty(0, dtype=np.int64)


def some_pairs(m: int = 40, texts: int = 60) -> PairsTask:
    rows = np.array([RNG.choice(texts, size=2, replace=False) for _ in range(m)])
    return PairsTask(rows, RNG.integers(0, 6, size=m).astype(float))


def test_pairs_are_scored_by_the_spearman_of_their_cosines() -> None:
    task = some_pairs()
    values = task.measure(SPACE, NONE, ALL)
    unit = SPACE / np.linalg.norm(SPACE, axis=1, keepdims=True)
    expected = spearmanr((unit[task.rows[:, 0]] * unit[task.rows[:, 1]]).sum(axis=1), task.scores).statistic
    assert task.score(values[None], ALL, np.ones((1, 40)))[0, 0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("apart", [1.0, 0.01, 0.003, 0.001])
def test_pairs_in_a_narrow_cone_are_scored_by_the_spearman_of_their_cosines_too(apart: float) -> None:
    """Of a first token in an early layer all cosines are 0.999999: of 180 pairs, 13 different ones were left."""
    rng = np.random.default_rng(0)
    rows = np.arange(600).reshape(300, 2)
    space = (1 + apart * rng.normal(size=(600, 64))).astype(np.float32)
    unit = space.astype(np.float64) / np.linalg.norm(space.astype(np.float64), axis=1, keepdims=True)
    exact = (unit[rows[:, 0]] * unit[rows[:, 1]]).sum(axis=1)
    task = PairsTask(rows, exact.argsort().argsort() + 60 * rng.normal(size=300))
    values = task.measure(space, NONE, np.arange(300))
    expected = spearmanr(exact, task.scores).statistic
    assert task.score(values[None], np.arange(300), np.ones((1, 300)))[0, 0] == pytest.approx(expected, abs=1e-3)


@settings(max_examples=60)
@given(
    constant=st.sampled_from([0.0, 3.0, 10.0, 30.0, 60.0, 100.0, 200.0, 400.0, 1_000.0]),
    width=st.sampled_from([16, 64, 300]), ones=st.integers(1, 6),
    seed=st.integers(0, 10_000),
)  # fmt: skip
def test_equal_cosines_stay_equal_where_vectors_are_rotated_in_float32(
    constant: float, width: int, ones: int, seed: int
) -> None:
    """Ties that rounding breaks made a rotation better than what it rotates, by +10.1 [+4.2, +16.1].

    Rounding to a step breaks those, too, that lie at the half of a step.
    """
    rng = np.random.default_rng(seed)
    space = np.zeros((400, width + 1), dtype=np.float32)
    for row in space:
        row[rng.choice(width, ones, replace=False)] = 1
    shared = (space[::2] * space[1::2]).sum(axis=1)
    space[:, width] = np.repeat(rng.choice([constant, 1.0], size=200), 2)  # several cones
    squares = space[::2, width].astype(np.float64) ** 2
    exact = np.round((shared + squares) / (ones + squares), 12)
    turned = (space @ np.linalg.qr(rng.normal(size=(width + 1, width + 1)))[0]).astype(np.float32)
    task = PairsTask(np.arange(400).reshape(200, 2), rng.normal(size=200))
    for vectors in (space, turned):
        values = task.measure(vectors, NONE, np.arange(200))
        assert np.array_equal(np.unique(values, return_inverse=True)[1], np.unique(exact, return_inverse=True)[1])


@given(st.lists(st.integers(0, 400), min_size=1, max_size=60), st.integers(0, 3))
def test_no_cosines_are_joined_that_are_further_apart_than_float32_moves_them(steps: list[int], missing: int) -> None:
    """Also of values that each lie near to the next: they are not all one."""
    values = np.append(0.5 + 1e-8 * np.array(steps), np.full(missing, np.nan))
    joined = join_cosines(values)
    moved = values[: len(steps)] - joined[: len(steps)]
    assert np.isnan(joined[len(steps) :]).all()
    assert (moved >= 0).all()
    assert moved.max() <= 3e-7
    order = np.argsort(steps)
    assert (np.diff(joined[order]) >= 0).all()
    assert set(joined[: len(steps)].tolist()) <= set(values[: len(steps)].tolist())


def test_labels_are_scored_by_three_nearest_neighbours_as_scikit_learn_finds_them() -> None:
    labels = RNG.integers(0, 2, size=60)  # of two classes three votes never tie
    task = LabelsTask(np.arange(60), labels)
    train, test = np.arange(0, 60, 2), np.arange(1, 60, 2)
    peer = KNeighborsClassifier(3, metric="cosine", algorithm="brute").fit(SPACE[train], labels[train])
    expected = peer.predict(SPACE[test]) == labels[test]
    assert np.array_equal(task.measure(SPACE, train, test), expected.astype(float))


def test_a_zero_vector_has_a_cosine_of_0_with_every_text() -> None:
    """As scikit-learn's cosine distance has it. Texts of one class are less alike than 0.5."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 200)
    x = np.eye(8)[labels] + rng.normal(size=(200, 8))
    x[rng.permutation(120)[:20]] = 0
    train, test = np.arange(120), np.arange(120, 200)
    theirs = KNeighborsClassifier(3, metric="cosine", algorithm="brute").fit(x[train], labels[train])
    near = labels[theirs.kneighbors(x[test], return_distance=False)]
    votes = np.array([np.bincount(row, minlength=3) for row in near])
    wanted = np.where(votes.max(axis=1) > 1, votes.argmax(axis=1), near[:, 0])
    found = LabelsTask(np.arange(200), labels).measure(x, train, test)
    np.testing.assert_array_equal(found, wanted == labels[test])


def test_repeats_vote_as_if_each_item_were_compared_with_each() -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.integers(0, 12, 400), rng.integers(0, 4, 400)
    x = rng.normal(size=(12, 3))
    train, test = np.arange(300), np.arange(300, 400)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    similar = np.round(-unit[rows[test]] @ unit[rows].T, 9)
    wanted, found = np.empty((2, 200))
    for number in range(200):
        order = rng.permutation(train)
        votes = labels[order][np.argsort(similar[:, order], axis=1, kind="stable")[:, :3]]
        counts = (votes[:, :, None] == votes[:, None, :]).sum(axis=2)
        wanted[number] = (votes[np.arange(100), counts.argmax(axis=1)] == labels[test]).mean()
        found[number] = LabelsTask(rows, labels).measure(x, order, test).mean()
    assert found.mean() == pytest.approx(wanted.mean(), abs=5 * np.hypot(found.std(), wanted.std()) / np.sqrt(200))
    assert first_of_each(np.array([5, 1, 5, 5, 1, 5, 2]), 2).tolist() == [0, 1, 2, 4, 6]


@pytest.mark.parametrize("angle", [0, 90])
def test_where_all_train_items_are_equally_near_the_votes_are_those_of_many_draws(angle: int) -> None:
    """Of one draw all items of a class would be right, or all wrong: codes of few bits decided by chance.

    At right angles to all of them the rounding of their lengths would decide.
    """
    rng = np.random.default_rng(0)
    labels = (rng.random(4_000) > 0.7).astype(np.int64)
    train, test = np.arange(3_000), np.arange(3_000, 4_000)
    x = np.ones((4_000, 8), dtype=np.float32)
    if angle:
        x[train, :6], x[train, 6:] = rng.normal(size=(3_000, 6)), 0
        x[test, :6], x[test, 6:] = 0, rng.normal(size=(1_000, 2))
    found = LabelsTask(np.arange(4_000), labels).measure(x, train, test)
    share = (labels[train] == 0).mean()
    first = share**2 * (3 - 2 * share)  # that two or three of three items drawn at random have the class 0
    for name, expected in ((0, first), (1, 1 - first)):
        assert found[labels[test] == name].mean() == pytest.approx(expected, abs=0.1)  # 4 deviations of 300 draws


@pytest.mark.parametrize("mean", [1e3, 1e4])  # cosines of 0.999999 and 0.99999999, as of a first token
def test_votes_of_vectors_in_a_narrow_cone_are_those_of_their_distances_in_float64(mean: float) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 2_000)
    x = rng.normal(size=(2_000, 64)) + 0.35 * rng.normal(size=(5, 64))[labels] + mean * rng.normal(size=64)
    train, test = np.arange(1_000), np.arange(1_000, 2_000)
    space = x.astype(np.float32)
    unit = space.astype(np.float64) / np.linalg.norm(space.astype(np.float64), axis=1, keepdims=True)
    votes = labels[train][np.argsort(-unit[test] @ unit[train].T, axis=1)[:, :3]]
    counts = (votes[:, :, None] == votes[:, None, :]).sum(axis=2)
    wanted = votes[np.arange(1_000), counts.argmax(axis=1)] == labels[test]
    found = LabelsTask(np.arange(2_000), labels).measure(space, train, test)
    assert (found == wanted).mean() > 0.97
    assert found.mean() == pytest.approx(wanted.mean(), abs=0.01)


def test_where_three_votes_differ_the_nearest_decides() -> None:
    space = np.array([[1.0, 0.0], [1.0, 0.1], [1.0, 0.2], [1.0, 0.3]], dtype=np.float32)
    for nearest in (0, 1, 2):
        labels = np.array([nearest, nearest, (nearest + 1) % 3, (nearest + 2) % 3])
        assert LabelsTask(np.arange(4), labels).measure(space, np.array([1, 2, 3]), np.array([0])) == [1.0]


def test_queries_are_scored_by_ndcg_as_scikit_learn_computes_it() -> None:
    relevant = tuple({int(row): float(RNG.integers(1, 4)) for row in RNG.choice(50, 5, False)} for _ in range(10))
    task = QueriesTask(np.arange(50, 60), np.arange(50), relevant, np.full(10, -1))
    unit = SPACE / np.linalg.norm(SPACE, axis=1, keepdims=True)
    for query, value in enumerate(task.measure(SPACE, NONE, np.arange(10))):
        truth = np.array([[relevant[query].get(row, 0.0) for row in range(50)]])
        assert value == pytest.approx(ndcg_score(truth, [unit[:50] @ unit[50 + query]], k=10), abs=1e-6)


def test_equally_similar_documents_count_as_in_any_order() -> None:
    """Of bits many are; scikit-learn averages over their orders, too."""
    rng = np.random.default_rng(4)
    relevant = [{int(row): float(rng.integers(1, 4)) for row in rng.choice(50, 6, replace=False)} for _ in range(10)]
    # Four of eight numbers are 1 or -1, so that cosines are exact.
    space = rng.permuted(np.tile([1.0, 1, 1, 1, 0, 0, 0, 0], (60, 1)), axis=1) * rng.choice([-1.0, 1.0], (60, 8))
    task = QueriesTask(np.arange(50, 60), np.arange(50), relevant, np.full(10, -1))
    found = task.measure(space, NONE, np.arange(10))
    for query, value in enumerate(found):
        truth = np.array([[relevant[query].get(row, 0.0) for row in range(50)]])
        assert value == pytest.approx(ndcg_score(truth, [space[:50] @ space[50 + query]], k=10))
    order = rng.permutation(50)
    mixed = QueriesTask(np.arange(50, 60), order, relevant, np.full(10, -1))
    np.testing.assert_allclose(mixed.measure(space, NONE, np.arange(10)), found)


@pytest.mark.parametrize("other", ["none", "without a text", "unlike all others"])
def test_documents_whose_cosines_lie_within_millionths_are_ranked_as_their_vectors_are(other: str) -> None:
    """The first token of a layer is nearly the same for all texts; in float32 many such cosines are equal."""
    rng = np.random.default_rng(5)
    space = np.float32(1000) * np.eye(1, 30, dtype=np.float32) + rng.standard_normal((60, 30)).astype(np.float32)
    if other != "none":
        space[49] = 0 if other == "without a text" else rng.standard_normal(30)
    relevant = [{int(row): 1.0} for row in rng.permutation(49)[:10]]
    empty = np.array([49] if other == "without a text" else [], dtype=np.int64)
    task = QueriesTask(np.arange(50, 60), np.arange(50), relevant, np.full(10, -1), empty=empty)
    unit = space / np.maximum(np.linalg.norm(space.astype(np.float64), axis=1, keepdims=True), 1e-9)
    for query, value in enumerate(task.measure(space, NONE, np.arange(10))):
        truth = np.array([[relevant[query].get(row, 0.0) for row in range(50)]])
        assert value == pytest.approx(ndcg_score(truth, [unit[:50] @ unit[50 + query]], k=10))


def test_ten_documents_that_are_alike_are_ranked_as_their_vectors_are() -> None:
    """Versions of one page: float32 orders them by its rounding, and all of them are among the first ten."""
    rng = np.random.default_rng(6)
    pages = np.repeat(rng.standard_normal((6, 30)), 10, axis=0)
    exact = np.concatenate([pages + 3e-4 * rng.standard_normal((60, 30)), np.zeros((60, 30))])
    exact[60:] = exact[:60] + 1e-5 * rng.standard_normal((60, 30))
    space = exact.astype(np.float32)
    relevant = [{row: 1.0} for row in range(60)]
    task = QueriesTask(np.arange(60, 120), np.arange(60), relevant, np.full(60, -1))
    unit = space / np.linalg.norm(space.astype(np.float64), axis=1, keepdims=True)
    truth = [ndcg_score(np.eye(60)[row][None], [unit[:60] @ unit[60 + row]], k=10) for row in range(60)]
    assert task.measure(space, NONE, np.arange(60)) == pytest.approx(truth)


@pytest.mark.parametrize("order", ["mixed", "one class first", "the other first"])
def test_of_equally_near_texts_no_class_votes_first(order: str) -> None:
    """2,000 messages of 40 texts, 80% of a text's in one class: the first three of each text voted, in a sorted file
    those of the first class."""
    rng = np.random.default_rng(3)
    rows = np.repeat(np.arange(40), 50)
    labels = np.where(rng.random(2_000) < 0.8, rows % 2, 1 - rows % 2)
    places = rng.permutation(2_000)
    if order != "mixed":
        places = places[np.argsort(labels[places] * (1 if order == "one class first" else -1), kind="stable")]
    train, test = places[np.isin(places, rng.permutation(2_000)[:1_600])], np.arange(2_000)
    test = np.setdiff1d(test, train)
    right = LabelsTask(rows, labels).measure(np.eye(40), train, test).mean()
    majority = 0.8**3 + 3 * 0.8**2 * 0.2  # of three votes
    assert right == pytest.approx(0.8 * majority + 0.2 * (1 - majority), abs=0.1)


def test_documents_without_a_text_rank_behind_all_others_and_teach_nothing() -> None:
    for vector in (np.zeros(7), SPACE[50]):  # zeros have a larger cosine than many documents; the query's own, than all
        space = SPACE.copy()
        space[[3, 8]] = vector
        relevant = ({3: 1.0, 20: 2.0, 30: 1.0}, {8: 1.0})
        task = QueriesTask(np.array([50, 51]), np.arange(50), relevant, np.array([-1, -1]), empty=np.array([3, 8]))
        full = np.setdiff1d(np.arange(50), [3, 8])
        unit = space / np.maximum(np.linalg.norm(space, axis=1, keepdims=True), 1e-9)
        found = full[np.argsort(-(unit[full] @ unit[50]))][:10]
        assert task.measure(space, NONE, np.arange(2)) == pytest.approx([ndcg(found, relevant[0]), 0.0])
        if vector.any():
            assert measure_rescored(task, space, NONE, np.array([1]))[0] == 0.0
    left, right, grades = task.alike(np.arange(2))
    assert (left.tolist(), right.tolist(), grades.tolist()) == ([50, 50], [20, 30], [2.0, 1.0])
    left, right, grades = task.alike(np.array([1]))
    assert len(left) == len(right) == len(grades) == 0


def test_vectors_of_documents_without_a_text_change_no_score_and_no_fit() -> None:
    rng = np.random.default_rng(5)
    texts = (*(f"document {row}" if row % 5 else "" for row in range(100)), *(f"query {row}" for row in range(60)))
    relevant = tuple({1 + row + row // 4: 1.0} for row in range(60))
    data = Dataset(
        "beir", "queries", texts, 100 + np.arange(60), np.full(60, -1.0), documents=np.arange(100), relevant=relevant
    )  # fmt: skip
    x = rng.normal(size=(160, 8)).astype(np.float32)
    x[100:] += x[[next(iter(found)) for found in relevant]]
    other = x.copy()
    x[:100:5], other[:100:5] = 0.0, 4 * x[100]
    one, two = (compress_dataset(data, vectors, margin=20, seed=0) for vectors in (x, other))
    assert one.whole == two.whole
    told = [
        [(form.code.name, form.difference) for form in found.forms if form.code.name != "int8"] for found in (one, two)
    ]
    assert told[0] == told[1]


def test_a_query_does_not_find_the_document_that_it_is() -> None:
    space = np.array([[1.0, 0.0], [0.9, 0.1], [1.0, 0.0]], dtype=np.float32)
    found, own = ({1: 1.0},), np.arange(1)
    alone = QueriesTask(np.array([2]), np.arange(2), found, np.array([0])).measure(space, NONE, own)
    with_itself = QueriesTask(np.array([2]), np.arange(2), found, np.array([-1])).measure(space, NONE, own)
    assert alone == [1.0]
    assert with_itself == pytest.approx(1 / np.log2(3))


def test_equally_similar_documents_come_in_the_order_of_their_rows() -> None:
    assert first_places(np.array([0.5, 0.9, 0.5, 0.5, 0.1]), 3).tolist() == [1, 0, 2]


def test_groups_are_connected_components() -> None:
    rows = np.array([[0, 1], [2, 3], [1, 4], [5, 6], [6, 2]])
    groups = connect(np.repeat(np.arange(5), 2), rows.ravel())
    assert groups[0] == groups[2]
    assert groups[1] == groups[3] == groups[4]
    assert groups[0] != groups[1]


# --- folds --------------------------------------------------------------------------------------------


def keys_of(task: PairsTask, items: np.ndarray) -> set[int]:
    return set(task.keys[items].ravel().tolist())


@pytest.mark.parametrize("texts", [400, 60])  # many small groups; one large group, whose texts are divided
def test_no_text_is_in_both_parts_of_any_fold(texts: int) -> None:
    task = some_pairs(200, texts)
    plan = plan_folds(task, (), seed=1)
    for fold in plan.folds:
        assert not keys_of(task, fold.train) & keys_of(task, fold.test)
        for train, test in fold.inner:
            assert not keys_of(task, train) & keys_of(task, test)
            assert set(train) | set(test) <= set(fold.train)


def test_each_repeat_judges_each_pair_once_and_a_large_group_loses_those_that_cross() -> None:
    small, large = some_pairs(200, 4000), some_pairs(200, 60)
    for folds in plan_folds(small, (), seed=1).repeats:
        assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(200))
    plan = plan_folds(large, (), seed=1)
    assert any("cross two folds" in note for note in plan.notes)
    for folds in plan.repeats:
        judged = np.concatenate([fold.test for fold in folds])
        assert len(set(judged.tolist())) == len(judged)
        # Two texts fall into one of FOLDS parts with chance 1 / FOLDS.
        assert 0 < len(judged) < 3 * 200 / FOLDS
        assert set(judged.tolist()) <= set(plan.judged.tolist())


def test_linked_pairs_are_no_more_groups_than_pairs_that_are_judged_and_share_no_text() -> None:
    """Most are in one group. All their texts were counted, where the fifth of the pairs within folds is judged."""
    rng = np.random.default_rng(1)
    linked = PairsTask(np.array([rng.choice(400, size=2, replace=False) for _ in range(300)]), rng.random(300))
    plan = plan_folds(linked, (), seed=1, repeats=1)
    counted = count_groups(linked, plan)[0]
    assert len(plan.judged) == sum(len(fold.test) for fold in plan.folds) < 120
    assert counted <= len(plan.judged)
    assert counted <= len(np.unique(linked.keys[plan.judged])) / 2
    apart = PairsTask(np.arange(600).reshape(300, 2), rng.random(300))
    assert count_groups(apart, plan_folds(apart, (), seed=1))[0] == 300


def test_groups_are_divided_evenly_and_kept_whole() -> None:
    groups = np.repeat(np.arange(30), np.r_[np.full(10, 7), np.full(20, 1)])
    numbers = divide_groups(groups, 5, np.random.default_rng(0))
    assert all(len(set(numbers[groups == group].tolist())) == 1 for group in range(30))
    assert np.ptp(np.bincount(numbers)) <= 7


def test_given_splits_are_honoured_and_dev_chooses() -> None:
    task = PairsTask(np.arange(180).reshape(90, 2), RNG.random(90))
    plan = plan_folds(task, ["train"] * 50 + ["dev"] * 20 + ["test"] * 20, seed=0)
    (fold,) = plan.folds
    assert fold.test.tolist() == list(range(70, 90))
    assert [part.tolist() for part in fold.inner[0]] == [list(range(50)), list(range(50, 70))]
    assert plan.judged.tolist() == fold.test.tolist()


def test_what_shares_a_text_with_dev_does_not_choose_and_with_test_is_not_fitted() -> None:
    rows = np.arange(180).reshape(90, 2)
    rows[0, 0], rows[1, 0], rows[50, 1] = rows[60, 0], rows[75, 1], rows[80, 0]
    plan = plan_folds(PairsTask(rows, RNG.random(90)), ["train"] * 50 + ["dev"] * 20 + ["test"] * 20, seed=0)
    (fold,) = plan.folds
    assert fold.train.tolist() == [0, *range(2, 50), *range(51, 70)]
    assert [part.tolist() for part in fold.inner[0]] == [list(range(2, 50)), list(range(51, 70))]
    assert fold.test.tolist() == list(range(70, 90))
    assert any(note.startswith("2 pairs of the other parts share a text") for note in plan.notes)


def test_queries_of_one_text_are_one_group_and_so_are_queries_for_one_document() -> None:
    copies = np.arange(16)
    copies[[3, 12, 14]] = [2, 11, 5]  # documents 2 and 3, the queries 1 and 2, and a document and a query
    relevant = tuple({row: 1.0} for row in (0, 1, 4, 2, 6, 3))
    task = QueriesTask(np.arange(10, 16), np.arange(10), relevant, np.full(6, -1), copies)
    assert task.keys[:, 0].tolist() == [10, 11, 11, 13, 5, 15]
    assert task.groups.tolist() == [0, 1, 1, 2, 3, 2]


def test_the_score_is_the_pair_weighted_mean_of_the_folds_spearman() -> None:
    task = some_pairs(60, 4000)
    plan = plan_folds(task, (), seed=2)
    values = RNG.normal(size=(3, 60))
    outer = [fold for folds in plan.repeats for fold in folds]
    weights = np.vstack([np.ones(60), RNG.integers(0, 3, size=60)]).astype(float)
    means = fold_means(task, plan, [values[:, fold.test] for fold in outer], weights)
    for row in range(2):
        for candidate in range(3):
            assert means[candidate, row] == pytest.approx(
                by_hand(task, plan, values[candidate], weights[row]), abs=1e-9
            )


def by_hand(task: PairsTask, plan: FoldPlan, values: np.ndarray, weights: np.ndarray) -> float:
    """Each resample written out, ranked by scipy."""
    scores = []
    for folds in plan.repeats:
        sums, sizes = 0.0, 0.0
        for fold in folds:
            drawn = np.repeat(fold.test, weights[fold.test].astype(int))
            sums += len(drawn) * spearmanr(values[drawn], task.scores[drawn]).statistic
            sizes += len(drawn)
        scores.append(sums / sizes)
    return float(np.mean(scores))


def test_items_of_a_test_part_are_not_joined_by_items_of_the_train_part() -> None:
    """Each test pair has a text of its own and an article, and pairs of the train part join the articles."""
    own, articles, asked = np.arange(100), np.arange(100, 200), np.repeat(np.arange(200, 300), 3)
    mixed = np.random.default_rng(0).permutation(np.repeat(articles, 3))
    apart = np.arange(300, 400).reshape(50, 2)  # train pairs of other texts, which alone are fitted on
    rows = np.concatenate([np.stack([own, articles], axis=1), np.stack([asked, mixed], axis=1), apart])
    task, parts = PairsTask(rows, np.arange(450.0)), ["test"] * 100 + ["train"] * 350
    assert len(np.unique(task.groups[:400])) < 5
    for plan in (plan_comparison(task, parts, 0), plan_folds(task, parts, seed=0)):
        assert group_count(plan.design) == 100
    queries = QueriesTask(
        np.arange(4), np.arange(4, 8), ({4: 1.0}, {5: 1.0}, {4: 1.0, 5: 1.0}, {6: 1.0}), np.full(4, -1)
    )
    assert len(np.unique(queries.groups)) == 2
    assert queries.groups_among(np.array([0, 1, 3])).tolist() == [0, 1, 2]
