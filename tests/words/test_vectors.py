"""Stage word_vectors: packages, files, concatenations and what is done to them, on small files of our own."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from pipeline.base.artifacts import read_record
from pipeline.base.params import load_parameters
from pipeline.stages.vocabulary import vocabulary
from pipeline.stages.word_vectors import load_blocks, word_vectors
from pipeline.words.artifacts import load_vectors, vectors_path
from pipeline.words.published import find_location, load_locations
from sentfold.errors import ParameterError, SentfoldError, SourceError
from sentfold.files import sha256_of
from sentfold.words.vectors import WordVectorParameters
from sentfold.words.wordllama import sum_rows, token_means
from tests.corpora.swapping import swapping
from tests.words.conftest import CORPORA, ROOT, Shelf, rows, write_params

SHIPPED = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))["word_vectors"]
VOCABULARY = ["the", "naps", ",", ".", "dog", "nine", "!", "cat", "falls", "harbour", "kettles", "loaves", "on", "snow"]


@pytest.fixture
def counted(checkout: Path) -> Path:
    """The checkout with its vocabularies."""
    for tokenizer in ("regex", "whitespace"):
        vocabulary("mine", tokenizer, CORPORA)
    return checkout


def make(shelf: Shelf, block: dict[str, Any], **others: dict[str, Any]) -> dict[str, list[float]]:
    """Run the stage for a block called `it`; word -> vector as stored for the regex vocabulary."""
    write_params({"word_vectors": {"it": block, **others}})
    word_vectors("mine", "it", ("regex",), locations=shelf.locations)
    words, vectors = load_vectors("mine", "it", "regex")
    return dict(zip(words, vectors.tolist(), strict=True))


# --- the package ------------------------------------------------------------------------------------


def test_a_word_is_the_mean_of_its_tokens_in_wordllama(counted: Path) -> None:
    from importlib.util import find_spec

    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    assert word_vectors("mine", "wordllama", ("regex", "whitespace")) == {"regex": 14, "whitespace": 15}
    words, vectors = load_vectors("mine", "wordllama", "whitespace")
    spec = find_spec("wordllama")
    assert spec is not None and spec.submodule_search_locations
    package = Path(spec.submodule_search_locations[0])
    table = load_file(package / "weights/l2_supercat_256.safetensors")["embedding.weight"]
    tokenizer = Tokenizer.from_file(str(package / "tokenizers/l2_supercat_tokenizer_config.json"))
    for word, vector in zip(words, vectors, strict=True):
        tokens = tokenizer.encode(word, add_special_tokens=False).ids
        # float16 vectors, averaged in another precision and stored as float32.
        np.testing.assert_allclose(vector, table[tokens].astype(np.float32).mean(axis=0), atol=1e-6)
    assert vectors.dtype == np.float32 and vectors.shape == (15, 256)


def test_wordllama_knows_every_word() -> None:
    words = ["dog", "qqxyz", "\u65e5\u672c", "\U0001f98a", "\x00", "caf\u00e9s", "a" * 5000, "\u0378"]
    vectors = token_means(words, package="wordllama", sha256=SHIPPED["wordllama"]["sha256"])
    assert np.isfinite(vectors).all()
    assert (np.abs(vectors).max(axis=1) > 0).all()
    # A word does not depend on its company.
    alone = [token_means([word], package="wordllama", sha256=SHIPPED["wordllama"]["sha256"])[0] for word in words]
    np.testing.assert_array_equal(vectors, alone)


@pytest.mark.parametrize("spoil", ["weights", "tokenizers"])
def test_other_bytes_in_the_package_are_refused(spoil: str) -> None:
    pinned = {name: "0" * 64 if name.startswith(spoil) else sha for name, sha in SHIPPED["wordllama"]["sha256"].items()}
    with pytest.raises(SourceError) as caught:
        token_means(["dog"], package="wordllama", sha256=pinned)
    assert spoil in caught.value.where and "0" * 64 in str(caught.value)
    with pytest.raises(SourceError, match="pinned"):
        token_means(["dog"], package="wordllama", sha256={})
    with pytest.raises(SourceError, match="not installed"):
        token_means(["dog"], package="no_such_package", sha256=pinned)


# --- files ------------------------------------------------------------------------------------------


def test_a_file_is_read_once_for_all_vocabularies_in_the_order_of_each(counted: Path, shelf: Shelf) -> None:
    shelf.put("small", rows(["cat", "harbour.", "the", "pig", "dog", "naps."], 4))
    write_params({"word_vectors": {"it": {"file": "small"}}})
    assert word_vectors("mine", "it", ("regex", "whitespace"), locations=shelf.locations) == {
        "regex": 3,
        "whitespace": 5,
    }
    words, vectors = load_vectors("mine", "it", "regex")
    assert words == ("the", "dog", "cat")
    held = rows(["cat", "harbour.", "the", "pig", "dog", "naps."], 4)
    np.testing.assert_array_equal(vectors, [held[word] for word in words])
    notes = read_record(vectors_path("mine", "it", "regex"), kind="word_vectors")["notes"]
    assert notes["missing"] == 11
    assert notes["sources"]["it"] == {
        "duplicates": 0,
        "files": {"small.txt": sha256_of(shelf.folder / "small.txt")},
        "records": 6,
    }


def test_a_second_run_writes_the_same_bytes(counted: Path, shelf: Shelf) -> None:
    shelf.put("small", rows(VOCABULARY, 4))
    digests = []
    for _ in range(2):
        make(shelf, {"file": "small", "pvn": 2, "scale": "unit"})
        digests.append(sha256_of(vectors_path("mine", "it", "regex")))
    assert digests[0] == digests[1]


@pytest.mark.parametrize(("missing", "pig"), [("drop", None), ("zero", [0.0, 0.0]), ("mean", [2.0, 6.0])])
def test_a_word_that_the_file_lacks_gets_what_the_block_says(
    counted: Path, shelf: Shelf, missing: str, pig: list[float] | None
) -> None:
    shelf.put("small", {"the": [1.0, 4.0], "dog": [3.0, 8.0], "unseen": [100.0, 100.0]})
    held = make(shelf, {"file": "small", "missing": missing})
    # The mean is over the words of the vocabulary that were found, as in S3E's code, not over the file.
    assert held.get("snow") == pig
    assert len(held) == (14 if pig else 2)
    assert held["dog"] == [3.0, 8.0]


def test_a_concatenation_has_its_parts_side_by_side_for_the_words_they_share(counted: Path, shelf: Shelf) -> None:
    a, b = rows(["the", "dog", "cat"], 2), rows(["dog", "the", "snow"], 3, seed=1)
    shelf.put("a", a)
    shelf.put("b", b)
    parts = {"left": {"file": "a"}, "right": {"file": "b"}}
    assert make(shelf, {"concat": ["left", "right"]}, **parts) == {word: a[word] + b[word] for word in ("the", "dog")}
    filled = make(shelf, {"concat": ["right", "left"], "missing": "mean"}, **parts)
    assert len(filled) == 14
    mean = np.mean([a[word] for word in a], axis=0)
    assert filled["snow"] == pytest.approx([*b["snow"], *mean], rel=1e-6)
    notes = read_record(vectors_path("mine", "it", "regex"), kind="word_vectors")["notes"]
    assert notes["filled"] == [11, 11]


def test_s3es_preparation_is_that_of_its_released_loop(counted: Path, shelf: Shelf) -> None:
    # Straight from the description: tables side by side, gaps filled by the mean of the found, centred, then ten
    # directions shrunk one after the other.
    a, b = rows(VOCABULARY[:12], 20), rows(VOCABULARY[3:], 15, seed=1)
    shelf.put("a", a)
    shelf.put("b", b)
    held = make(
        shelf, {"concat": ["left", "right"], "missing": "mean", "pvn": 10}, left={"file": "a"}, right={"file": "b"}
    )
    x = np.array(
        [
            np.concatenate([part.get(word, np.mean(list(part.values()), axis=0)) for part in (a, b)])
            for word in VOCABULARY
        ]
    )
    x -= x.mean(axis=0)
    _, s, u = np.linalg.svd(x)
    for j in range(10):
        x -= (s[j] ** 2 - s[10] ** 2) / s[j] ** 2 * np.outer(x @ u[j], u[j])
    np.testing.assert_allclose(np.array([held[word] for word in VOCABULARY]), x, atol=1e-5)


def test_lengths_are_made_one_or_their_mean_one(counted: Path, shelf: Shelf) -> None:
    shelf.put("small", {"the": [3.0, 4.0], "dog": [0.0, 15.0]})
    assert make(shelf, {"file": "small", "scale": "unit"})["the"] == pytest.approx([0.6, 0.8])
    assert make(shelf, {"of": "raw", "scale": "mean"}, raw={"file": "small"})["the"] == pytest.approx([0.3, 0.4])


# --- refusals ---------------------------------------------------------------------------------------


def absent(shelf: Shelf) -> None:
    shelf.put("small", rows(["the"], 4)).unlink()


def other_bytes(shelf: Shelf) -> None:
    path = shelf.put("small", rows(["the"], 4))
    path.write_bytes(path.read_bytes().replace(b"the", b"teh"))


def unknown_hash(shelf: Shelf) -> None:
    shelf.put("small", rows(["the"], 4), sha256=None)


def no_word(shelf: Shelf) -> None:
    shelf.put("small", rows(["pig"], 4))


def tabs(shelf: Shelf) -> None:
    shelf.put_bytes("small", b"the\t1\t2\n", dimension=2)


def too_few(shelf: Shelf) -> None:
    shelf.put_bytes("small", b"the 1 2\n", dimension=300)


@pytest.mark.parametrize(
    ("spoil", "parts"),
    [
        (absent, ["is missing", "SENTFOLD_VECTORS/small.txt", "sentfold fetch-vectors small"]),
        (other_bytes, ["does not have its recorded sha256", "small.txt"]),
        (unknown_hash, ["none is recorded yet", "locations.yaml"]),
        (no_word, ["no word of the suite", "1 other words"]),
        (tabs, ["no word of the suite", "blanks"]),
        (too_few, ["too few numbers", "small.txt"]),
    ],
)
def test_a_file_that_will_not_do_is_refused_with_what_to_do(
    counted: Path, shelf: Shelf, spoil: Callable[[Shelf], None], parts: list[str]
) -> None:
    spoil(shelf)
    with pytest.raises(SourceError) as caught:
        make(shelf, {"file": "small"})
    for part in parts:
        assert part in str(caught.value)
    assert not vectors_path("mine", "it", "regex").exists()


def test_a_file_that_is_swapped_while_it_is_read_is_refused(counted: Path, shelf: Shelf) -> None:
    path = shelf.put("small", rows(VOCABULARY, 4))
    make(shelf, {"file": "small"})
    with swapping(path, path.read_bytes()), pytest.raises(SourceError, match="was changed while it was read"):
        for _ in range(500):
            make(shelf, {"file": "small"})


def test_the_digest_of_an_unknown_file_is_told(counted: Path, shelf: Shelf) -> None:
    path = shelf.put("small", rows(["the"], 4), sha256=None)
    with pytest.raises(SourceError) as caught:
        make(shelf, {"file": "small"})
    assert caught.value.got == sha256_of(path)


@pytest.mark.parametrize(
    ("blocks", "part"),
    [
        ({"it": {"of": "it"}}, "a part of themselves"),
        ({"it": {"concat": ["a", "b"]}, "a": {"of": "it"}, "b": {"file": "glove-840b"}}, "a part of themselves"),
        ({"it": {"concat": ["it", "it"]}}, "a part of themselves"),
        ({"it": {"of": "nothing"}}, "no parameters named 'word_vectors.nothing'"),
        ({"it": {"file": "a", "package": "b"}}, "exactly one of"),
        ({"it": {}}, "exactly one of"),
        ({"it": {"concat": ["a"]}}, "two parts"),
        ({"it": {"file": "a", "pvn": -1}}, "greater than or equal to 0"),
        ({"it": {"file": "a", "missing": "guess"}}, "missing"),
    ],
)
def test_a_bad_block_is_refused(checkout: Path, blocks: dict[str, Any], part: str) -> None:
    write_params({"word_vectors": blocks})
    with pytest.raises(ParameterError) as caught:
        load_blocks("it")
    assert part in str(caught.value)


def test_levelling_more_directions_than_words_is_refused_by_its_key(counted: Path, shelf: Shelf) -> None:
    shelf.put("small", rows(["the", "dog"], 4))
    with pytest.raises(ParameterError) as caught:
        make(shelf, {"file": "small", "pvn": 3})
    assert "params.yaml: word_vectors" in str(caught.value)
    assert "pvn = 3" in str(caught.value)


# --- the shipped lists ------------------------------------------------------------------------------


def test_every_shipped_block_leads_to_a_known_place(checkout: Path) -> None:
    for name in SHIPPED:
        for block in load_blocks(name).values():
            if block.file is not None:
                assert find_location(block.file).dimension == 300


def test_the_known_hashes_are_on_record() -> None:
    known = {name: location.sha256 for name, location in load_locations().items()}
    assert known["glove-840b"] == "c06db255e65095393609f19a4cfca20bf3a71e20cc53e892aafa490347e3849f"
    assert known["psl"] == "9a16adc7d620642f863278451db4c03a2646016440ccea7e30a37ba17868781d"
    assert all(location.licence and location.citation for location in load_locations().values())


def test_an_unknown_location_is_refused_with_those_that_are() -> None:
    with pytest.raises(SourceError) as caught:
        find_location("glove-6b")
    assert "fasttext-crawl" in str(caught.value)


def test_what_made_the_vectors_is_recorded(counted: Path, shelf: Shelf) -> None:
    shelf.put("small", rows(["the", "dog"], 4))
    make(shelf, {"of": "raw", "scale": "unit"}, raw={"file": "small"})
    record = read_record(vectors_path("mine", "it", "regex"), kind="word_vectors")
    assert json.loads(json.dumps(record["parameters"]["blocks"]["it"]))["scale"] == "unit"
    assert record["parameters"]["blocks"]["raw"]["file"] == "small"
    assert list(record["inputs"]) == ["data/mine/words/vocabulary/regex.parquet"]


def test_parameters_of_vectors_are_frozen(checkout: Path) -> None:
    block = load_parameters(WordVectorParameters, "word_vectors.wordllama")
    with pytest.raises((SentfoldError, ValueError)):
        block.pvn = 3


@pytest.mark.parametrize("piece", [1, 2, 7, 1000])
def test_sums_of_tokens_do_not_depend_on_how_many_are_in_memory(piece: int) -> None:
    rng = np.random.default_rng(0)
    table, lengths = rng.standard_normal((50, 3)).astype(np.float32), rng.integers(1, 20, 30)
    tokens = rng.integers(0, 50, lengths.sum())
    ends = np.cumsum(lengths)
    whole = np.add.reduceat(table[tokens].astype(np.float64), ends - lengths)
    np.testing.assert_array_equal(sum_rows(table, tokens, lengths, piece=piece), whole)


def test_a_word_of_many_tokens_takes_little_memory() -> None:
    table, tokens = np.ones((2, 256), dtype=np.float32), np.ones(400_000, dtype=np.int64)
    tracemalloc.start()
    sums = sum_rows(table, tokens, np.array([len(tokens)]))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 2**28  # all at once: 1.2 GB
    np.testing.assert_array_equal(sums, np.full((1, 256), 400_000.0))
