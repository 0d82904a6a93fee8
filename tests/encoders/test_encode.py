"""Stage `encode`: which words it takes, what it writes for which corpus, and what it was fitted on."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

from pipeline.base.artifacts import (
    absence,
    corpus_path,
    fixed_lists,
    read_lists,
    read_record,
    read_table,
    read_vectors,
    space_path,
    write_absence,
    write_table,
)
from pipeline.base.params import load_parameters
from pipeline.stages.encode import WordEncoderParameters, encode, fit_path, load_lexicon
from pipeline.words.artifacts import clusters_path, counts_path, vectors_path, vocabulary_path
from sentfold.encoders.base.lexicon import Lexicon
from sentfold.encoders.base.protocol import find_method
from sentfold.errors import ArtifactError, EncoderError, ParameterError
from tests.encoders.lexicons import make_encoder, make_lexicon, make_sentences

ROOT = Path(__file__).parents[2]
SENTENCES = make_sentences(count=25)
CORPORA = {"first": SENTENCES[:20], "second": SENTENCES[15:], "tiny": ["dog", ""]}
BLOCKS: dict[str, Any] = {
    "plain": {"method": "average", "vectors": "ours", "tokenizer": "whitespace"},
    "mine": {"method": "sif", "vectors": "ours", "tokenizer": "whitespace", "settings": {"a": 0.01}},
    "shared": {"method": "sif", "vectors": "ours", "tokenizer": "whitespace", "fit_on": "suite"},
    "rare": {"method": "sif", "vectors": "ours", "tokenizer": "whitespace", "counts": "own"},
    "grouped": {
        "method": "s3e",
        "vectors": "ours",
        "tokenizer": "whitespace",
        "clusters": {"clustering": "groups", "size": 6},
    },
    "ungrouped": {"method": "s3e", "vectors": "ours", "tokenizer": "whitespace"},
    "ordered": {"method": "gem", "vectors": "ours", "tokenizer": "whitespace", "settings": {"scores": ["novelty"]}},
}


@pytest.fixture
def lexicon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lexicon:
    """A folder with the artifacts of a made-up suite, and its words; the working directory is that folder."""
    monkeypatch.chdir(tmp_path)
    lexicon = make_lexicon()
    content = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    Path("params.yaml").write_text(yaml.safe_dump({**content, "word_encoders": BLOCKS}), encoding="utf-8")
    for corpus, texts in CORPORA.items():
        table = pa.table({"text": pa.array(texts, pa.string())})
        write_table(
            corpus_path("toy", corpus, "sentences"),
            table,
            kind="sentences",
            parameters={},
            notes={"task": "similarity"},
        )
    write_absence(corpus_path("toy", "lost", "sentences"), "the source lacks it", kind="sentences")
    write_words(lexicon)
    return lexicon


def write_words(lexicon: Lexicon) -> None:
    words = pa.array(lexicon.words, pa.string())
    vectors = pa.table({"word": words, "vector": fixed_lists(np.ascontiguousarray(lexicon.vectors, dtype=np.float32))})
    write_table(vectors_path("toy", "ours", "whitespace"), vectors, kind="word_vectors", parameters={})
    counted = pa.array(lexicon.counts.words, pa.string())
    counts = pa.table({"word": counted, "count": pa.array(lexicon.counts.counts, pa.int64())})
    write_table(counts_path("toy", "whitespace"), counts, kind="counts", parameters={})
    own = pa.table({"word": words, "count": pa.array(np.arange(1, 1 + len(words)), pa.int64())})
    write_table(vocabulary_path("toy", "whitespace"), own, kind="vocabulary", parameters={})
    clusters = lexicon.demand_clusters("test")
    assert clusters.centroids is not None
    labels = pa.table({"word": words, "cluster": pa.array(clusters.labels, pa.int32())})
    write_table(clusters_path("toy", "groups", "k6-s0", "clusters"), labels, kind="clusters", parameters={})
    numbers = pa.array(np.arange(len(clusters.centroids)), pa.int32())
    points = pa.table({"cluster": numbers, "vector": fixed_lists(clusters.centroids.astype(np.float32))})
    write_table(clusters_path("toy", "groups", "k6-s0", "centroids"), points, kind="centroids", parameters={})


def vectors_of(name: str, corpus: str) -> np.ndarray:
    return read_vectors(space_path("toy", name, corpus))


def test_every_corpus_gets_the_vectors_of_an_encoder_fitted_on_it(lexicon: Lexicon) -> None:
    done = encode("toy", "mine", ("first", "second", "tiny"))
    assert [(one.corpus, one.sentences) for one in done] == [
        ("first", 20),
        ("second", len(CORPORA["second"])),
        ("tiny", 2),
    ]
    for corpus, texts in CORPORA.items():
        wanted = make_encoder("sif", lexicon, a=0.01).fit(texts).encode(texts).vectors
        np.testing.assert_array_equal(vectors_of("mine", corpus), wanted)


def test_a_corpus_whose_words_are_no_vocabulary_has_no_part_in_what_others_are_fitted_on(lexicon: Lexicon) -> None:
    encode("toy", "shared", ("first",))
    alone = vectors_of("shared", "first")
    encode("toy", "shared", ("first", "second", "lost"), wordless=("second",))
    np.testing.assert_array_equal(vectors_of("shared", "first"), alone)
    fitted = make_encoder("sif", lexicon).fit(CORPORA["first"])
    np.testing.assert_array_equal(vectors_of("shared", "second"), fitted.encode(CORPORA["second"]).vectors)
    assert absence(space_path("toy", "shared", "lost"), kind="vectors") == "the source lacks it"


def test_the_record_names_the_fitting_set_the_settings_and_the_fallbacks(lexicon: Lexicon) -> None:
    encode("toy", "mine", ("first", "tiny"))
    record = read_record(space_path("toy", "mine", "tiny"), kind="vectors")
    assert record["notes"]["fitted_on"] == {"sentences": 2, "set": "tiny"}
    assert record["notes"]["fallbacks"]["empty"] == 1
    # The other sentence is all that was fitted on, so nothing of it is left.
    assert record["notes"]["fallbacks"]["vanished with the removed directions"] == 1
    assert (record["notes"]["task"], record["notes"]["sentences"]) == ("similarity", 2)
    assert record["notes"]["dimension"] == lexicon.dimension
    assert record["parameters"]["settings"]["a"] == 0.01
    assert record["parameters"]["method"] == "sif"
    assert str(vectors_path("toy", "ours", "whitespace")) in record["inputs"]
    assert str(corpus_path("toy", "tiny", "sentences")) in record["inputs"]


@pytest.mark.parametrize("name", ["mine", "grouped", "ordered"])
def test_what_was_learned_is_stored_beside_the_space(lexicon: Lexicon, name: str) -> None:
    encode("toy", name, ("first",))
    path = fit_path("toy", name, "first")
    table = read_table(path, kind="directions")
    rows = read_lists(table, "vector", path=path)
    assert rows.dtype == np.float64
    assert len(table.column("singular_value")) == len(rows) > 0
    assert read_record(path, kind="directions")["notes"]["fitted_on"] == {"sentences": 20, "set": "first"}


def test_an_encoder_that_learns_nothing_says_so(lexicon: Lexicon) -> None:
    encode("toy", "plain", ("first",))
    assert absence(fit_path("toy", "plain", "first"), kind="directions") == "nothing was learned from the sentences"


def test_an_encoder_may_be_fitted_on_all_distinct_sentences_of_the_suite(lexicon: Lexicon) -> None:
    encode("toy", "shared", ("first", "second"))
    every = list(dict.fromkeys([*CORPORA["first"], *CORPORA["second"]]))
    fitted = make_encoder("sif", lexicon).fit(every)
    for corpus in ("first", "second"):
        np.testing.assert_array_equal(vectors_of("shared", corpus), fitted.encode(CORPORA[corpus]).vectors)
        notes = read_record(space_path("toy", "shared", corpus), kind="vectors")["notes"]
        assert notes["fitted_on"] == {"sentences": len(every), "set": "suite"}


def test_an_absent_corpus_is_a_blank_in_the_space_and_in_what_was_learned(lexicon: Lexicon) -> None:
    encode("toy", "mine", ("first", "lost"))
    assert absence(space_path("toy", "mine", "lost"), kind="vectors") == "the source lacks it"
    assert absence(fit_path("toy", "mine", "lost"), kind="directions") == "the source lacks it"


def test_the_counts_are_the_suites_or_its_own(lexicon: Lexicon) -> None:
    encode("toy", "rare", ("first",))
    encode("toy", "shared", ("first",))
    assert np.abs(vectors_of("rare", "first") - vectors_of("shared", "first")).max() > 1e-3


def test_words_outside_the_clustering_are_unknown(lexicon: Lexicon) -> None:
    path = clusters_path("toy", "groups", "k6-s0", "clusters")
    table = read_table(path, kind="clusters")
    kept = np.array([word != "dog" for word in lexicon.words])
    write_table(path, table.filter(kept), kind="clusters", parameters={})
    held = load_lexicon("toy", load_parameters(WordEncoderParameters, "word_encoders.grouped"))
    assert "dog" not in held.index and "cat" in held.index
    encode("toy", "grouped", ("tiny",))
    notes = read_record(space_path("toy", "grouped", "tiny"), kind="vectors")["notes"]
    assert notes["fallbacks"]["all words unknown"] == 1


def test_the_same_inputs_give_the_same_bytes(lexicon: Lexicon) -> None:
    encode("toy", "ordered", ("first",))
    first = space_path("toy", "ordered", "first").read_bytes(), fit_path("toy", "ordered", "first").read_bytes()
    encode("toy", "ordered", ("first",))
    assert first == (
        space_path("toy", "ordered", "first").read_bytes(),
        fit_path("toy", "ordered", "first").read_bytes(),
    )


# --- refusals ---------------------------------------------------------------------------------------


def test_a_method_of_clusters_without_a_clustering_is_refused(lexicon: Lexicon) -> None:
    with pytest.raises(ParameterError, match="needs clusters") as caught:
        encode("toy", "ungrouped", ("first",))
    assert "word_encoders.ungrouped" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "error", "part"),
    [
        ({"method": "glove"}, EncoderError, "no encoding method"),
        ({"settings": {"aa": 1}}, ParameterError, "word_encoders.mine.settings.aa"),
        ({"settings": {"a": -1.0}}, ParameterError, "word_encoders.mine.settings.a"),
        ({"vectors": "theirs"}, ArtifactError, "theirs"),
        ({"tokenizer": "regex"}, ArtifactError, "regex"),
        ({"fit_on": "world"}, ParameterError, "word_encoders.mine.fit_on"),
        ({"window": 3}, ParameterError, "window"),
    ],
)
def test_a_wrong_block_is_refused_by_the_name_of_its_key(
    lexicon: Lexicon, change: dict[str, Any], error: type[Exception], part: str
) -> None:
    content = yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8"))
    content["word_encoders"]["mine"].update(change)
    Path("params.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    with pytest.raises(error) as caught:
        encode("toy", "mine", ("first",))
    assert part in str(caught.value)
    assert not space_path("toy", "mine", "first").exists()


# --- a method of one's own --------------------------------------------------------------------------

OWN_METHOD = '''
"""The longest word vector of a sentence, made up to show how a method is added."""

from sentfold.encoders.base.word_encoder import Reader, WordEncoder, WordSettings
from sentfold.encoders.base.lexicon import Lexicon
import numpy as np


class Settings(WordSettings):
    """Nothing but what every method has."""


class Longest:
    def __init__(self, lexicon: Lexicon) -> None:
        self.vectors, self.dimension = lexicon.vectors, lexicon.dimension

    def compose(self, words, out):
        out[:] = 0.0
        for s in range(len(words)):
            rows = self.vectors[words.ids[words.offsets[s] : words.offsets[s + 1]]]
            if len(rows):
                out[s] = rows[np.linalg.norm(rows, axis=1).argmax()]
        return {}


def build(lexicon: Lexicon, settings: Settings) -> WordEncoder:
    return WordEncoder(Reader(lexicon, settings.tokenizer), Longest(lexicon))
'''


def test_a_method_is_added_by_one_file_and_one_block(
    lexicon: Lexicon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sentfold.encoders

    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "longest.py").write_text(textwrap.dedent(OWN_METHOD), encoding="utf-8")
    monkeypatch.setattr(sentfold.encoders, "__path__", [*sentfold.encoders.__path__, str(folder)])
    content = yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8"))
    content["word_encoders"]["own"] = {"method": "longest", "vectors": "ours", "tokenizer": "whitespace"}
    Path("params.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    encode("toy", "own", ("first", "tiny"))
    words = CORPORA["first"][0].split()
    rows = lexicon.vectors[[lexicon.index[word] for word in words]]
    np.testing.assert_array_equal(vectors_of("own", "first")[0], rows[np.linalg.norm(rows, axis=1).argmax()])
    assert find_method("longest").Settings().variant == "published"
    shutil.rmtree(folder)
