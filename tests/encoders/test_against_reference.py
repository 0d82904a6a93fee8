"""The compiled encoders against the naive ones of tests/reference, on random words, in every variant."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sentfold.encoders.base.lexicon import Lexicon
from sentfold.encoders.gem import GemEncoder
from tests.encoders.lexicons import encode, make_encoder, make_lexicon, make_sentences
from tests.reference import naive

# Stored as float32: half a unit in the last place is 6e-8 of the largest entry; sums differ by rounding below that.
STORED = 1.5e-7
# The randomised solver of the released variants: 5 or 7 power iterations leave this much of a direction open here.
RANDOMISED = 1e-4


def close(got: np.ndarray, wanted: np.ndarray, bound: float = STORED) -> None:
    np.testing.assert_allclose(got, wanted, rtol=0, atol=bound * float(np.abs(wanted).max()))


def table_of(lexicon: Lexicon) -> dict[str, np.ndarray]:
    return dict(zip(lexicon.words, lexicon.vectors.astype(np.float64), strict=True))


def counts_of(lexicon: Lexicon) -> dict[str, int]:
    return dict(zip(lexicon.counts.words, lexicon.counts.counts.tolist(), strict=True))


def clusters_of(lexicon: Lexicon) -> tuple[dict[str, int], np.ndarray]:
    clusters = lexicon.demand_clusters("test")
    assert clusters.centroids is not None
    return dict(zip(lexicon.words, clusters.labels.tolist(), strict=True)), clusters.centroids


@pytest.fixture(params=[0, 1, 2])
def lexicon(request: pytest.FixtureRequest) -> Lexicon:
    return make_lexicon(request.param)


SENTENCES = make_sentences()
TOKENS = [sentence.split() for sentence in SENTENCES]


@pytest.mark.parametrize("variant", ["published", "released"])
def test_the_average_is_the_mean_of_the_words(lexicon: Lexicon, variant: str) -> None:
    wanted = np.array([naive.average(words, table_of(lexicon)) for words in TOKENS])
    close(encode("average", lexicon, SENTENCES, variant=variant), wanted)


@pytest.mark.parametrize(("variant", "bound"), [("published", STORED), ("released", RANDOMISED)])
@pytest.mark.parametrize("components", [1, 2])
def test_sif_is_the_weighted_mean_without_its_first_directions(
    lexicon: Lexicon, variant: str, bound: float, components: int
) -> None:
    wanted = naive.sif(TOKENS, table_of(lexicon), counts_of(lexicon), a=1e-3, components=components)
    close(encode("sif", lexicon, SENTENCES, variant=variant, components=components), wanted, bound)


@pytest.mark.parametrize("variant", ["published", "released"])
def test_sif_without_removal_is_the_weighted_mean(lexicon: Lexicon, variant: str) -> None:
    table, counts = table_of(lexicon), counts_of(lexicon)
    wanted = np.array([naive.weighted_average(w, table, lambda x: naive.sif_weight(x, counts, 3e-4)) for w in TOKENS])
    # The released weights are float32 themselves.
    close(encode("sif", lexicon, SENTENCES, variant=variant, a=3e-4, component="none"), wanted, 2 * STORED)


@pytest.mark.parametrize(("variant", "bound"), [("published", STORED), ("released", RANDOMISED)])
@pytest.mark.parametrize("components", [0, 1, 5])
def test_usif_normalises_dimensions_and_weakens_its_directions(
    lexicon: Lexicon, variant: str, bound: float, components: int
) -> None:
    wanted = naive.usif(TOKENS, table_of(lexicon), counts_of(lexicon), length=11, components=components)
    close(encode("usif", lexicon, SENTENCES, variant=variant, components=components), wanted, bound)


@pytest.mark.parametrize("principal", [False, True])
def test_power_means_are_taken_per_coordinate(lexicon: Lexicon, principal: bool) -> None:
    means = ["max", "mean", "p3", "min", "p2", "p5"]
    wanted = np.array([naive.power_means(w, table_of(lexicon), means, principal=principal) for w in TOKENS])
    variant = "released" if principal else "published"
    close(encode("pmeans", lexicon, SENTENCES, variant=variant, means=tuple(means)), wanted)


@pytest.mark.parametrize("variant", ["published", "released"])
@pytest.mark.parametrize("coefficients", [1, 3, 6])
def test_dct_is_the_orthonormal_transform_along_the_words(lexicon: Lexicon, variant: str, coefficients: int) -> None:
    wanted = np.array([naive.cosine_transform(words, table_of(lexicon), coefficients) for words in TOKENS])
    close(encode("dct", lexicon, SENTENCES, variant=variant, coefficients=coefficients), wanted)


@pytest.mark.parametrize(
    ("settings", "power"), [({"variant": "published"}, 0.5), ({"variant": "released"}, 1.0), ({"power": 0.3}, 0.3)]
)
def test_vlawe_sums_residuals_per_cluster(lexicon: Lexicon, settings: dict[str, object], power: float) -> None:
    clusters, centroids = clusters_of(lexicon)
    wanted = np.array([naive.vlawe(w, table_of(lexicon), clusters, centroids, power=power) for w in TOKENS])
    close(encode("vlawe", lexicon, SENTENCES, **settings), wanted)


SUBSPACE: list[tuple[str, dict[str, object], dict[str, object], str]] = [
    ("s3e", {"variant": "published"}, {"weigh_residual": True, "root_two": True, "power": 1.0}, "both"),
    ("s3e", {"variant": "released"}, {"weigh_residual": False, "root_two": True, "power": 1.0}, "both"),
    ("s3e", {"covariance": False}, {"weigh_residual": True, "root_two": True, "power": 1.0}, "mean"),
    ("s3e", {"mean": False, "power": 0.5}, {"weigh_residual": True, "root_two": True, "power": 0.5}, "covariance"),
    (
        "s3e",
        {"mean": False, "normalise": False},
        {"weigh_residual": True, "root_two": True, "power": 1.0, "normalise": False},
        "covariance",
    ),
    ("lase", {"variant": "published"}, {"weigh_residual": True, "root_two": False, "power": 0.5}, "covariance"),
    ("lase", {"variant": "released"}, {"weigh_residual": False, "root_two": True, "power": 1.0}, "both"),
    ("lase", {"mean": True, "power": 1.0}, {"weigh_residual": True, "root_two": False, "power": 1.0}, "both"),
]


@pytest.mark.parametrize(("method", "settings", "equations", "parts"), SUBSPACE)
def test_s3e_and_lase_describe_the_covariance_between_clusters(
    lexicon: Lexicon, method: str, settings: dict[str, object], equations: dict[str, object], parts: str
) -> None:
    counts, (clusters, centroids), table = counts_of(lexicon), clusters_of(lexicon), table_of(lexicon)

    def weight(word: str) -> float:
        if method == "lase" and settings.get("variant") != "released":
            return naive.laplace_weight(word, counts)
        return naive.sif_weight(word, counts, 1e-3)

    wanted = []
    for words in TOKENS:
        mean, covariance = naive.subspace(words, table, clusters, centroids, weight, **equations)  # type: ignore[arg-type]
        wanted.append({"mean": mean, "covariance": covariance, "both": np.concatenate([mean, covariance])}[parts])
    got = encode(method, lexicon, SENTENCES, component="none", **settings)
    # The square root of a covariance near 0 magnifies its rounding: sqrt(1e-16) of the largest.
    close(got, np.array(wanted), 3e-7)


@pytest.mark.parametrize(
    ("method", "variant", "bound"),
    [("s3e", "published", STORED), ("s3e", "released", RANDOMISED), ("lase", "released", RANDOMISED)],
)
def test_s3e_and_lase_lose_the_first_direction_of_all_sentences(
    lexicon: Lexicon, method: str, variant: str, bound: float
) -> None:
    raw = encode(method, lexicon, SENTENCES, variant=variant, component="none").astype(np.float64)
    directions, _ = naive.right_singular(raw, 1)
    wanted = np.array([naive.without(row, directions, [1.0]) for row in raw])
    # Twice: the reference starts from rows that were already stored.
    close(encode(method, lexicon, SENTENCES, variant=variant), wanted, 2 * bound)


CENTROIDS: list[tuple[str, dict[str, object], Callable[[np.ndarray, np.ndarray], np.ndarray]]] = [
    ("s3e", {"variant": "published", "centroid": "scaled-mean"}, lambda v, w: (w[:, None] * v).sum(0) / len(v)),
    ("s3e", {"variant": "released", "centroid": "weighted-mean"}, lambda v, w: (w[:, None] * v).sum(0) / w.sum()),
    ("lase", {"variant": "published", "centroid": "mean"}, lambda v, w: v.mean(0)),
]


@pytest.mark.parametrize(("method", "settings", "rule"), CENTROIDS)
def test_centroids_follow_each_papers_rule_where_none_are_given(
    lexicon: Lexicon, method: str, settings: dict[str, object], rule: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> None:
    from dataclasses import replace

    clusters = lexicon.demand_clusters("test")
    counts = counts_of(lexicon)
    released_weights = np.array([naive.sif_weight(word, counts, 1e-3) for word in lexicon.words])
    vectors = lexicon.vectors.astype(np.float64)
    own = np.array(
        [
            rule(vectors[clusters.labels == k], released_weights[clusters.labels == k])
            if (clusters.labels == k).any()
            else np.zeros(lexicon.dimension)
            for k in range(clusters.size)
        ]
    )
    given = replace(lexicon, clusters=replace(clusters, centroids=own))
    bare = replace(lexicon, clusters=replace(clusters, centroids=None))
    settings = {**settings, "component": "none"}
    without_rule = {key: value for key, value in settings.items() if key != "centroid"}
    wanted = encode(method, given, SENTENCES, **without_rule)
    close(encode(method, lexicon, SENTENCES, **settings), wanted)  # the rule, whatever was given
    if clusters.labels.max() + 1 == clusters.size:
        close(encode(method, bare, SENTENCES, **without_rule), wanted)  # the variant's own rule


# --- GEM --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["published", "released"])
@pytest.mark.parametrize("dimension", [12, 60])
@pytest.mark.parametrize("window", [2, 7])
def test_gem_equals_its_equations_with_a_decomposition_of_every_window(
    variant: str, dimension: int, window: int
) -> None:
    lexicon = make_lexicon(4, dimension=dimension)
    table, released = table_of(lexicon), variant == "released"
    directions, values = naive.corpus_directions(TOKENS, table, 3.0, 9, canonical=not released)
    wanted = np.array(
        [naive.gem(w, table, directions, values, window=window, removed=4, released=released) for w in TOKENS]
    )
    got = encode("gem", lexicon, SENTENCES, variant=variant, window=window, candidates=9, removed=4)
    close(got, wanted, 3e-7)


@pytest.mark.parametrize(
    "settings",
    [
        {"scores": ("novelty",)},
        {"scores": ("significance",)},
        {"scores": ("uniqueness",)},
        {"scores": ()},
        {"selection": "sir"},
        {"selection": "none"},
        {"scores": (), "selection": "sir"},
        {"scores": ("novelty", "uniqueness"), "selection": "none"},
    ],
)
def test_the_ablations_of_gem_leave_out_what_they_say(settings: dict[str, object]) -> None:
    lexicon = make_lexicon(5, dimension=30)
    table = table_of(lexicon)
    directions, values = naive.corpus_directions(TOKENS, table, 3.0, 9, canonical=True)
    wanted = np.array(
        [naive.gem(w, table, directions, values, window=7, removed=4, released=False, **settings) for w in TOKENS]  # type: ignore[arg-type]
    )
    close(encode("gem", lexicon, SENTENCES, candidates=9, removed=4, **settings), wanted, 3e-7)


def test_the_sign_free_directions_of_gem_are_those_of_the_mean_over_all_signs() -> None:
    lexicon = make_lexicon(6, dimension=20)
    directions, values = naive.sign_free_directions(TOKENS, table_of(lexicon), 3, 5)
    learned = make_encoder("gem", lexicon, signs="free", candidates=5).fit(SENTENCES).learned
    np.testing.assert_allclose(learned["singular_values"], values, rtol=1e-9)
    # Directions are equal up to their sign.
    np.testing.assert_allclose(np.abs(np.sum(learned["directions"] * directions, axis=1)), 1, atol=1e-8)


def test_the_sign_free_directions_are_what_random_signs_give_on_average() -> None:
    # E[g g^T] over independent signs is sum_c s_c^(2t) u_c u_c^T: sampled here, with the error of 4,000 draws.
    lexicon = make_lexicon(7, dimension=6)
    table, rng = table_of(lexicon), np.random.default_rng(0)
    total = np.zeros((6, 6))
    decompositions = [np.linalg.svd(np.array([table[w] for w in words]).T, full_matrices=False) for words in TOKENS]
    draws = 4000
    for left, values, _ in decompositions:
        g = left @ (rng.choice([-1.0, 1.0], size=(len(values), draws)) * (values**3)[:, None])
        total += g @ g.T / draws
    learned = make_encoder("gem", lexicon, signs="free", candidates=6).fit(SENTENCES).learned
    rows, values = learned["directions"], learned["singular_values"]
    expected = rows.T @ np.diag(values**2) @ rows
    assert np.abs(total - expected).max() < 0.05 * np.abs(expected).max()


def draw_long_sentences(*, seed: int, lengths: tuple[int, ...]) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    words = sorted({word for sentence in TOKENS for word in sentence})
    return [list(rng.choice(words, size=length)) for length in lengths]


@pytest.mark.parametrize("dimension", [30, 100, 130])
def test_gem_reads_long_texts_by_the_same_equations(dimension: int) -> None:
    # 70 to 200 words: fewer and more than there are dimensions, and more than its decomposition takes whole.
    lexicon = make_lexicon(10, dimension=dimension)
    texts = draw_long_sentences(seed=dimension, lengths=(1, 63, 64, 65, 70, 110, 129, 130, 131, 200))
    table = table_of(lexicon)
    directions, values = naive.corpus_directions(texts, table, 3.0, 9, canonical=True)
    wanted = np.array([naive.gem(w, table, directions, values, window=7, removed=4, released=False) for w in texts])
    close(encode("gem", lexicon, [" ".join(words) for words in texts], candidates=9, removed=4), wanted, 3e-7)


def test_the_sign_free_directions_of_long_texts_are_those_of_the_mean_over_all_signs() -> None:
    lexicon = make_lexicon(11, dimension=20)
    texts = draw_long_sentences(seed=0, lengths=(3, 19, 20, 21, 90))
    directions, values = naive.sign_free_directions(texts, table_of(lexicon), 3, 5)
    encoder = make_encoder("gem", lexicon, signs="free", candidates=5)
    learned = encoder.fit([" ".join(words) for words in texts]).learned
    np.testing.assert_allclose(learned["singular_values"], values, rtol=1e-9)
    np.testing.assert_allclose(np.abs(np.sum(learned["directions"] * directions, axis=1)), 1, atol=1e-8)


@pytest.mark.parametrize("apart", [0.3, 1e-1, 1e-2, 1e-3, 1e-4, 0.0])
def test_gem_weighs_words_that_lie_almost_in_the_span_of_their_neighbours(apart: float) -> None:
    # `c` is a + b and a little of its own, `d` is c again: squared lengths alone would lose what is left of it.
    rng = np.random.default_rng(3)
    a, b, own, other = np.round(8 * rng.normal(size=(4, 16))) / 8  # so that a + b is exact
    rows = np.array(
        [a, b, a + b + apart * own, a + b + apart * own, other, 2 * other + rng.normal(size=16)], dtype=np.float32
    )
    lexicon = Lexicon(tuple("abcdef"), rows, make_lexicon(0).counts)
    texts = [list("abc"), list("acb"), list("cabfe"), list("abcd"), list("ccab"), list("efabcabd")]
    table = table_of(lexicon)
    directions, values = naive.corpus_directions(texts, table, 3.0, 3, canonical=True)
    for scores in (("novelty",), ("significance",), ("uniqueness",)):
        wanted = np.array(
            [naive.gem(w, table, directions, values, window=4, removed=2, released=False, scores=scores) for w in texts]
        )
        got = encode(
            "gem",
            lexicon,
            [" ".join(words) for words in texts],
            window=4,
            candidates=3,
            removed=2,
            scores=scores,
            tokenizer="whitespace",
        )
        close(got, wanted, 1e-6)


def test_gem_can_be_given_its_directions() -> None:
    lexicon = make_lexicon(8, dimension=20)
    encoder = make_encoder("gem", lexicon, candidates=6, removed=3)
    assert isinstance(encoder, GemEncoder)
    fitted = encoder.fit(SENTENCES)
    # Signs of the directions do not matter, and rows beyond `candidates` are not looked at.
    extended = np.vstack([-fitted.directions.rows, np.eye(20)[:1]])
    given = encoder.fit_directions(extended, np.append(fitted.directions.singular_values, 1e9))
    np.testing.assert_array_equal(given.encode(SENTENCES).vectors, fitted.encode(SENTENCES).vectors)


def test_gem_that_removes_nothing_is_the_weighted_sum_of_its_words(lexicon: Lexicon) -> None:
    table = table_of(lexicon)
    # h is as large as K: uniqueness reads every direction, and none has to be chosen.
    directions, values = naive.corpus_directions(TOKENS, table, 3.0, 45, canonical=True)
    for scores in ((), ("novelty", "significance", "uniqueness")):
        wanted = [
            np.array([table[word] for word in words]).T
            @ naive.gem_weights(words, table, directions, values, window=7, released=False, scores=scores)
            for words in TOKENS
        ]
        got = encode("gem", lexicon, SENTENCES, selection="none", scores=scores, candidates=45, removed=45)
        close(got, np.array(wanted), 3e-7)


@pytest.mark.parametrize("scaled", [True, False])
def test_gem_without_weights_loses_the_directions_that_carry_most_of_a_sentence(lexicon: Lexicon, scaled: bool) -> None:
    table = table_of(lexicon)
    directions, values = naive.corpus_directions(TOKENS, table, 3.0, 6, canonical=True)
    wanted = []
    for words in TOKENS:
        rows = np.array([table[word] for word in words])
        fit = np.linalg.norm(rows @ directions.T, axis=0) * (values if scaled else 1.0)
        chosen = directions[np.argsort(fit)[-2:]]
        wanted.append(rows.sum(axis=0) - chosen.T @ (chosen @ rows.sum(axis=0)))
    got = encode("gem", lexicon, SENTENCES, scores=(), candidates=6, removed=2, scaled=scaled)
    close(got, np.array(wanted), 3e-7)


def unit_table(lexicon: Lexicon) -> dict[str, np.ndarray]:
    return {word: naive.unit(vector) for word, vector in table_of(lexicon).items()}


# The vectors of length 1 are stored as float32 before they are weighed, which costs another rounding of each.
def test_the_average_takes_words_of_length_one(lexicon: Lexicon) -> None:
    wanted = np.array([naive.average(words, unit_table(lexicon)) for words in TOKENS])
    close(encode("average", lexicon, SENTENCES, unit_words=True), wanted, 2 * STORED)


def test_sif_takes_words_of_length_one(lexicon: Lexicon) -> None:
    wanted = naive.sif(TOKENS, unit_table(lexicon), counts_of(lexicon), a=1e-3, components=1)
    close(encode("sif", lexicon, SENTENCES, unit_words=True), wanted, 1e-6)


def test_usif_takes_words_of_length_one(lexicon: Lexicon) -> None:
    wanted = naive.usif(TOKENS, unit_table(lexicon), counts_of(lexicon), length=11, components=5)
    close(encode("usif", lexicon, SENTENCES, unit_words=True), wanted, 1e-6)


def test_gem_takes_words_of_length_one() -> None:
    lexicon = make_lexicon(9, dimension=20)
    table = unit_table(lexicon)
    directions, values = naive.corpus_directions(TOKENS, table, 3.0, 45, canonical=True)
    wanted = np.array([naive.gem(w, table, directions, values, window=7, removed=17, released=False) for w in TOKENS])
    # Only 20 - 17 directions are left, and the unit vectors were stored as float32 before they were weighed.
    close(encode("gem", lexicon, SENTENCES, unit_words=True), wanted, 3e-6)
