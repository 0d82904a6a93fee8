"""Without labels nothing is decided, and the geometry is described."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import skew
from sklearn.neighbors import NearestNeighbors

from sentfold.data.tables import DataError
from sentfold.decision.families import WIDEST, Family, all_but_the_top, mean_removal, smoothing
from sentfold.decision.unlabelled import describe_sentences, shared_neighbors


def test_a_shift_keeps_fewer_neighbours_than_nothing_and_is_stable() -> None:
    rng = np.random.default_rng(1)
    x = (rng.normal(size=(300, 10)) + 3.0).astype(np.float32)
    assert shared_neighbors(x, 5 * x) == 1.0
    families = (Family("mean removal", mean_removal), Family("all but the top", all_but_the_top))
    geometry = describe_sentences(x, families=families)
    centred, cut = geometry.shapes
    assert 0 < cut.kept < centred.kept < 1
    assert centred.stable > 0.8
    assert geometry.describe().startswith("No decision: ")
    assert len(geometry.describe().splitlines()) == 4


def test_a_family_that_needs_more_texts_is_left_out_with_a_reason() -> None:
    x = np.random.default_rng(2).normal(size=(60, 4)).astype(np.float32)
    geometry = describe_sentences(x, families=(Family("smoothing", smoothing, local=True),))
    assert geometry.shapes == ()
    assert geometry.reasons == {"smoothing": "too few texts"}


def test_vectors_of_which_matrices_fill_the_memory_are_refused() -> None:
    with pytest.raises(DataError, match="too wide"):
        describe_sentences(np.eye(60, WIDEST + 1, dtype=np.float32))


def test_too_few_sentences_for_nearest_neighbours_are_an_error_and_enough_are_described() -> None:
    x = np.random.default_rng(3).normal(size=(33, 4)).astype(np.float32)
    with pytest.raises(DataError, match="too few different sentences") as refused:
        describe_sentences(x[:32])
    assert (refused.value.expected, refused.value.got) == ("at least 33", "32")
    found = describe_sentences(x, families=(Family("mean removal", mean_removal),))
    assert (found.texts, found.looked_at) == (33, 11)


def test_the_numbers_are_said_to_be_of_the_texts_that_were_looked_at() -> None:
    """Hubness grows with the number of texts: that of a sample is not that of all."""
    x = np.random.default_rng(0).normal(size=(3_000, 8)).astype(np.float32)
    found = describe_sentences(x, families=(Family("mean removal", mean_removal),))
    assert f"cosine, 667 of 3,000 texts: hubness {found.cosine_hubness:.1f}" in found.describe()
    order = np.random.default_rng(0).permutation(3_000)[:2_000]
    unit = x[order[:667]] / np.linalg.norm(x[order[:667]], axis=1, keepdims=True)
    near = NearestNeighbors(n_neighbors=10).fit(unit).kneighbors(return_distance=False)
    assert found.cosine_hubness == pytest.approx(skew(np.bincount(near.ravel(), minlength=667)), abs=0.01)


def test_zero_vectors_are_no_neighbours_of_all_others() -> None:
    """Vectors at cosines below 0.5 are more than 1 apart, which is how far each is from a zero vector."""
    x = np.random.default_rng(0).normal(size=(300, 64)).astype(np.float32)
    x[::10] = 0
    of_zeros = describe_sentences(x, families=(Family("mean removal", mean_removal),)).cosine_hubness
    x[::10] = np.random.default_rng(1).normal(size=(30, 64))
    of_others = describe_sentences(x, families=(Family("mean removal", mean_removal),)).cosine_hubness
    assert of_zeros == pytest.approx(of_others, abs=0.6)
