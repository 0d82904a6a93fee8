"""Encoders over word vectors as estimators: what they learn, and that they are the encoders of the pipeline."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sentfold
from sentfold.encoders.base.estimator import WordEstimator, add_clusters, make_lexicon
from sentfold.encoders.base.protocol import find_method, known_methods
from sentfold.encoders.base.settings import make_settings
from sentfold.errors import ParameterError
from tests.encoders.lexicons import make_lexicon as make_reference
from tests.encoders.lexicons import make_sentences

SENTENCES = make_sentences(count=20)
LEXICON = make_reference()
VECTORS = dict(zip(LEXICON.words, LEXICON.vectors, strict=True))
COUNTS = dict(zip(LEXICON.counts.words, LEXICON.counts.counts.tolist(), strict=True))
CLUSTERS = dict(zip(LEXICON.words, LEXICON.demand_clusters("test").labels.tolist(), strict=True))


def estimators() -> dict[str, type[WordEstimator]]:
    """Method -> its class, of all that the library exports."""
    exported = [getattr(sentfold, name) for name in sentfold.EXPORTS]
    return {one.method: one for one in exported if isinstance(one, type) and issubclass(one, WordEstimator)}


def test_every_method_has_a_public_class() -> None:
    assert set(estimators()) == set(known_methods())


@pytest.mark.parametrize("method", known_methods())
def test_an_estimator_is_the_encoder_of_its_method(method: str) -> None:
    clusters = {"clusters": CLUSTERS} if method in ("vlawe", "s3e", "lase") else {}
    made = estimators()[method](VECTORS, counts=COUNTS, **clusters, tokenizer="whitespace")  # type: ignore[arg-type]
    got = made.fit(SENTENCES[:15]).encode(SENTENCES[15:])
    module = find_method(method)
    lexicon = make_lexicon(SENTENCES[:15], "whitespace", vectors=VECTORS, counts=COUNTS, **clusters)  # type: ignore[arg-type]
    settings = make_settings(module, {"tokenizer": "whitespace"}, where="test")
    wanted = module.build(lexicon, settings).fit(SENTENCES[:15]).encode(SENTENCES[15:])
    np.testing.assert_array_equal(got, wanted.vectors)
    assert made.encoding_.fallbacks == wanted.fallbacks


def test_without_word_vectors_the_words_of_the_sentences_have_token_vectors() -> None:
    made = sentfold.SIF().fit(["The dog naps.", "Snow falls!", "The snow naps."])
    apart = made.encode(["dog naps", "DOG naps", "kettle"])
    np.testing.assert_array_equal(apart[0], apart[1])
    assert not apart[2].any()
    assert made.encoding_.fallbacks["all words unknown"] == 1


def test_a_number_of_clusters_is_made_by_kmeans() -> None:
    centres = np.repeat(np.eye(3) * 10, 5, axis=0) + np.random.default_rng(0).normal(size=(15, 3)) * 0.1
    vectors: dict[str, Any] = {f"w{i}": row for i, row in enumerate(centres)}
    lexicon = make_lexicon([" ".join(vectors)], "regex", vectors=vectors, clusters=3)
    labels = lexicon.demand_clusters("test").labels
    assert [len(set(labels[start : start + 5])) for start in (0, 5, 10)] == [1, 1, 1]
    assert set(labels) == {0, 1, 2}


@pytest.mark.parametrize(
    ("vectors", "clusters", "part"),
    [({}, None, "vectors"), ({"a": [np.nan]}, None, "finite"), ({"a": [1.0]}, 2, "clusters")],
)
def test_words_that_cannot_be_used_are_refused(vectors: dict[str, Any], clusters: int | None, part: str) -> None:
    with pytest.raises(ParameterError, match=part):
        make_lexicon(["a b"], "regex", vectors=vectors, clusters=clusters)


@pytest.mark.parametrize("count", [-1, 2**60])
def test_a_count_that_is_no_count_is_refused_by_its_word(count: int) -> None:
    with pytest.raises(ParameterError, match="count cannot be used") as caught:
        make_lexicon(["a b"], "regex", vectors={"a": [1.0], "b": [2.0]}, counts={"a": 3, "b": count})
    assert caught.value.where == "counts: b"


@pytest.mark.parametrize("number", [2 * 10**8, 2**40, -2])
def test_the_number_of_a_cluster_is_bounded(number: int) -> None:
    with pytest.raises(ParameterError, match="number of a cluster"):
        make_lexicon(["a b"], "regex", vectors={"a": [1.0], "b": [2.0]}, clusters={"a": 0, "b": number})


def test_clusters_of_other_words_are_refused() -> None:
    with pytest.raises(ParameterError, match="no word is in a cluster"):
        sentfold.LASE({"a": [1.0], "b": [2.0]}, clusters={"c": 0}).fit(["a b"])


def test_a_wrong_setting_is_refused_before_the_fit() -> None:
    with pytest.raises(ParameterError, match="'b'"):
        sentfold.SIF(VECTORS, b=1)


def test_the_library_is_imported_without_its_methods(tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text("raise SystemExit('imported by mistake')")
    code = "import sys, sentfold; assert 'numpy' not in sys.modules; from sentfold import SIF; print(SIF.__name__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "SIF\n"), done.stderr


def test_a_cluster_without_a_centroid_is_refused_and_no_compiled_loop_reads_beyond_them() -> None:
    lexicon = make_lexicon(["a b"], "regex", vectors={"a": [1.0], "b": [2.0]})
    assert add_clusters(lexicon, {"a": 1, "b": 0}, np.zeros((2, 1))).demand_clusters("test").labels.tolist() == [1, 0]
    with pytest.raises(ParameterError, match="number of a cluster"):
        add_clusters(lexicon, {"a": 2, "b": 0}, np.zeros((2, 1)))


WORDS = {word: np.random.default_rng(place).standard_normal(8) for place, word in enumerate("abcdefgh")}
TEXTS = ["a b c", "d e f", "a g h", "b d", "e"]


def test_sentences_that_come_once_are_learnt_from_and_one_text_is_refused() -> None:
    listed = sentfold.SIF(WORDS).fit(TEXTS).encode(TEXTS)
    # The types say a sequence; users pass iterators all the same.
    once = sentfold.SIF(WORDS).fit(iter(TEXTS)).encode(iter(TEXTS))  # type: ignore[arg-type]
    np.testing.assert_array_equal(once, listed)
    for wrong in ("a b c", ["a", None]):
        with pytest.raises(ParameterError, match="sentences cannot be read"):
            sentfold.SIF(WORDS).fit(wrong)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("count", [1.9, 0.05, "5", float("nan")])
def test_a_share_or_a_text_is_no_count(count: Any) -> None:
    with pytest.raises(ParameterError, match="count cannot be used"):
        sentfold.SIF(WORDS, counts={"a": 3, "b": count}).fit(TEXTS)


@pytest.mark.parametrize("number", [0.5, "0"])
def test_a_number_of_a_cluster_is_whole(number: Any) -> None:
    with pytest.raises(ParameterError, match="number of a cluster"):
        sentfold.S3E(WORDS, clusters={"a": 0, "b": number}).fit(TEXTS)


def test_the_number_of_clusters_may_be_numpys_and_is_whole() -> None:
    with pytest.raises(ParameterError, match="number of clusters"):
        sentfold.S3E(WORDS, clusters=2.5).fit(TEXTS)  # type: ignore[arg-type]  # wrong on purpose
    numpys: Any = np.int64(2)  # which is no int to the type checker
    ours = sentfold.S3E(WORDS, clusters=numpys).fit(TEXTS).encode(TEXTS)
    np.testing.assert_array_equal(ours, sentfold.S3E(WORDS, clusters=2).fit(TEXTS).encode(TEXTS))


@pytest.mark.parametrize("vectors", [{"a": [1.0, 2.0], "b": [3.0]}, {"a": ["x"]}, {"a": []}])
def test_vectors_of_several_lengths_or_of_no_numbers_are_refused(vectors: Any) -> None:
    with pytest.raises(ParameterError, match="word vectors cannot be used"):
        sentfold.SIF(vectors).fit(TEXTS)


def test_vectors_that_float32_rounds_to_zeros_are_refused_by_their_word() -> None:
    with pytest.raises(ParameterError, match="too short") as caught:
        sentfold.SIF({**WORDS, "zeros": np.zeros(8), "d": 1e-200 * WORDS["d"]}).fit(TEXTS)
    assert caught.value.where == "vectors: d"


@pytest.mark.parametrize("power", [-83, 83])
def test_the_unit_of_the_vectors_does_not_matter_to_clusters_of_words(power: int) -> None:
    def labels(vectors: Any) -> np.ndarray:
        return make_lexicon(TEXTS, "regex", vectors=vectors, clusters=3).demand_clusters("test").labels

    scaled = {word: np.ldexp(vector, power) for word, vector in WORDS.items()}
    np.testing.assert_array_equal(labels(scaled), labels(WORDS))


@pytest.mark.parametrize("method", [sentfold.S3E, sentfold.LASE])
def test_sentence_vectors_that_no_memory_holds_are_refused(method: type[WordEstimator]) -> None:
    with pytest.raises(ParameterError, match="too long a vector"):
        method(WORDS, clusters={"a": 0, "b": 60_000}).fit(TEXTS)


def test_an_encoder_of_no_part_is_refused() -> None:
    with pytest.raises(ParameterError, match="no numbers"):
        sentfold.S3E(WORDS, clusters=2, mean=False, covariance=False).fit(TEXTS)


@pytest.mark.parametrize("signs", ["canonical", "free"])
@pytest.mark.parametrize(("power", "unit"), [(2000.0, 1.0), (30.0, 1e-30)])
def test_powers_that_leave_the_range_of_float64_are_refused(power: float, unit: float, signs: str) -> None:
    with pytest.raises(ParameterError, match="leave the range"):
        sentfold.GEM({word: unit * vector for word, vector in WORDS.items()}, power=power, signs=signs).fit(TEXTS)
