"""What holds for every word encoder: hand-computed cases, edge cases, invariants, and what a fit stores."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentfold.encoders.base.components import Components, find_components
from sentfold.encoders.base.lexicon import Clusters, Lexicon
from sentfold.encoders.base.protocol import find_method, known_methods
from sentfold.encoders.base.ragged import Ragged, number_tokens
from sentfold.encoders.base.settings import make_settings, parse_settings
from sentfold.encoders.lase import known_pieces
from sentfold.encoders.usif import find_a
from sentfold.errors import EncoderError, ParameterError
from sentfold.words.counts import WordCounts
from tests.encoders.lexicons import encode, make_encoder, make_lexicon, make_sentences, sentence_lists

METHODS = known_methods()
VARIANTS = ["published", "released"]
EVERY = [(method, variant) for method in METHODS for variant in VARIANTS]
BAGS = [method for method in METHODS if method not in ("dct", "gem")]
SENTENCES = make_sentences()


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return make_lexicon()


# --- by hand ----------------------------------------------------------------------------------------


def two_words(first: list[float], second: list[float], counts: tuple[int, int] = (1, 1)) -> Lexicon:
    """The words p and q, each a cluster, and their counts."""
    return Lexicon(
        ("p", "q"),
        np.array([first, second], dtype=np.float32),
        WordCounts(("p", "q"), np.array(counts, dtype=np.int64)),
        Clusters(np.array([0, 1], dtype=np.int32), np.zeros((2, 2))),
    )


def test_the_average_counts_a_repeated_word_as_often_as_it_stands() -> None:
    got = encode("average", two_words([1, 0], [0, 3]), ["p p q"])
    np.testing.assert_allclose(got, [[2 / 3, 1]], rtol=1e-7)


def test_sif_weighs_a_word_by_its_count_among_all() -> None:
    # p(p) = 3/4, p(q) = 1/4, a = 1/4: weights 1/4 and 1/2.
    got = encode("sif", two_words([8, 0], [0, 8], (3, 1)), ["p q"], a=0.25, component="none")
    np.testing.assert_allclose(got, [[1, 2]], rtol=1e-7)


def test_sif_removes_the_common_direction() -> None:
    # Both words weigh 1/2; sentences (4, 0) and (0, 1): the first direction is the first axis.
    got = encode("sif", two_words([8, 0], [0, 2]), ["p", "q"], a=0.5)
    np.testing.assert_allclose(got, [[0, 0], [0, 1]], atol=1e-7)


def test_usif_finds_a_from_the_words_above_chance() -> None:
    # 4 words, length 1: threshold 1/4; one word of 4 is above, so alpha = 1/4 and a = (3/4) / (1/4 * 2) = 3/2.
    counts = WordCounts(("w", "x", "y", "z"), np.array([7, 1, 1, 1], dtype=np.int64))
    assert find_a(counts, total=10, length=1) == pytest.approx(1.5)


def test_a_sentence_of_one_word_is_its_signs_to_usif() -> None:
    counts = WordCounts(("p", "q", "r", "s"), np.array([7, 1, 1, 1], dtype=np.int64))
    lexicon = replace(two_words([3, -4], [1, 1]), counts=counts)
    # a = 3/2 with length 1; weight(p) = 1.5 / (0.75 + 0.7).
    got = encode("usif", lexicon, ["p"], length=1, component="none")
    np.testing.assert_allclose(got, [[1.5 / 1.45, -1.5 / 1.45]], rtol=1e-6)


def test_power_means_of_a_negative_mean_differ_between_the_variants() -> None:
    lexicon = two_words([-2, 1], [-2, 3])
    np.testing.assert_allclose(encode("pmeans", lexicon, ["p q"], means=("p3",))[0, 0], -2, rtol=1e-6)
    released = encode("pmeans", lexicon, ["p q"], means=("p3",), variant="released")
    np.testing.assert_allclose(released[0, 0], 1, rtol=1e-6)


def test_the_default_power_means_are_mean_minimum_and_maximum() -> None:
    np.testing.assert_allclose(encode("pmeans", two_words([1, 5], [3, 1]), ["p q"]), [[2, 3, 1, 1, 3, 5]])


def test_the_first_cosine_coefficient_is_the_mean_times_the_root_of_the_length() -> None:
    got = encode("dct", two_words([1, 0], [3, 0]), ["p q"], coefficients=2)
    # c1 = sqrt(2/2) (1 cos(pi/4) + 3 cos(3 pi/4)) = -2 cos(pi/4).
    np.testing.assert_allclose(got, [[4 / math.sqrt(2), 0, -math.sqrt(2), 0]], atol=1e-6)


def test_vlawe_lays_residuals_side_by_side() -> None:
    got = encode("vlawe", two_words([4, 0], [0, 9]), ["p q"], variant="published")
    # Residuals (4, 0 | 0, 9), square roots (2, 0 | 0, 3), length sqrt(13).
    np.testing.assert_allclose(got, np.array([[2, 0, 0, 3]]) / math.sqrt(13), rtol=1e-6)


def test_s3e_lays_mean_and_covariance_side_by_side() -> None:
    # Weights 1/2 (a = p = 1/2). Phi = (2, 0), (0, 1); less their means (1, -1), (-1/2, 1/2);
    # C = (2, -1, 1/2); off the diagonal times sqrt(2): (2, -sqrt(2), 1/2), of length 5/2.
    got = encode("s3e", two_words([4, 0], [0, 2]), ["p q p"], a=0.5, component="none")
    np.testing.assert_allclose(got, [[1, 0.5, 0.8, -math.sqrt(2) / 2.5, 0.2]], rtol=1e-6)


def test_lase_takes_the_root_of_the_covariance_and_no_mean() -> None:
    # Laplace: p = (1 + 1) / (2 + 2), weights 2. Phi = (8, 0), (0, 4); C ~ (4, -2, 1): roots (2, -sqrt(2), 1).
    got = encode("lase", two_words([4, 0], [0, 2]), ["p q"])
    np.testing.assert_allclose(got, np.array([[2, -math.sqrt(2), 1]]) / math.sqrt(7), rtol=1e-6)


def test_gem_gives_orthogonal_words_their_full_length_as_news() -> None:
    # r = |v|: novelty e, significance |v| / (2m + 1), uniqueness 1 with nothing to compare.
    got = encode("gem", two_words([3, 0], [0, 5]), ["p q"], window=2, removed=0)
    np.testing.assert_allclose(got, [[3 * (math.e + 3 / 5 + 1), 5 * (math.e + 5 / 5 + 1)]], rtol=1e-6)


def test_gem_as_released_divides_by_the_width_of_the_window() -> None:
    got = encode("gem", two_words([3, 0], [0, 5]), ["p q"], window=2, removed=0, variant="released")
    np.testing.assert_allclose(got, [[3 * (math.e + 3 / 2 + 1), 5 * (math.e + 5 / 2 + 1)]], rtol=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_gem_weighs_every_copy_of_a_repeated_word_two(variant: str) -> None:
    lexicon = two_words([3, 4], [1, 0])
    got = encode("gem", lexicon, ["p p"], selection="none", variant=variant)
    np.testing.assert_allclose(got, [[2 * 2 * 3, 2 * 2 * 4]], rtol=1e-6)


def test_gem_skips_punctuation_as_the_paper_or_as_the_code_does() -> None:
    lexicon = replace(two_words([3, 4], [1, 7]), words=("p", ","))
    plain = encode("gem", lexicon, ["p"], tokenizer="wordpunct", selection="none")
    published = encode("gem", lexicon, ["p, !"], tokenizer="wordpunct", selection="none")
    released = encode("gem", lexicon, ["p, !"], tokenizer="wordpunct", selection="none", variant="released")
    np.testing.assert_array_equal(published, plain)
    assert np.abs(released - plain).max() > 1  # the comma is a word to it


# --- edge cases -------------------------------------------------------------------------------------

# Sentences that are odd, and which of them have no word by any rule.
ODD = ["", "   ", "xyzzy plugh", "!", ". ! ?", "dog", "dog dog dog", "the cat", " ".join(["the dog sat on"] * 60)]


@pytest.mark.parametrize(("method", "variant"), EVERY)
def test_odd_sentences_have_finite_vectors(lexicon: Lexicon, method: str, variant: str) -> None:
    fitted = make_encoder(method, lexicon, variant=variant).fit([*SENTENCES, *ODD])
    encoded = fitted.encode(ODD)
    assert encoded.vectors.dtype == np.float32
    assert np.isfinite(encoded.vectors).all()
    assert all(count >= 0 for count in encoded.fallbacks.values())


@pytest.mark.parametrize(("method", "variant"), EVERY)
def test_a_sentence_without_words_is_the_zero_vector_unless_the_code_says_otherwise(
    lexicon: Lexicon, method: str, variant: str
) -> None:
    encoded = make_encoder(method, lexicon, variant=variant, component="none").fit(SENTENCES).encode(["", "dog", "  "])
    assert encoded.vectors[1].any()
    if (method, variant) == ("usif", "released"):
        a = find_a(lexicon.counts, total=lexicon.counts.total, length=11)
        np.testing.assert_allclose(encoded.vectors[[0, 2]], a, rtol=1e-6)
    else:
        assert not encoded.vectors[[0, 2]].any()
    counted = [count for name, count in encoded.fallbacks.items() if name.startswith("empty")]
    # Read as ".", a sentence is no longer empty but of unknown words: it is counted both ways.
    assert max(counted) == 2


@pytest.mark.parametrize(("method", "variant"), EVERY)
def test_unknown_words_are_left_out_and_counted(lexicon: Lexicon, method: str, variant: str) -> None:
    fitted = (
        make_encoder(method, lexicon, variant=variant, pieces=False).fit(SENTENCES)
        if method == "lase"
        else (make_encoder(method, lexicon, variant=variant).fit(SENTENCES))
    )
    encoded = fitted.encode(["dog ran xyzzy", "dog ran", "xyzzy xyzzy"])
    if (method, variant) in {("sif", "released"), ("gem", "released")}:
        assert encoded.fallbacks[next(name for name in encoded.fallbacks if name.startswith("unknown words, read"))]
        return
    np.testing.assert_array_equal(encoded.vectors[0], encoded.vectors[1])
    assert encoded.fallbacks["unknown words (tokens)"] == 3
    assert encoded.fallbacks["all words unknown"] == 1


def test_an_unknown_word_is_the_last_one_of_the_table_to_sif_as_released(lexicon: Lexicon) -> None:
    fitted = make_encoder("sif", lexicon, variant="released").fit(SENTENCES)
    got = fitted.encode(["dog xyzzy", f"dog {lexicon.words[-1]}", "Dog #XYZZY"]).vectors
    np.testing.assert_array_equal(got[0], got[1])
    np.testing.assert_array_equal(got[0], got[2])


def test_an_unknown_word_is_the_tables_own_stand_in_to_sif_as_released(lexicon: Lexicon) -> None:
    known = replace(lexicon, words=("UUUNKKK", *lexicon.words[1:]))
    fitted = make_encoder("sif", known, variant="released", component="none").fit(SENTENCES)
    vectors = fitted.encode(["xyzzy"]).vectors
    # Not counted in the file of counts, so of weight 1.
    np.testing.assert_allclose(vectors[0], known.vectors[0], rtol=1e-6)


def test_a_hashtag_is_its_word_to_sif_as_released(lexicon: Lexicon) -> None:
    got = encode("sif", lexicon, ["#dog ran", "dog ran"], variant="released", component="none")
    np.testing.assert_array_equal(got[0], got[1])


def test_an_unknown_word_repeats_the_one_before_it_to_gem_as_released(lexicon: Lexicon) -> None:
    fitted = make_encoder("gem", lexicon, variant="released").fit(SENTENCES)
    got = fitted.encode(["xyzzy dog xyzzy plugh ran", "dog dog dog ran", "xyzzy", ""]).vectors
    np.testing.assert_array_equal(got[0], got[1])
    assert not got[2:].any()


def test_an_unknown_word_is_some_word_of_the_table_to_gem_where_it_has_an_unk(lexicon: Lexicon) -> None:
    known = replace(lexicon, words=("unk", *lexicon.words[1:]))
    fitted = make_encoder("gem", known, variant="released", selection="none").fit(SENTENCES)
    got = fitted.encode(["dog xyzzy", "dog xyzzy", "ran xyzzy dog"]).vectors
    candidates = fitted.encode([f"dog {word}" for word in known.words]).vectors
    assert (candidates == got[0]).all(axis=1).any()
    np.testing.assert_array_equal(got[0], got[1])


def test_an_unknown_word_is_the_mean_of_its_pieces_centroids_to_lase() -> None:
    lexicon = make_lexicon(3)
    clusters = lexicon.demand_clusters("test")
    assert clusters.centroids is not None
    labels = dict(zip(lexicon.words, clusters.labels.tolist(), strict=True))
    pieces = [labels["kettle"], labels["dog"]]
    mean = clusters.centroids[pieces].mean(axis=0)
    nearest = int(((clusters.centroids - mean) ** 2).sum(axis=1).argmin())
    known = replace(
        lexicon,
        words=(*lexicon.words, "kettledog"),
        vectors=np.vstack([lexicon.vectors, mean.astype(np.float32)]),
        clusters=replace(clusters, labels=np.append(clusters.labels, np.int32(nearest))),
    )
    encoded = make_encoder("lase", lexicon).fit(SENTENCES).encode(["the kettledog ran", "nothing"])
    wanted = make_encoder("lase", known).fit(SENTENCES).encode(["the kettledog ran"])
    np.testing.assert_array_equal(encoded.vectors[0], wanted.vectors[0])
    assert encoded.fallbacks["words known by their pieces (types)"] == 2  # "nothing" holds "in"


@given(st.text("ab", max_size=30), st.sets(st.text("ab", min_size=1, max_size=6), max_size=8))
def test_pieces_are_the_longest_known_beginnings_of_what_is_left_of_a_word(word: str, known: set[str]) -> None:
    index = {piece: row for row, piece in enumerate(sorted(known))}
    wanted, rest = [], word
    while rest:
        longest = max((piece for piece in known if rest.startswith(piece)), key=len, default="")
        wanted += [index[longest]] if longest else []
        rest = rest[max(len(longest), 1) :]
    assert known_pieces(word, index, max(map(len, known), default=0)) == wanted


def test_an_unknown_word_of_a_hundred_thousand_letters_is_cut_at_once(lexicon: Lexicon) -> None:
    start = time.monotonic()
    encoded = make_encoder("lase", lexicon).fit(SENTENCES).encode(["x" * 100_000])
    assert time.monotonic() - start < 5  # in time that grows with the cube of the letters: hours
    assert encoded.fallbacks["all words unknown"] == 1


@pytest.mark.parametrize(("method", "variant"), EVERY)
def test_fewer_sentences_than_components_leave_fewer_components(lexicon: Lexicon, method: str, variant: str) -> None:
    settings: dict[str, object] = {"component": "joint"}
    if method != "gem":
        settings["components"] = 5
    fitted = make_encoder(method, lexicon, variant=variant, **settings).fit(["the dog ran", "a cat sat on"])
    assert len(fitted.learned["directions"]) <= 2
    assert np.isfinite(fitted.encode(SENTENCES).vectors).all()


@pytest.mark.parametrize(("method", "variant"), EVERY)
def test_an_encoder_can_be_fitted_on_nothing_at_all(lexicon: Lexicon, method: str, variant: str) -> None:
    for corpus in ([], [""], ["xyzzy"]):
        encoded = make_encoder(method, lexicon, variant=variant).fit(corpus).encode(["the dog ran", ""])
        assert np.isfinite(encoded.vectors).all()
    assert len(make_encoder(method, lexicon, variant=variant).fit(SENTENCES).encode([]).vectors) == 0


@pytest.mark.parametrize("method", ["sif", "s3e"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_sentence_fitted_on_itself_alone_vanishes_exactly(lexicon: Lexicon, method: str, variant: str) -> None:
    encoded = make_encoder(method, lexicon, variant=variant).fit(["the dog ran"]).encode(["the dog ran"])
    assert not encoded.vectors.any()
    assert encoded.fallbacks["vanished with the removed directions"] == 1


@pytest.mark.parametrize("method", ["s3e", "lase", "vlawe"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_fewer_words_than_clusters_leave_empty_clusters_at_zero(method: str, variant: str) -> None:
    lexicon = make_lexicon()
    labels = (np.arange(len(lexicon.words)) * 7).astype(np.int32)
    sparse = replace(lexicon, clusters=Clusters(labels))
    assert sparse.demand_clusters("test").size > len(sparse.words)
    encoded = make_encoder(method, sparse, variant=variant).fit(SENTENCES).encode([*SENTENCES, ""])
    assert np.isfinite(encoded.vectors).all()


@pytest.mark.parametrize("method", ["s3e", "lase", "vlawe"])
def test_a_method_of_clusters_asks_for_clusters(method: str) -> None:
    with pytest.raises(ParameterError, match="needs clusters"):
        make_encoder(method, replace(make_lexicon(), clusters=None))


@pytest.mark.parametrize("method", ["s3e", "lase", "vlawe"])
def test_centroids_of_another_dimension_are_refused(method: str) -> None:
    lexicon = make_lexicon()
    clusters = replace(lexicon.demand_clusters("test"), centroids=np.zeros((6, 5)))
    with pytest.raises(ParameterError, match="do not fit") as caught:
        make_encoder(method, replace(lexicon, clusters=clusters))
    assert caught.value.got == "6 of 5"


def test_a_sentence_that_is_its_centroids_has_no_covariance_and_no_nan() -> None:
    lexicon = two_words([2, 0], [0, 2])
    exact = replace(lexicon, clusters=Clusters(np.array([0, 1], dtype=np.int32), lexicon.vectors.astype(np.float64)))
    encoded = make_encoder("s3e", exact, component="none").fit(["p q"]).encode(["p q", "p"])
    assert not encoded.vectors[:, 2:].any()
    assert encoded.fallbacks["covariance 0"] == 2


def test_a_dimension_that_is_zero_in_all_words_stays_zero_to_usif() -> None:
    counts = WordCounts(("p", "q", "r"), np.array([8, 1, 1], dtype=np.int64))
    got = encode("usif", replace(two_words([1, 0], [2, 0]), counts=counts), ["p q"], length=1, component="none")
    assert np.isfinite(got).all()
    assert got[0, 0] > 0
    assert got[0, 1] == 0


@pytest.mark.parametrize("counts", [(1, 1), (9, 1), (0, 0)])
@pytest.mark.parametrize("variant", VARIANTS)
def test_usif_weighs_all_words_alike_where_none_is_frequent_by_chance(counts: tuple[int, int], variant: str) -> None:
    # 1 - (1 - 1/2)^11 is nearly 1: no word is above it, a is infinite, and a / (a/2 + p) tends to 2.
    fitted = make_encoder("usif", two_words([3, 0], [0, -4], counts), variant=variant, component="none").fit([])
    encoded = fitted.encode(["p q", ""])
    np.testing.assert_allclose(encoded.vectors, [[1, -1], [0, 0]])
    assert encoded.fallbacks["words weighed alike, for want of a frequent one"] == 2


def test_usif_weighs_all_words_alike_where_rounding_makes_all_frequent() -> None:
    # 1 - (1 - 1/6)^1 is rounded to less than 1/6, the share of each word, so all six are above chance and a would be 0.
    counts = WordCounts(("p", "q", "r", "s", "t", "u"), np.ones(6, dtype=np.int64))
    assert find_a(counts, total=6, length=1) == np.inf
    got = encode("usif", replace(two_words([3, 0], [0, -4]), counts=counts), ["p q"], length=1, component="none")
    np.testing.assert_allclose(got, [[1, -1]])


@pytest.mark.parametrize("variant", VARIANTS)
def test_usif_cuts_before_it_lower_cases(variant: str) -> None:
    # The treebank's contractions are lower or upper case, so "don'T" is none: lower-cased first it would be two words.
    encoder = make_encoder("usif", make_lexicon(), variant=variant, tokenizer="treebank")
    assert encoder.reader.tokens(["I don'T", "I DON'T"]) == [["i", "don't"], ["i", "do", "not"]]


def test_usif_adds_counts_that_differ_in_case_or_takes_the_last_one() -> None:
    counts = WordCounts(("P", "p", "q", "r", "s"), np.array([6, 2, 1, 1, 1], dtype=np.int64))
    lexicon = replace(two_words([1, 0], [0, 1]), counts=counts)
    # |V| = 4, length 1: p(p) = 8/11 > 1/4 gives a = 3/2; p(p) = 2/11 is not above it, and all weights are 2.
    added, last = (
        encode("usif", lexicon, ["p"], length=1, component="none", variant=variant)[0, 0] for variant in VARIANTS
    )
    np.testing.assert_allclose([added, last], [1.5 / (0.75 + 8 / 11), 2], rtol=1e-6)


def test_a_word_vector_of_zeros_is_harmless(lexicon: Lexicon) -> None:
    vectors = lexicon.vectors.copy()
    vectors[:4] = 0
    for method, variant in EVERY:
        for unit_words in (False, True):
            flat = replace(lexicon, vectors=vectors)
            got = encode(method, flat, [*SENTENCES, "the a of dog", "the"], variant=variant, unit_words=unit_words)
            assert np.isfinite(got).all(), (method, variant)


# --- invariants -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "variant"), EVERY)
@settings(max_examples=15, deadline=None)
@given(sentences=sentence_lists, seed=st.integers(0, 3))
def test_vectors_are_finite_and_equal_for_equal_sentences(
    method: str, variant: str, sentences: list[str], seed: int
) -> None:
    fitted = make_encoder(method, make_lexicon(seed), variant=variant).fit(SENTENCES)
    doubled = fitted.encode([*sentences, *SENTENCES, *sentences]).vectors
    assert np.isfinite(doubled).all()
    np.testing.assert_array_equal(doubled[: len(sentences)], doubled[-len(sentences) :])
    np.testing.assert_array_equal(doubled[: len(sentences)], fitted.encode(sentences).vectors)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("method", BAGS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_bag_of_words_has_no_order(method: str, variant: str, data: st.DataObject) -> None:
    fitted = make_encoder(method, make_lexicon(), variant=variant).fit(SENTENCES)
    words = data.draw(st.sampled_from(SENTENCES)).split()
    shuffled = data.draw(st.permutations(words))
    got = fitted.encode([" ".join(words), " ".join(shuffled)]).vectors
    # Sums in another order: float64 rounding, and its square root where a power of 0.5 meets an entry near 0.
    np.testing.assert_allclose(got[0], got[1], atol=1e-6 * np.abs(got).max())


@pytest.mark.parametrize("method", ["dct", "gem"])
def test_a_method_of_word_order_sees_it(lexicon: Lexicon, method: str) -> None:
    fitted = make_encoder(method, lexicon, window=1, removed=2) if method == "gem" else make_encoder(method, lexicon)
    got = fitted.fit(SENTENCES).encode(["the dog sat on a cat", "on cat the a dog sat"]).vectors
    assert np.abs(got[0] - got[1]).max() > 1e-3


# How a vector scales when every word vector is doubled.
SCALING = {"average": 2.0, "sif": 2.0, "usif": 1.0, "pmeans": 2.0, "dct": 2.0}


@pytest.mark.parametrize("method", SCALING)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_vector_scales_as_its_equations_say(method: str, variant: str) -> None:
    lexicon = make_lexicon()
    twice = replace(lexicon, vectors=lexicon.vectors * 2)
    got, doubled = (encode(method, words, SENTENCES, variant=variant) for words in (lexicon, twice))
    # Doubling is exact; only the solver of the directions may round elsewhere.
    np.testing.assert_allclose(doubled, SCALING[method] * got, atol=1e-5 * np.abs(got).max())


@pytest.mark.parametrize("method", ["vlawe", "lase"])
def test_a_normalised_residual_knows_no_scale(method: str) -> None:
    lexicon = make_lexicon()
    clusters = lexicon.demand_clusters("test")
    assert clusters.centroids is not None
    twice = replace(lexicon, vectors=lexicon.vectors * 2, clusters=replace(clusters, centroids=clusters.centroids * 2))
    got, doubled = (encode(method, words, SENTENCES) for words in (lexicon, twice))
    np.testing.assert_allclose(doubled, got, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(got, axis=1), 1, atol=1e-5)


def test_gem_with_unit_words_knows_no_scale() -> None:
    lexicon = make_lexicon()
    twice = replace(lexicon, vectors=lexicon.vectors * 2)
    got, doubled = (encode("gem", words, SENTENCES, unit_words=True) for words in (lexicon, twice))
    np.testing.assert_array_equal(got, doubled)


@pytest.mark.parametrize("method", ["average", "sif", "usif", "pmeans", "dct"])
def test_a_rotation_of_the_words_rotates_the_sentences(method: str) -> None:
    # A signed permutation of the axes: exact, and it commutes with coordinate-wise methods up to min and max.
    lexicon = make_lexicon()
    order = np.random.default_rng(0).permutation(lexicon.dimension)
    turned = replace(lexicon, vectors=np.ascontiguousarray(lexicon.vectors[:, order]))
    got, other = (encode(method, words, SENTENCES) for words in (lexicon, turned))
    parts = got.reshape(len(got), -1, lexicon.dimension)[:, :, order].reshape(got.shape)
    np.testing.assert_allclose(other, parts, atol=1e-6 * np.abs(got).max())


@pytest.mark.parametrize("name", ["p2", "p9", "p10", "p11", "p99"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("factor", [2.0**-40, 2.0**-13, 2.0**13, 2.0**40])
def test_power_means_of_small_and_large_words_neither_vanish_nor_overflow(
    name: str, variant: str, factor: float
) -> None:
    lexicon = make_lexicon()
    scaled = replace(lexicon, vectors=lexicon.vectors * np.float32(factor))
    got, other = (encode("pmeans", words, SENTENCES, means=[name], variant=variant) for words in (lexicon, scaled))
    assert got.any(axis=0).all()
    np.testing.assert_allclose(other, got * factor, rtol=1e-5)


@pytest.mark.parametrize("method", ["average", "gem", "dct"])
def test_vectors_beyond_float32_are_refused_and_not_infinite(lexicon: Lexicon, method: str) -> None:
    huge = replace(lexicon, vectors=np.full_like(lexicon.vectors, 3e38))
    settings: dict[str, Any] = {"removed": 0} if method == "gem" else {"component": "none"}
    if method == "average":  # a mean is within the range of its words
        assert np.isfinite(encode(method, huge, ["dog cat"], **settings)).all()
        return
    with pytest.raises(ParameterError, match="not finite"):
        encode(method, huge, ["dog cat sat"], **settings)


# --- what is learned --------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "variant"), EVERY)
def test_a_fit_learns_orthonormal_directions_in_the_order_of_their_values(
    lexicon: Lexicon, method: str, variant: str
) -> None:
    learned = make_encoder(method, lexicon, variant=variant, component="joint").fit(SENTENCES).learned
    rows, values = learned["directions"], learned["singular_values"]
    assert len(rows) == len(values) > 0
    np.testing.assert_allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-9)
    assert (np.diff(values) <= 0).all()


@pytest.mark.parametrize("method", ["sif", "usif", "s3e", "gem"])
def test_sentences_beyond_the_fitting_set_leave_no_trace(lexicon: Lexicon, method: str) -> None:
    fitted = make_encoder(method, lexicon).fit(SENTENCES[:20])
    alone = fitted.encode(SENTENCES[30:32]).vectors
    np.testing.assert_array_equal(
        fitted.encode(SENTENCES)[0][30:32] if False else fitted.encode(SENTENCES).vectors[30:32], alone
    )


def test_a_repeated_sentence_counts_as_often_as_it_stands_in_the_fit(lexicon: Lexicon) -> None:
    once = make_encoder("sif", lexicon).fit(SENTENCES).learned["directions"]
    often = make_encoder("sif", lexicon).fit([*SENTENCES, *["late"] * 500]).learned["directions"]
    assert abs(float(once[0] @ often[0])) < 0.999


@pytest.mark.parametrize("long_side", [2048, 30, 10])
@pytest.mark.parametrize("shape", [(300, 20), (20, 300), (40, 50)])
def test_exact_directions_are_those_of_a_full_decomposition(
    shape: tuple[int, int], long_side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whether by the Gram matrix of the columns, of the rows, or by Lanczos.
    monkeypatch.setattr("sentfold.encoders.base.components.LONG_SIDE", long_side)
    matrix = np.random.default_rng(0).normal(size=shape) * np.linspace(3, 1, shape[1]) + 1
    blocks = [matrix[:8], matrix[8:]]
    found = find_components(blocks, count=3, iterations=None, weighted=True)
    _, values, rows = np.linalg.svd(matrix, full_matrices=False)
    np.testing.assert_allclose(found.singular_values, values[:3], rtol=1e-10)
    np.testing.assert_allclose(np.abs(np.sum(found.directions * rows[:3], axis=1)), 1, atol=1e-9)
    np.testing.assert_allclose(found.strengths, values[:3] ** 2 / (values[:3] ** 2).sum(), rtol=1e-9)


def test_a_direction_without_weight_is_not_removed() -> None:
    matrix = np.outer(np.arange(1.0, 9), [3.0, 4.0, 0.0])
    found = find_components([matrix], count=2, iterations=None, weighted=False)
    np.testing.assert_allclose(found.directions, [[0.6, 0.8, 0]], atol=1e-12)


def test_removal_takes_each_projection_by_its_strength() -> None:
    vectors = np.array([[3.0, 4.0, 5.0]])
    Components(np.eye(3)[:2], np.ones(2), np.array([1.0, 0.25])).remove_from(vectors)
    np.testing.assert_allclose(vectors, [[0, 3, 5]])


# --- ragged rows ------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.sampled_from("abcdx"), max_size=5), max_size=8), st.data())
def test_ragged_rows_hold_the_known_words_of_each_sentence(tokens: list[list[str]], data: st.DataObject) -> None:
    index = {"a": 0, "b": 1, "c": 2, "d": 3}
    ragged = number_tokens(tokens, index)
    rows = [ragged.ids[ragged.offsets[s] : ragged.offsets[s + 1]].tolist() for s in range(len(ragged))]
    assert rows == [[index[word] for word in words if word in index] for words in tokens]
    assert ragged.dropped.tolist() == [words.count("x") for words in tokens]
    start = data.draw(st.integers(0, len(tokens)))
    stop = data.draw(st.integers(start, len(tokens)))
    part: Ragged = ragged.rows(start, stop)
    assert [part.ids[part.offsets[s] : part.offsets[s + 1]].tolist() for s in range(len(part))] == rows[start:stop]


# --- methods and settings ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["glove", "embed", "protocol", "../average", "os", "a.b"])
def test_a_name_that_is_no_method_is_refused(name: str) -> None:
    with pytest.raises(EncoderError, match="no encoding method"):
        find_method(name)


def test_every_method_is_a_file_with_settings_and_build() -> None:
    assert set(METHODS) == {"average", "sif", "usif", "pmeans", "dct", "vlawe", "s3e", "lase", "gem"}
    for name in METHODS:
        module = find_method(name)
        assert module.Settings().variant == "published"
        assert isinstance(module.TITLE, str)
        assert (module.__doc__ and "published" in module.__doc__) or name == "average"


def test_settings_are_read_from_texts_by_their_kind() -> None:
    gem = find_method("gem")
    values = parse_settings(gem, ["window=5", "power=2.5", "scores=novelty,uniqueness", "scaled=false", "signs=free"])
    made = make_settings(gem, values, where="test")
    assert (made.window, made.power, made.scores) == (5, 2.5, ("novelty", "uniqueness"))  # type: ignore[attr-defined]
    assert (made.scaled, made.signs) == (False, "free")  # type: ignore[attr-defined]
    assert make_settings(gem, parse_settings(gem, ["scores="]), where="test").scores == ()  # type: ignore[attr-defined]
    assert make_settings(find_method("sif"), parse_settings(find_method("sif"), ["a=1e-4"]), where="t").a == 1e-4  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "pair", ["window", "=5", "windw=5", "window=five", "window=0", "window=1001", f"window={2**63 - 1}", "scores=novel"]
)
def test_a_wrong_setting_is_named(pair: str) -> None:
    gem = find_method("gem")
    with pytest.raises(ParameterError) as caught:
        make_settings(gem, parse_settings(gem, [pair]), where="test")
    assert pair.partition("=")[0] in str(caught.value)


BAD_DIRECTIONS = {
    "of fewer numbers": (np.eye(2), np.ones(2)),
    "of more numbers": (np.eye(13)[:2], np.ones(2)),
    "more than values": (np.eye(12)[:3], np.ones(2)),
    "fewer than values": (np.eye(12)[:2], np.ones(3)),
    "one vector": (np.ones(12), np.ones(12)),
    "not finite": (np.full((1, 12), np.nan), np.ones(1)),
    "values that are not finite": (np.eye(12)[:2], np.array([np.nan, 1.0])),
    "values below zero": (np.eye(12)[:2], np.array([1.0, -1.0])),
    "values of zero": (np.eye(12)[:2], np.zeros(2)),
    "values whose squares overflow": (np.eye(12)[:2], np.full(2, 1e160)),
}


@pytest.mark.parametrize("wrong", BAD_DIRECTIONS)
@pytest.mark.parametrize("method", ["sif", "usif", "gem", "s3e"])
def test_directions_that_do_not_fit_the_words_are_refused(lexicon: Lexicon, method: str, wrong: str) -> None:
    settings = {"covariance": False} if method == "s3e" else {}
    with pytest.raises(ParameterError, match="do not fit the words"):
        make_encoder(method, lexicon, **settings).fit_directions(*BAD_DIRECTIONS[wrong])  # type: ignore[attr-defined]  # not in the protocol


@pytest.mark.parametrize("method", ["sif", "usif", "gem"])
def test_directions_of_a_fit_can_be_given(lexicon: Lexicon, method: str) -> None:
    fitted = make_encoder(method, lexicon).fit(SENTENCES)
    learned = fitted.learned
    given = make_encoder(method, lexicon).fit_directions(learned["directions"], learned["singular_values"])  # type: ignore[attr-defined]  # not in the protocol
    np.testing.assert_array_equal(given.encode(SENTENCES).vectors, fitted.encode(SENTENCES).vectors)
    none = make_encoder(method, lexicon).fit_directions(np.zeros((0, lexicon.dimension)), np.zeros(0))  # type: ignore[attr-defined]  # not in the protocol
    assert none.encode(SENTENCES).vectors.all(axis=1).any()


def test_lanczos_of_zeros_has_no_directions() -> None:
    found = find_components([np.zeros((2049, 2049))], count=1, iterations=None, weighted=False)
    assert found.directions.shape == (0, 2049)
