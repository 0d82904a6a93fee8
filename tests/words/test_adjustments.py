"""What is done to word vectors: levelled variance against scikit-learn, lengths by their definition."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from sentfold.errors import ParameterError, SourceError
from sentfold.words.vectors import (
    SourceVectors,
    WordVectorParameters,
    level_variance,
    make_vectors,
    mean_unit_length,
    unit_length,
)


@pytest.fixture
def vectors() -> np.ndarray:
    rng = np.random.default_rng(5)
    return rng.standard_normal((80, 30)) @ np.diag(np.geomspace(9, 0.1, 30)) + rng.standard_normal(30)


def test_levelling_is_the_published_loop_over_scikit_learns_components(vectors: np.ndarray) -> None:
    d = 10
    centred = vectors - vectors.mean(axis=0)
    pca = PCA(n_components=30, svd_solver="full").fit(centred)
    expected = []
    for row in centred:
        x = row.copy()
        for u, variance in zip(pca.components_[:d], pca.explained_variance_[:d], strict=True):
            x -= (variance - pca.explained_variance_[d]) / variance * np.dot(u, x) * u
        expected.append(x)
    # Two eigensolvers in float64 on vectors of length 10.
    np.testing.assert_allclose(level_variance(vectors, d), expected, atol=1e-11)


def test_the_leading_directions_are_shrunk_and_the_others_left(vectors: np.ndarray) -> None:
    before = np.linalg.svd(vectors - vectors.mean(axis=0))[1]
    after = np.sort(np.linalg.svd(level_variance(vectors, 4))[1])[::-1]
    # x -> (l5 / l_j) x along u_j: singular values s_j become s_5^2 / s_j.
    expected = np.sort(np.concatenate([before[4] ** 2 / before[:4], before[4:]]))[::-1]
    np.testing.assert_allclose(after, expected, rtol=1e-9)


def test_too_few_words_or_dimensions_are_refused(vectors: np.ndarray) -> None:
    level_variance(vectors[:11], 10)
    for x in (vectors[:10], vectors[:, :10]):
        with pytest.raises(ParameterError, match="too few words"):
            level_variance(x, 10)


def test_equal_vectors_are_levelled_to_nothing_and_not_to_nan() -> None:
    assert not level_variance(np.ones((20, 15)), 10).any()


def test_lengths() -> None:
    x = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 10.0]], dtype=np.float32)
    np.testing.assert_allclose(unit_length(x), [[0.6, 0.8], [0, 0], [0, 1]])
    np.testing.assert_allclose(mean_unit_length(x), x / 5)
    assert not mean_unit_length(np.zeros((2, 3))).any()


@pytest.mark.parametrize("missing", ["mean", "zero"])
def test_a_source_without_any_word_of_the_vocabulary_is_refused_and_not_filled(missing: str) -> None:
    raw = {"own": SourceVectors(("cat", "dog"), np.eye(2))}
    block = WordVectorParameters.model_validate({"file": "own", "missing": missing})
    with pytest.raises(SourceError, match="no word of the vocabulary"):
        make_vectors("own", {"own": block}, raw, ["sun", "moon"])
    assert make_vectors("own", {"own": block}, raw, ["sun", "dog"]).words == ("sun", "dog")
