"""A decision claims what is there, claims nothing where there is nothing, and never fits on what it judges."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from safetensors.numpy import save_file

import sentfold
from sentfold.data.datasets import Dataset, class_name
from sentfold.data.tables import DataError
from sentfold.decision.compress import compress
from sentfold.decision.decide import AUTOMATIC, MOST_WEIGHTS, chunk_size, decide, decide_dataset
from sentfold.decision.encoders import PAGE_START
from sentfold.decision.families import (
    FAMILIES,
    SHRINKAGE,
    WIDEST,
    Family,
    Points,
    Rows,
    all_but_the_top,
    axes_of,
    embedding,
    linear_adapter,
    mean_removal,
    principal_components,
    smoothing,
)
from sentfold.decision.folds import plan_folds
from sentfold.decision.inputs import first_copies, kin_of, make_task
from sentfold.decision.nested import Material, fit_families
from sentfold.decision.spaces import LandmarkSpace, LinearSpace, SmoothedSpace, load_space, save_space
from sentfold.decision.tasks import QueriesTask
from sentfold.errors import ArtifactError, ParameterError
from sentfold.forms import compose
from sentfold.manifold.abtt import removal_map
from sentfold.manifold.base.linear import LinearMap, principal_axes
from sentfold.retrieval.base.ranking import unit_rows


def column_of(values: list[object]) -> np.ndarray:
    """As pandas hands out a column of lists or arrays."""
    column = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        column[row] = value
    return column


FEW = (Family("mean removal", mean_removal), Family("all but the top", all_but_the_top))
ADAPTER = Family("linear adapter from labels", linear_adapter, supervised=True)
Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]


def pairs_of(
    m: int, *, noise: float = 0.0, d: int = 12, seed: int = 0, blind: bool = False
) -> tuple[np.ndarray, Pairs]:
    """Pairs whose score is their correlation; `noise` in one direction hides it; blind scores are noise."""
    rng = np.random.default_rng(seed)
    alike = rng.uniform(0, 1, m)
    left = rng.normal(size=(m, d))
    right = alike[:, None] * left + np.sqrt(1 - alike**2)[:, None] * rng.normal(size=(m, d))
    x = np.concatenate([left, right])
    x[:, 0] += noise * rng.normal(size=2 * m)
    return x.astype(np.float32), (np.arange(m), np.arange(m, 2 * m), rng.normal(size=m) if blind else alike)


def test_a_direction_of_noise_is_found_and_its_removal_recommended() -> None:
    x, pairs = pairs_of(300, noise=6.0)
    decision = decide(x, pairs=pairs, families=FEW)
    assert decision.recommended
    assert decision.name.startswith("all but the top")
    assert decision.verdict.startswith("Use all but the top")
    low = decision.candidates[0].low
    fresh, (left, right, scores) = pairs_of(4000, noise=6.0, seed=9)
    images = decision.space.transform(fresh)
    gain = 100 * (rank_correlation(images, left, right, scores) - rank_correlation(fresh, left, right, scores))
    assert gain > low > 0  # on new data from the same source


def rank_correlation(x: np.ndarray, left: np.ndarray, right: np.ndarray, scores: np.ndarray) -> float:
    from scipy.stats import spearmanr

    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return float(spearmanr((unit[left] * unit[right]).sum(axis=1), scores).statistic)


@pytest.mark.parametrize("kind", ["noise", pytest.param("hurt", marks=pytest.mark.slow)])
def test_where_nothing_helps_few_data_sets_get_a_recommendation(kind: str) -> None:
    found = 0
    for seed in range(30):
        x, pairs = pairs_of(100, seed=seed, blind=kind == "noise")
        found += decide(x, pairs=pairs, families=FEW, seed=seed).recommended
    # Were the chance 6.1% each, more than 5 of 30 would be seen once in 200 times.
    assert found <= 5


def rotation(rows: Rows) -> Iterator[Points]:
    d = rows.x.shape[1]
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(d, d)))[0]
    yield Points(LinearSpace(LinearMap(np.zeros(d), turned, np.empty(0))), {"": 0})


def test_a_rotation_is_the_same_as_cosine_and_widens_no_interval() -> None:
    x, pairs = pairs_of(150, noise=1.0)
    alone = decide(x, pairs=pairs, families=FEW)
    beside = decide(x, pairs=pairs, families=(*FEW, Family("rotation", rotation)))
    turned = next(candidate for candidate in beside.candidates if candidate.name == "rotation")
    assert turned.identical
    assert (turned.difference, turned.low, turned.high) == (0.0, 0.0, 0.0)
    assert [(c.low, c.high) for c in beside.candidates if c.name in ("mean removal", "all but the top")] == [
        (c.low, c.high) for c in alone.candidates if c.name in ("mean removal", "all but the top")
    ]


def seen_rows(seen: list[np.ndarray], supervised: bool) -> Family:
    def spaces(rows: Rows) -> Iterator[Points]:
        seen.extend([rows.x, rows.local, rows.alike] if not supervised else [rows.alike])
        yield from mean_removal(Rows(rows.x, rows.local, rows.alike))

    return Family("spy", spaces, supervised=supervised, local=not supervised)


@pytest.mark.parametrize("unlabelled", [0, 2000])
def test_no_space_is_fitted_on_a_text_that_it_is_judged_on(unlabelled: int) -> None:
    """Each fold's fit is given a family that records its rows; a text is told by its first number."""
    x, pairs = pairs_of(60)
    x = np.concatenate([x, np.random.default_rng(5).normal(size=(unlabelled, x.shape[1])).astype(np.float32)])
    x[:, 0] = np.arange(len(x))
    task, needed, free = make_task(np.arange(len(x)), pairs, None)
    plan = plan_folds(task, (), seed=0)
    for number, fold in enumerate(plan.folds):
        seen: list[np.ndarray] = []
        alone = plan.__class__((), fold, plan.judged, plan.design, ())
        fit_families(Material(x, needed, free, task, alone), (seen_rows(seen, False),), workers=1)
        held_out = set(needed[task.keys[fold.test]].ravel().tolist())
        fitted = set(np.concatenate([rows[:, 0] for rows in seen]).astype(int).tolist())
        assert not fitted & held_out, number
        assert fitted


def test_scores_of_held_out_pairs_change_nothing_that_was_fitted_or_chosen() -> None:
    x, (left, right, scores) = pairs_of(120, noise=2.0)
    splits = ["train"] * 60 + ["dev"] * 20 + ["test"] * 40
    changed = scores.copy()
    changed[80:] = changed[80:][::-1]
    one = decide(x, pairs=(left, right, scores), splits=splits, families=(*FEW, ADAPTER))
    two = decide(x, pairs=(left, right, changed), splits=splits, families=(*FEW, ADAPTER))
    assert {c.name: c.chosen for c in one.candidates} == {c.name: c.chosen for c in two.candidates}
    assert one.cosine != two.cosine


def test_a_dev_part_of_one_score_does_not_choose() -> None:
    """All spaces score alike there, so the first one was chosen, whatever the train part says."""
    x, (left, right, scores) = pairs_of(200, noise=6.0)
    rounded = (scores > 0.5).astype(float)
    dev = np.flatnonzero(rounded[:100] == 0)[:20]
    splits = np.array(["train"] * 100 + ["test"] * 100)
    blank = splits.copy()
    blank[dev] = "dev"
    one, two = (decide(x, pairs=(left, right, rounded), splits=list(parts), families=FEW) for parts in (splits, blank))
    assert one.candidates[0].chosen == two.candidates[0].chosen != {"cosine": 1}
    assert sum("no two values to choose by" in note for note in two.notes) == 1
    assert not any("no two values to choose by" in note for note in one.notes)


def test_the_reach_that_a_verdict_names_is_that_of_what_it_is_about() -> None:
    x, pairs = pairs_of(60)
    found = decide(x, pairs=pairs, families=FEW)
    automatic, near, far = (
        replace(found.candidates[0], name=name, difference=4.0, low=low, detectable=reach, identical=identical)
        for name, low, reach, identical in (("a", -1.0, 9.0, False), ("b", 1.0, 6.5, False), ("c", -2.0, 8.0, False))
    )
    by_family = replace(found, candidates=(automatic, near, far), recommended=True, name="b")
    assert "this kind of change beats" in by_family.verdict and "below 6.5 points" in by_family.verdict
    same = replace(automatic, identical=True, difference=0.0, low=0.0)
    of_itself = replace(found, candidates=(same, near, far), recommended=False)
    assert "was cosine itself" in of_itself.verdict and "below 8.0 points" in of_itself.verdict


def test_fewer_than_twenty_groups_give_no_verdict() -> None:
    x, (left, right, scores) = pairs_of(60, noise=6.0)
    decision = decide(x, pairs=(left % 15, right, scores), families=FEW)
    assert decision.groups == 15
    assert decision.verdict.startswith("No verdict: the 60 pairs form 15 independent groups")
    assert not decision.recommended
    assert np.array_equal(decision.space.transform(x), x)


def test_labels_and_every_family_at_once() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, size=400)
    x = rng.normal(size=(400, 24)).astype(np.float32)
    x[:, 3] += 2.0 * labels
    x[:, 0] += 8.0 * rng.normal(size=400)
    decision = decide(x, labels=labels)
    assert decision.recommended
    assert decision.candidates[0].name == AUTOMATIC
    assert {c.name for c in decision.candidates[1:]} | set(decision.reasons) == {family.name for family in FAMILIES}
    assert len(decision.describe().splitlines()) <= 12


@pytest.mark.slow
def test_the_same_data_gives_the_same_bytes_on_any_number_of_threads(tmp_path: Path) -> None:
    x, pairs = pairs_of(200, noise=3.0, d=20)
    task, needed, free = make_task(np.arange(len(x)), pairs, None)
    material = Material(x, needed, free, task, plan_folds(task, (), seed=0))
    one, two = (fit_families(material, FAMILIES, workers=workers) for workers in (1, 2))
    assert one.reasons == two.reasons
    for first, second in zip(one.outcomes, two.outcomes, strict=True):
        assert [(o.gain, o.point, o.values.tobytes()) for o in first] == [
            (o.gain, o.point, o.values.tobytes()) for o in second
        ]
    for name in ("a", "b"):
        decide(x, pairs=pairs, families=FEW).save(tmp_path / name)
    for file in ("verdict.json", "space.json", "space.safetensors"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert json.loads((tmp_path / "a" / "verdict.json").read_bytes())["recommended"] is True


def test_of_questions_that_are_duplicates_no_pair_is_learnt_the_other_way_round() -> None:
    """Each question is a document too: the train part has (a, b) and the test part has (b, a)."""
    count = 30
    rows = np.arange(2 * count + 5)
    answers = [*range(count, 2 * count), *range(count), *[2 * count + 5] * 5]
    task = QueriesTask(rows, np.arange(2 * count + 6), [{row: 1.0} for row in answers], rows)
    splits = ["train"] * count + ["test"] * count + ["train"] * 5
    plan = plan_folds(task, splits, seed=0)
    assert plan.final.train.tolist() == [*range(2 * count, 2 * count + 5)]
    assert f"{count} queries of the other parts share a text with the test part: nothing learns them" in plan.notes
    assert not any("known documents" in note for note in plan.notes)
    shared = plan_folds(task, ["train"] * 2 * count + ["train", "train", "test", "test", "test"], seed=0).notes
    assert any(note.startswith("3 test queries have a relevant document that queries of the other") for note in shared)
    splits = ["dev"] * count + ["train"] * count + ["test"] * 5
    (choosing, dev), *_ = plan_folds(task, splits, seed=0).final.inner
    assert len(choosing) == 0 or not {answers[query] for query in choosing} & set(dev.tolist())


def test_no_query_that_is_an_answer_to_a_test_query_is_learnt() -> None:
    """Duplicates by date: each question points to an older one, the newest are the test part."""
    count = 30
    oldest, middle, newest = np.arange(3 * count).reshape(3, count)
    rows = np.r_[middle, newest, 3 * count + np.arange(5)]
    answers = [*oldest, *middle, *[oldest[0]] * 5]
    task = QueriesTask(rows, np.arange(2 * count), [{row: 1.0} for row in answers], np.full(len(rows), -1))
    plan = plan_folds(task, ["train"] * count + ["test"] * count + ["train"] * 5, seed=0)
    assert plan.final.train.tolist() == [*range(2 * count, 2 * count + 5)]


def test_a_test_query_that_is_worded_as_its_answer_leaves_the_other_queries_to_this_answer_in_the_train_part() -> None:
    """A list of answers: document i is the answer to the queries of i, and the test query of i has its words."""
    count = 30
    documents = np.arange(count)
    rows = np.r_[count + np.arange(2 * count), documents]
    answers = [*documents, *documents, *documents]
    relevant = [{row: 1.0} for row in answers]
    for _ in range(2):
        task = QueriesTask(rows, documents, relevant, rows)
        plan = plan_folds(task, ["train"] * 2 * count + ["test"] * count, seed=0)
        assert plan.final.train.tolist() == [*range(2 * count)]
        assert any("known documents" in note for note in plan.notes)
        relevant = [*relevant[: 2 * count], *({row: 2.0, (row + 1) % count: 1.0} for row in documents)]


def test_what_the_test_part_also_has_is_not_learnt() -> None:
    x, (left, right, scores) = pairs_of(160, blind=True)
    own, test = np.arange(60), np.arange(60, 160)
    both = np.r_[own, test, test]  # the train part holds the test part
    apart = [("train", own), ("test", test)]
    found = []
    for items, splits in (
        (np.r_[own, test, test], ["train"] * 160 + ["test"] * 100),
        (np.r_[own, test], [name for name, part in apart for _ in part]),
    ):
        pairs = left[items], right[items], scores[items]
        found.append(decide(x, pairs=pairs, splits=splits, families=(*FEW, ADAPTER)))
    assert found[0].candidates == found[1].candidates
    assert any(
        note.startswith("100 pairs of the other parts share a text with the test part") for note in found[0].notes
    )
    alone = left[both[60:]], right[both[60:]], scores[both[60:]]
    with pytest.raises(DataError, match="nothing that the test part does not have"):
        decide(x, pairs=alone, splits=["train"] * 100 + ["test"] * 100, families=FEW)
    chained = decide(  # pairs that hang together leave too few rows for some families, and that is said
        x, pairs=(np.r_[np.zeros(60, int), left[60:]], right, scores), splits=["train"] * 60 + ["test"] * 100
    )
    assert set(chained.reasons.values()) <= {
        "too few texts or dimensions to fit them on",
        "too few labels to learn from",
    }


@pytest.mark.parametrize("by", ["pairs", "labels"])
def test_a_text_under_another_row_is_the_same_text(by: str) -> None:
    x, (left, right, scores) = pairs_of(60, blind=True)
    shift = np.repeat(np.arange(6) * len(x), 60)  # each text six times, with equal vectors
    tiled = np.tile(x, (6, 1))
    data = (
        {"pairs": (np.tile(left, 6) + shift, np.tile(right, 6) + shift, np.tile(scores, 6))}
        if by == "pairs"
        else {"labels": np.tile(np.arange(len(x)) % 2, 6)}
    )
    decision = decide(tiled, families=(*FEW, ADAPTER), **data)
    assert decision.groups == (60 if by == "pairs" else 120)
    assert not decision.recommended
    assert any(note.startswith("600 texts have the vector of an earlier one") for note in decision.notes)
    assert sentfold.compress(tiled, resamples=50, **data).groups == decision.groups


@pytest.mark.parametrize("by", ["pairs", "labels"])
def test_texts_that_differ_in_case_and_punctuation_alone_are_held_out_together(by: str) -> None:
    x, (left, right, scores) = pairs_of(60, blind=True)
    noise = np.random.default_rng(1).standard_normal((4 * len(x), x.shape[1])).astype(np.float32)
    near = np.tile(x, (4, 1)) + 0.02 * noise
    forms = ("text {}", "Text {}.", "TEXT {}!", " text  {} ... ")
    texts = tuple(form.format(row) for form in forms for row in range(len(x)))
    shift = np.repeat(np.arange(4) * len(x), 60)
    rows = np.column_stack([np.tile(left, 4) + shift, np.tile(right, 4) + shift])
    if by == "pairs":
        data = Dataset("near", "pairs", texts, rows, np.tile(scores, 4))
    else:
        classes = np.tile(np.random.default_rng(0).integers(0, 2, len(x)), 4)
        data = Dataset("near", "labels", texts, np.arange(len(texts)), classes.astype(np.float64), classes=("a", "b"))
    found = decide_dataset(data, near, families=(*FEW, ADAPTER))
    assert found.groups == (60 if by == "pairs" else 120)
    assert not found.recommended
    assert any(note.startswith("360 texts differ from an earlier one in case") for note in found.notes)
    # From Python, with an encoder in the place of vectors.
    vector_of = dict(zip(texts, near, strict=True))
    sides = [[texts[row] for row in column] for column in rows.T]
    own = {"pairs": (*sides, data.values)} if by == "pairs" else {"labels": (list(texts), data.values)}

    def encode(asked: Sequence[str]) -> np.ndarray:
        return np.stack([vector_of[text] for text in asked])

    again = decide(encode, families=(*FEW, ADAPTER), **own)
    assert (again.groups, again.recommended) == (found.groups, found.recommended)
    assert any(note.startswith("360 texts differ from an earlier one in case") for note in again.notes)
    if by == "pairs":  # random classes tell nothing that a form could lose
        assert sentfold.compress(encode, resamples=50, **own).groups == found.groups


def test_kin_are_joined_by_their_text_or_by_a_copy_and_symbols_and_vowel_signs_count() -> None:
    texts = ["A b.", "a b!", "A  B", "c", "C++", "...", "!!!", "कि", "की", "Straße", "STRASSE"]
    assert kin_of(np.arange(11), texts).tolist() == [0, 0, 0, 3, 4, 5, 6, 7, 8, 9, 9]
    assert kin_of(np.array([0, 1, 2, 0]), ["x", "y", "y.", "z"]).tolist() == [0, 1, 1, 0]
    compatible = ["\uff76\uff9e", "\u30ac", "\u30ab\u3099", "\ufb01x", "FIx", "\u2460", "1", "\u30ab"]
    assert kin_of(np.arange(8), compatible).tolist() == [0, 0, 0, 3, 3, 5, 5, 7]
    turkish = ["iyi günler", "İYİ GÜNLER", "İyi günler!", "iyi gün", "kır", "kir", "ż", "z"]
    assert kin_of(np.arange(8), turkish).tolist() == [0, 0, 0, 3, 4, 5, 6, 7]
    assert kin_of(np.array([0, 0]), ()).tolist() == [0, 0]


@pytest.mark.parametrize("marks", ["\u0301\u0323", "\u0f73", "\u0301\uff9e", "\u3099\uff9f"])
def test_a_million_marks_on_one_letter_take_no_time(marks: str) -> None:
    """Canonical order takes the square of a run's length: over an hour for this one. Unicode allows 30 in a row.

    Some of these characters are marks only when they are decomposed.
    """
    texts = ["Cafe\u0301", "cafÉ!", "cafe", "e" + 500_000 * marks, "e" + (500_000 // len(marks)) * marks]
    assert kin_of(np.arange(5), texts).tolist() == [0, 0, 2, 3, 3]
    assert class_name(texts[3]) == class_name(texts[4])


def test_every_mark_of_unicode_is_counted_in_a_run() -> None:
    for code in range(sys.maxunicode + 1):
        if unicodedata.combining(chr(code)) or unicodedata.combining(unicodedata.normalize("NFKD", chr(code))[0]):
            assert len(compose("a" + 50 * chr(code))) < 32 * 3


def test_rows_are_copies_by_all_their_vectors_or_by_their_text_and_zeros_are_none() -> None:
    x = np.array([[1, 0], [2, 1], [1, -0.0], [0, 0], [0, 0], [2, 1], [3, 3]], dtype=np.float32)
    y = np.array([[1], [2], [3], [4], [5], [2]], dtype=np.float32)
    assert first_copies(x).tolist() == [0, 1, 0, 3, 4, 1, 6]
    assert first_copies(x, y).tolist() == [0, 1, 2, 3, 4, 1]
    assert first_copies(x, texts=["a", "b", "c", "d", "e", "f", "b"]).tolist() == [0, 1, 0, 3, 4, 1, 1]
    assert first_copies(texts=["a", "b", "a"]).tolist() == [0, 1, 0]


def test_no_space_is_fitted_on_an_unlabelled_copy_of_a_text_that_it_is_judged_on() -> None:
    x, pairs = pairs_of(60)
    _, needed, free = make_task(first_copies(np.concatenate([x, x, x + 1])), pairs, None)
    assert needed.tolist() == list(range(120))
    assert free.tolist() == list(range(240, 360))


def test_scores_that_are_distances_are_refused() -> None:
    x, (left, right, scores) = pairs_of(200)
    for command in (sentfold.decide, sentfold.compress):
        with pytest.raises(DataError, match="cosine falls as the scores rise"):
            command(x, pairs=(left, right, 1 - scores))


def test_vectors_in_another_order_are_told_by_their_score() -> None:
    x, (left, right, scores) = pairs_of(200)
    shuffled = np.random.default_rng(0).permutation(x)
    asked = "little above chance, or below: are the vectors those of the texts, in their order?"
    for vectors, told in ((x, False), (shuffled, True)):
        found = sentfold.decide(vectors, pairs=(left, right, scores), families=FAMILIES[:1])
        assert any(asked in note for note in found.notes) == told
    rng = np.random.default_rng(1)
    classes, noise = rng.integers(0, 2, 200), rng.normal(size=(200, 8))
    for vectors, told in ((noise + 9 * classes[:, None], False), (noise, True)):
        found = sentfold.decide(vectors, labels=classes, families=FAMILIES[:1])
        assert any(asked in note for note in found.notes) == told
    texts = x[:15]  # all pairs of few texts: seven groups, of which any score could be chance
    left, right = np.array([*combinations(range(15), 2)]).T
    cosines = unit_rows(texts)[left] * unit_rows(texts)[right]
    found = sentfold.decide(texts, pairs=(left, right, cosines.sum(axis=1)), families=FAMILIES[:1])
    assert found.verdict.startswith("No verdict") and not any(asked in note for note in found.notes)
    with pytest.raises(DataError, match="in their order"):
        sentfold.find_threshold(noise[:, 0], classes)
    queries = np.repeat(np.arange(50), 10)  # each with ten candidates, of which few match
    match = np.arange(500) % 50 == 0
    rows = np.stack([queries, 50 + np.arange(500)], axis=1)
    assert (
        sentfold.find_threshold(0.5 * match + 0.1 * rng.random(500), match, rows=rows)
        .describe()
        .startswith("From cosine")
    )


def test_a_test_part_of_one_score_is_refused() -> None:
    """`compress` recommended the smallest form, with an interval from 0 to 0; the record of `decide` was no JSON."""
    rng = np.random.default_rng(0)
    x, scores = rng.normal(size=(200, 8)).astype(np.float32), rng.integers(0, 5, 100).astype(float)
    scores[60:] = 3
    pairs, splits = (np.arange(100), np.arange(100, 200), scores), ["train"] * 60 + ["test"] * 40
    with pytest.raises(DataError, match="scores that are judged are equal"):
        decide(x, pairs=pairs, splits=splits)
    with pytest.raises(DataError, match="too few items are independent"):
        compress(x, pairs=pairs, splits=splits)


def test_groups_of_very_different_sizes_count_as_few() -> None:
    rng = np.random.default_rng(0)
    rows = np.r_[np.repeat(np.arange(5), 100), np.arange(5, 30)]  # five texts a hundred times, 25 once
    x, classes = rng.normal(size=(30, 8)), rng.integers(0, 2, 525)
    decision = decide(x, labels=(rows, classes), families=FEW)
    assert decision.groups == 30
    assert decision.verdict.startswith("No verdict: the 525 texts form 30 independent groups, as good as 5.5 ")
    assert not decision.recommended
    with pytest.raises(DataError, match="too few items are independent") as refused:
        sentfold.compress(x, labels=(rows, classes))
    assert refused.value.got == "30 groups, as good as 5.5 equally large ones"
    equal = decide(x, labels=(np.repeat(np.arange(20), 3), classes[:60]), families=FEW)
    assert not equal.verdict.startswith("No verdict")


def test_the_verdict_shows_the_interval_of_the_space_that_it_names() -> None:
    x, pairs = pairs_of(300, noise=6.0)
    decision = decide(x, pairs=pairs, families=FEW)
    automatic, *_ = decision.candidates
    wide = replace(automatic, name="wide", difference=30.0, low=0.1, high=59.9)
    narrow = replace(automatic, name="narrow", difference=20.0, low=15.0, high=25.0)
    shown = replace(decision, name="narrow", candidates=(replace(automatic, low=-1.0), wide, narrow))
    assert "beats plain cosine by +20.0 [+15.0, +25.0] points" in shown.verdict


def test_resamples_of_many_items_are_held_a_few_at_a_time() -> None:
    assert (chunk_size(120), chunk_size(120, 33_333)) == (200, 33_333)
    assert all(chunk_size(m) * m <= MOST_WEIGHTS for m in (400_000, 4_000_000))
    assert chunk_size(10**9) == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "nothing to decide by"),
        ({"labels": [0, 1] * 10, "pairs": ([0], [1], [1.0])}, "nothing to decide by"),
        ({"pairs": ([0, 1], [1, 99], [0.0, 1.0])}, "right are no rows"),
        ({"pairs": ([0.5, 1.0], [1, 2], [0.0, 1.0])}, "left are no rows"),
        ({"pairs": ([0, 1], [1, 2], [0.0, np.nan])}, "scores do not fit"),
        ({"pairs": ([0, 1], [1, 2], [0.0])}, "scores do not fit"),
        ({"pairs": ([0, 1], [1, 2], [1.0, 1.0])}, "all scores are equal"),
        ({"labels": [1] * 20}, "all classes are equal"),
        ({"labels": [0, 1] * 10, "splits": ["train"] * 20}, "splits do not fit"),
        ({"labels": [0, 1] * 10, "splits": ["train", "test"]}, "splits do not fit"),
        ({"labels": [0, 1] * 5 + [-1] * 10, "splits": ["train"] * 10 + ["test"] * 10}, "no class of the other parts"),
        ({"labels": np.array([0.0, 1.0] * 9 + [np.nan] * 2)}, "a label is empty"),
        ({"labels": ["a", "b"] * 9 + ["a", float("nan")]}, "a label is empty"),
        ({"labels": ["a", "b"] * 9 + ["a", " "]}, "a label is empty"),
        ({"labels": [["a"], ["b"]] * 9 + [["a", "b"], ["a"]]}, "a text has a list of labels"),
        ({"labels": column_of([["a"], ["b"]] * 10)}, "a text has a list of labels"),
        ({"labels": column_of([np.array(["a"]), np.array(["b"])] * 10)}, "a text has a list of labels"),
        ({"labels": ["a", '{"choices": ["a", "b"]}'] * 10}, "a text has a list of labels"),
        ({"pairs": [(0, 1, 1.0), (1, 2, 0.0)]}, "pairs are not given by columns"),
        ({"pairs": {"left": [0], "right": [1], "scores": [1.0]}}, "pairs are not given by columns"),
        ({"labels": (np.arange(3), np.array(["a", "b", None], dtype=object))}, "a label is empty"),
    ],
)
def test_arrays_that_do_not_fit_are_value_errors(arguments: dict[str, object], named: str) -> None:
    with pytest.raises(DataError, match=named) as refused:
        sentfold.decide(np.random.default_rng(0).normal(size=(20, 4)), **arguments)
    assert isinstance(refused.value, ValueError)


def test_labelled_texts_that_are_forms_of_one_text_are_refused() -> None:
    texts = ["Yes", "yes!", "YES?", "y e s"] * 5
    with pytest.raises(DataError, match="forms of one text"):
        decide(lambda some: np.random.default_rng(0).normal(size=(len(some), 4)), labels=(texts, [0, 1] * 10))


def test_whole_numbers_that_floating_point_does_not_tell_apart_are_classes_of_their_own() -> None:
    """numpy makes floating-point numbers of whole numbers below and above 2**63, such as hashes."""
    labels = [2**63 - 1, 2**63, 2**63 + 1, 5] * 10
    vectors = np.random.default_rng(0).standard_normal((40, 4))
    assert any("4 classes" in note for note in decide(vectors, labels=labels).notes)


def test_blanks_around_a_label_make_no_class() -> None:
    x, _ = pairs_of(60)
    classes = [("a", "b ", "a ", "b")[row % 4] for row in range(120)]
    plain = [label.strip() for label in classes]
    assert decide(x, labels=classes, families=FEW).to_json() == decide(x, labels=plain, families=FEW).to_json()


@pytest.mark.parametrize("word", ["nan", "NA", "#N/A", "NULL"])
def test_words_for_a_missing_label_are_refused_by_the_library_too(word: str) -> None:
    """numpy makes the word nan of NaN where it makes an array of texts."""
    with pytest.raises(DataError, match=r"(?s)a label may be missing.*row 2 "):
        decide(pairs_of(60)[0], labels=np.array(["a", "b", word, "a"] * 30), families=FEW)


@pytest.mark.parametrize("word", ["", " ", None, float("nan"), 5])
def test_an_empty_text_is_refused_by_the_library_too(word: object) -> None:
    """`df.fillna("")` makes one vector of all texts that are missing."""
    texts = ["a cat", "a dog", word, "a cow"] * 10
    message = r"(?s)a text is missing or empty.*column 1 .*row 2 .*('[ ]*'|None|nan|5); 10 such rows.*str\(5\)"
    with pytest.raises(DataError, match=message):
        decide("wordllama", pairs=([f"text {n}" for n in range(40)], texts, list(range(40))))
    with pytest.raises(DataError, match="an encoder needs texts"):
        decide("wordllama", pairs=([f"text {n}" for n in range(40)], list(range(40)), list(range(40))))


@pytest.mark.slow
def test_a_column_of_arrays_is_an_array() -> None:
    x, labels = pairs_of(60)[0], ["a", "b"] * 60
    column = column_of(list(x))
    assert decide(column, labels=labels, families=FEW).to_json() == decide(x, labels=labels, families=FEW).to_json()
    exact = [[Decimal(repr(float(one))) for one in row] for row in x]
    for given in (column[:, None], np.array([column_of(list(row)) for row in x]), exact):
        assert decide(given, labels=labels, families=FEW).to_json() == decide(x, labels=labels, families=FEW).to_json()
    with pytest.raises(DataError, match="vectors are no matrix"):
        decide(x[:, None], labels=labels, families=FEW)
    one_column = np.array(labels, dtype=object)[:, None]  # as df[["label"]] has them
    assert decide(x, labels=one_column, families=FEW).to_json() == decide(x, labels=labels, families=FEW).to_json()
    for odd in ((label for label in labels), dict(enumerate(labels)), set(labels)):
        with pytest.raises(DataError, match="labels are no list"):
            decide(x, labels=odd, families=FEW)


@pytest.mark.slow
def test_a_tensor_is_an_array_also_in_16_bits_and_with_a_gradient() -> None:
    """As `model.encode(texts, convert_to_tensor=True)` gives it."""
    import torch

    x, labels = pairs_of(60)[0].astype(np.float32), ["a", "b"] * 60
    expected = decide(x, labels=labels, families=FEW).to_json()
    assert decide(torch.tensor(x, requires_grad=True), labels=labels, families=FEW).to_json() == expected
    short = torch.tensor(x).bfloat16()
    rounded = decide(short.float().numpy(), labels=labels, families=FEW).to_json()
    assert decide(short, labels=labels, families=FEW).to_json() == rounded
    for sparse in (torch.tensor(x).to_sparse(), torch.tensor(x).to_sparse_csr()):
        assert decide(sparse, labels=labels, families=FEW).to_json() == expected
    assert decide([*short], labels=labels, families=FEW).to_json() == rounded
    packed = np.packbits(x > 0, axis=1)
    for given in (packed, torch.from_numpy(packed)):
        with pytest.raises(DataError, match="packed bits"):
            decide(given, labels=labels, families=FEW)
    texts = [f"text {row}" for row in range(len(x))]
    assert decide(lambda some: short, labels=(texts, labels), families=FEW).items == 120
    with pytest.raises(DataError, match="several shapes"):
        decide([*short.split(50)], labels=labels, families=FEW)


def test_scores_and_classes_may_be_tensors_in_16_bits_and_with_a_gradient() -> None:
    import torch

    x, (left, right, scores) = pairs_of(60)
    scores = torch.tensor(np.round(scores)).bfloat16()
    expected = decide(x, pairs=(left, right, scores.float().numpy()), families=FEW).to_json()
    for given in (scores, scores.to_sparse(), scores.float().requires_grad_()):
        assert decide(x, pairs=(left, right, given), families=FEW).to_json() == expected
    classes = torch.tensor([0.0, 1.0] * 60).bfloat16()
    expected = decide(x, labels=classes.float().numpy(), families=FEW).to_json()
    for given in (classes, classes.float().requires_grad_()):
        assert decide(x, labels=given, families=FEW).to_json() == expected


def test_a_class_may_be_called_none_and_splits_may_be_an_array() -> None:
    x, (left, right, scores) = pairs_of(60)
    assert decide(x, labels=["none", "None"] * 60, families=FEW).items == 120
    splits = np.array(["train"] * 30 + ["test"] * 30)
    assert decide(x, pairs=(left, right, scores), splits=splits, families=FEW).items == 30


def test_one_vector_alone_and_vectors_of_another_width_are_refused_by_each_space() -> None:
    x = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)
    linear = LinearSpace(LinearMap(np.zeros(8), np.eye(8)[:, :3], np.ones(3)))
    for space in (linear, SmoothedSpace(x, 5, 0.5), LandmarkSpace(x, x[:, :3].copy(), 5, 1e-3)):
        assert space.transform(x[:1]).shape[0] == 1
        assert np.array_equal(space.transform(x[:2].tolist()), space.transform(x[:2]))
        for vectors in (x[0], x[:, :1]):
            with pytest.raises(ParameterError, match="vectors do not fit the space"):
                space.transform(vectors)


def test_a_decision_removes_the_page_and_the_fit_of_an_earlier_one(tmp_path: Path) -> None:
    """Else `append` would map vectors by that fit into a space of other vectors."""
    x, pairs = pairs_of(60)
    for found in (decide(x, pairs=pairs, families=FEW), compress(x, pairs=pairs, margin=50.0, resamples=200)):
        (tmp_path / "verdict.html").write_bytes(PAGE_START)
        (tmp_path / "encoder.json").write_text('{"method": "sif", "counts": {}, "sha256": ""}')
        found.save(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {
            *("verdict.json", "space.json", "space.safetensors", ".decision.lock")
        }


def test_pairs_of_one_cosine_are_refused_before_anything_is_fitted() -> None:
    x, pairs = np.arange(1.0, 81.0)[:, None], (np.arange(40), np.arange(40, 80), np.arange(40.0))
    for command in (sentfold.decide, sentfold.compress):
        with pytest.raises(DataError, match="all pairs have one cosine"):
            command(x, pairs=pairs)


class ByLength:
    """An encoder as a SentenceTransformer is one, which counts what it was given."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def encode(self, texts: list[str]) -> np.ndarray:
        self.given += texts
        return np.stack([np.random.default_rng(list(text.encode())).normal(size=6) for text in texts])


@pytest.mark.parametrize("as_function", [False, True])
def test_an_encoder_in_place_of_vectors_gives_the_decision_of_its_vectors(as_function: bool) -> None:
    rng = np.random.default_rng(0)
    left, right = ([f"text {number} {side}" for number in rng.integers(0, 50, 60)] for side in "ab")
    scores = rng.normal(size=60)
    model = ByLength()
    texts = list(dict.fromkeys([*left, *right]))
    x = ByLength().encode(texts)
    rows = tuple(np.array([texts.index(text) for text in side]) for side in (left, right))
    by_encoder = decide(model.encode if as_function else model, pairs=(left, right, scores), families=FEW[:1])
    assert model.given == texts  # each distinct text once
    assert by_encoder.to_json() == decide(x, pairs=(*rows, scores), families=FEW[:1]).to_json()
    with pytest.raises(DataError, match="needs texts"):
        decide(model, labels=[0, 1] * 30)
    with pytest.raises(DataError, match="needs texts"):
        decide(model, pairs=(*rows, scores))


# --- spaces -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spaces", [mean_removal, principal_components, smoothing, embedding])
def test_a_saved_space_maps_new_vectors_as_before(spaces: object, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x = (rng.normal(size=(400, 20)) @ rng.normal(size=(20, 20))).astype(np.float32)
    fresh = rng.normal(size=(7, 20)).astype(np.float32)
    for point in spaces(Rows(x, x, x[:0])):
        save_space(point.space, tmp_path / "whole")
        assert np.array_equal(load_space(tmp_path / "whole").transform(fresh), point.space.transform(fresh))
        for dimensions in point.names.values():
            space = point.space.cut(dimensions) if dimensions else point.space
            save_space(space, tmp_path / "space")
            images = space.transform(fresh)
            assert len({path.stat().st_mode for path in (tmp_path / "space").iterdir()}) == 1  # who reads one reads all
            assert np.array_equal(load_space(tmp_path / "space").transform(fresh), images)
            assert np.array_equal(images, point.space.transform(fresh)[:, : dimensions or None])
            alone = np.concatenate([space.transform(row[None]) for row in fresh])
            assert np.allclose(alone, images, atol=1e-5)  # an image depends on its own vector alone


def test_a_folder_without_a_space_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="no space"):
        load_space(tmp_path)


POOL = np.eye(6, 4, dtype=np.float32)
FORGED: dict[str, tuple[dict[str, object], dict[str, np.ndarray]]] = {
    "a matrix with NaN": ({"kind": "linear"}, {"mean": np.zeros(4), "matrix": np.full((4, 2), np.nan)}),
    "a mean of another width": ({"kind": "linear"}, {"mean": np.zeros(3), "matrix": np.eye(4)}),
    "a matrix of integers": ({"kind": "linear"}, {"mean": np.zeros(4), "matrix": np.eye(4, dtype=np.int64)}),
    "no neighbours": ({"kind": "smoothed", "neighbors": 0, "amount": 0.5}, {"pool": POOL}),
    "more neighbours than rows": ({"kind": "smoothed", "neighbors": 7, "amount": 0.5}, {"pool": POOL}),
    "neighbours whose weights take hours": (
        {"kind": "landmarks", "neighbors": 1001, "regularization": 1e-3},
        {"landmarks": np.eye(1001, 4), "coordinates": np.eye(1001, 1)},
    ),
    "neighbours in words": ({"kind": "smoothed", "neighbors": "3", "amount": 0.5}, {"pool": POOL}),
    "an infinite amount": ({"kind": "smoothed", "neighbors": 3, "amount": -np.inf}, {"pool": POOL}),
    "landmarks without coordinates": (
        {"kind": "landmarks", "neighbors": 2, "regularization": 1e-3}, {"landmarks": POOL, "coordinates": np.eye(2)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGED)
def test_a_space_that_would_give_wrong_vectors_is_refused_when_it_is_loaded(tmp_path: Path, what: str) -> None:
    settings, arrays = FORGED[what]
    (tmp_path / "space.json").write_text(json.dumps(settings))
    save_file(arrays, tmp_path / "space.safetensors")
    with pytest.raises(ArtifactError, match="no space that can be read"):
        load_space(tmp_path)


def test_the_adapter_makes_differences_of_like_vectors_round() -> None:
    rng = np.random.default_rng(2)
    apart = rng.normal(size=(5000, 4)) * [1.0, 2.0, 4.0, 8.0]
    points = list(linear_adapter(Rows(apart, apart, apart)))
    images = points[0].space.transform(apart)  # the least shrinkage
    before, after = (np.linalg.cond(np.cov(x.T)) for x in (apart, images))
    assert after < before / 4
    strongest = points[-1].space.transform(apart)
    assert np.allclose(strongest / strongest.std() * apart.std(), apart, rtol=0.6, atol=1.0)


def test_an_embedding_of_the_judged_texts_is_shown_apart_and_changes_no_verdict() -> None:
    x, pairs = pairs_of(250, d=20)
    fold = Family("fold", embedding, local=True, refitted=True)
    apart, without = (
        decide(x, pairs=pairs, families=(*FEW, family)) for family in (fold, replace(fold, refitted=False))
    )
    assert set(apart.transductive) == {"fold"}
    assert without.transductive == {}
    assert apart.candidates == without.candidates
    assert "outside the verdict" in apart.describe()


@pytest.mark.parametrize("n", [9, 30, 40])
def test_maps_of_fewer_rows_than_dimensions_are_those_of_the_whole_matrices(n: int) -> None:
    rng = np.random.default_rng(n)
    x = (rng.normal(size=(n, 40)) * rng.uniform(0.1, 3, 40) + 1).astype(np.float32)
    axes, whole = axes_of(x), principal_axes(x)
    assert axes.rank == whole.rank == n - 1
    assert axes.variances == pytest.approx(whole.variances[:n], abs=1e-12)
    assert axes.axes[:, :3] == pytest.approx(whole.axes[:, :3], abs=1e-9)
    for removed in (0, 3):
        assert removal_map(axes, removed).matrix == pytest.approx(removal_map(whole, removed).matrix, abs=1e-9)
    apart = rng.normal(size=(max(n, 10), 40)).astype(np.float32)
    scatter = apart.astype(np.float64).T @ apart
    scatter *= 40 / np.trace(scatter)
    for points, shrinkage in zip(linear_adapter(Rows(x, x, apart)), SHRINKAGE, strict=True):
        root = np.linalg.inv(scipy.linalg.sqrtm(scatter + shrinkage * np.eye(40)))
        assert points.space.transform(np.eye(40, dtype=np.float32)) == pytest.approx(root, abs=1e-5)


@pytest.mark.slow
def test_vectors_that_are_too_wide_to_fit_matrices_of_their_width_are_refused() -> None:
    """A Parquet file of 1.5 KB holds 60 of them, mostly zeros; a fit takes memory with the square of the width."""
    x = np.zeros((60, WIDEST + 1), dtype=np.float32)
    x[np.arange(60), np.arange(60)] = x[:, -1] = 1
    with pytest.raises(DataError, match="too wide"):
        decide(x, labels=np.arange(60) % 2)
    assert decide(x[:, :1000] + 0.1, labels=np.arange(60) % 2, families=(ADAPTER,)).items == 60


def test_numbers_that_are_objects_or_whole_floats_are_numbers() -> None:
    """As pandas and databases have them."""
    x, (left, right, scores) = pairs_of(60)
    expected = decide(x, pairs=(left, right, scores), families=FEW).to_json()
    exact = column_of([Decimal(repr(float(score))) for score in scores])
    for given in ((left, right, np.array(scores, dtype=object)), (left.astype(float), right.astype(object), exact)):
        assert decide(x, pairs=given, families=FEW).to_json() == expected
    for odd in (left + 0.5, np.where(left == 0, np.nan, left)):
        with pytest.raises(DataError, match="left are no rows"):
            decide(x, pairs=(odd, right, scores), families=FEW)
    with pytest.raises(DataError, match="rows are no rows"):
        decide(x, labels=(column_of([True, False] * 60), ["a", "b"] * 60), families=FEW)
    with pytest.raises(DataError, match="scores do not fit"):
        decide(x, pairs=(left, right, column_of([None, *scores[1:]])), families=FEW)


def test_pairs_are_the_same_as_a_tuple_a_list_and_an_array() -> None:
    x, (left, right, scores) = pairs_of(40)
    pairs = (left, right, np.rint(9 * scores).astype(np.int64))
    told = {decide(x, pairs=form(pairs), families=FEW).verdict for form in (tuple, list, np.array)}
    assert len(told) == 1


def test_two_labelled_texts_get_no_verdict() -> None:
    decision = decide(np.eye(2, dtype=np.float32), labels=[0, 1])
    assert decision.verdict.startswith("No verdict")


def test_tables_of_pandas_with_one_index_in_two_orders_are_refused() -> None:
    """As after a sort or a merge of the one. What is matched by place alone is given as arrays."""
    pandas = pytest.importorskip("pandas")
    x, (left, right, scores) = pairs_of(60)
    classes = np.repeat(["a", "b", "c"], 40)
    names = [f"id {row}" for row in range(120)]
    vectors, labels = pandas.DataFrame(x, index=names), pandas.Series(classes, index=names)
    decide(vectors, labels=labels, families=FEW)
    with pytest.raises(DataError, match=r"(?s)one index in two orders.*labels.loc\[vectors.index\]"):
        decide(vectors, labels=labels[::-1])
    with pytest.raises(DataError, match="one index in two orders"):
        decide(vectors, pairs=(left, pandas.Series(right), pandas.Series(scores).sort_values()))
    decide(vectors.reset_index(drop=True), pairs=(left, right, scores), families=FEW)
    for kind in ("float64", "Int64"):  # of the other index, as after a merge
        numbered = labels.set_axis(pandas.Index(np.arange(120) + 7).astype(kind))
        with pytest.raises(DataError, match="one index in two orders"):
            decide(vectors.set_axis(np.arange(120) + 7), labels=numbered[::-1])
    for absent in (None, float("nan"), pandas.NA):  # a name that is missing in both
        some = pandas.Index([absent, *names[1:]], dtype=object)
        decide(vectors.set_axis(some), labels=labels.set_axis(some), families=FEW)
    decide(vectors.set_axis(np.arange(120) + 1), labels=tuple(classes), families=FEW)  # by place
    for index in (np.arange(120)[::-1], np.arange(120) + 1):  # which the pairs could mean
        with pytest.raises(DataError, match="an index that are not those of their rows"):
            decide(pandas.DataFrame(x, index=index), pairs=(left, right, scores))
    parts = pandas.Series(np.repeat(["train", "test"], 60), index=names)
    decide(vectors, labels=labels, splits=parts, families=FEW)
    for command in (decide, sentfold.compress):  # parts joined by pandas.concat after a split
        with pytest.raises(DataError, match=r"(?s)one index in two orders.*splits.loc\[vectors.index\]"):
            command(vectors, labels=labels, splits=parts[::-1])
    with pytest.raises(DataError, match="one index in two orders"):
        sentfold.find_threshold(pandas.Series(scores), pandas.Series(scores > 0.5).sort_values())


def test_left_and_right_rows_of_two_numbers_are_an_error_of_the_data() -> None:
    x, (left, right, scores) = pairs_of(60)
    with pytest.raises(DataError, match="pairs are not of two rows each"):
        decide(x, pairs=(left, right[1:], scores))
