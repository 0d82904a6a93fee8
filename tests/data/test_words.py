"""Texts whose words a method over word vectors would cut are refused."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sentfold.data.tables import DataError, plain_name
from sentfold.data.words import cut_words, read_lexicon, uncounted_notes, whole_words
from sentfold.decision.encoders import fit_method
from sentfold.encoders.base.lexicon import Lexicon
from sentfold.words.tokenizers import tokenize

HINDI = "मेरी किताब कहाँ है"
TAMIL = "என் புத்தகம் எங்கே"
THAI = "หนังสือของฉันอยู่ที่ไหน"
PERSIAN = "می\u200cخواهم کتاب\u200cها را"
VOCALISED = "كِتَابِي هُنَا"


def read(folder: Path, texts: list[str], tokenizer: str = "regex", counts: Path | None = None) -> Lexicon:
    words = sorted({word for text in texts for word in text.split()})
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(2 * len(words), dtype=np.float32)), 2)
    pq.write_table(pa.table({"word": words, "vector": vectors}), folder / "words.parquet")
    return read_lexicon(texts, texts, tokenizer, str(folder / "words.parquet"), 2, False, counts)


@pytest.mark.parametrize("text", [HINDI, TAMIL, THAI, PERSIAN, VOCALISED])
@pytest.mark.parametrize("tokenizer", ["regex", "wordpunct", "treebank"])
def test_texts_whose_words_would_be_cut_at_their_marks_are_refused(tmp_path: Path, text: str, tokenizer: str) -> None:
    assert any(unicodedata.category(token[0])[0] in "MC" for token in tokenize([text], "regex")[0])
    with pytest.raises(DataError, match=r"(?s)cut at their marks or joiners.*by a model"):
        read(tmp_path, [text, "an English text"], tokenizer)


def test_letters_with_decomposed_accents_give_the_vectors_of_composed_ones(tmp_path: Path) -> None:
    """As texts out of PDF or from macOS have them: words were cut at their accents."""
    composed = ["zwei Päckchen für Günther", "ein Schlüssel fehlt", *(f"ein Brief von Zug {n}" for n in range(20))]
    apart = [unicodedata.normalize("NFD", text) for text in composed]
    assert whole_words(apart, "regex") == composed and whole_words(apart, "whitespace") == apart
    kept = ["\ufb2e\u05db", "\u1ecd\u0300r\u1eb9\u0301", "plain"]  # NFC would take the first apart, and joins no others
    assert whole_words([*kept, "\u0130stanbul", unicodedata.normalize("NFD", "\ud55c\uad6d")], "regex") == [
        *kept, "istanbul", "\ud55c\uad6d",
    ]  # fmt: skip
    assert cut_words(kept, "regex") == {"words cut at a letter with a mark (tokens)": 1}
    assert cut_words(kept, "whitespace") == cut_words(kept, "treebank") == cut_words(composed, "regex") == {}
    for form in ("NFC", "NFD"):
        assert whole_words([unicodedata.normalize(form, "\u0130yi \u1eb9\u0300k")], "regex") == ["iyi \u1eb9\u0300k"]
    assert whole_words(["\u0130yi"], "treebank") == ["\u0130yi"]
    words = sorted({word for text in composed for word in text.lower().split()})
    vectors = np.random.default_rng(0).normal(size=(len(words), 4)).tolist()
    pq.write_table(pa.table({"word": words, "vector": vectors}), tmp_path / "words.parquet")
    (first, encoded), (second, others) = (
        fit_method("sif", texts, str(tmp_path / "words.parquet")) for texts in (composed, apart)
    )
    np.testing.assert_array_equal(encoded.vectors, others.vectors)
    np.testing.assert_array_equal(first.encode(composed).vectors, second.encode(apart).vectors)


@pytest.mark.parametrize(
    "text",
    [
        "plain words",
        "élève déjà présent",
        "ich weiß, größer: größer",
        "Привет, как дела",
        "你好 世界",
        "안녕하세요 세계",
        "مرحبا بالعالم",
        "thanks \u2764\ufe0f 1\ufe0f\u20e3 \U0001f44d\U0001f3fd",
    ],
)
def test_other_texts_are_read(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, [text, "an English text"]).words


@pytest.mark.parametrize(
    ("counted", "missing", "first"),
    [(["the", "cat", "a", "and", "sat", "dog"], 1, "another"), (["The", "Cat", "A"], 8, "cat"), (["dog"], 7, "cat")],
)
def test_words_that_a_table_of_counts_lacks_are_told(
    tmp_path: Path, counted: list[str], missing: int, first: str
) -> None:
    """As those of a list with capitals, or without stop words: they had the weight 1, without a word."""
    texts, path = ["the cat sat", "a cat and another dog"], tmp_path / "counts.parquet"
    pq.write_table(pa.table({"word": counted, "count": [5] * len(counted)}), path)
    (note,) = uncounted_notes(texts, "regex", read(tmp_path, texts, counts=path))
    assert note.startswith(f"{missing} of 8 words have no count") and f"such as '{first}':" in note
    assert not uncounted_notes(texts, "regex", read(tmp_path, texts))


def test_a_million_marks_take_no_time_in_words_and_names_of_columns(tmp_path: Path) -> None:
    """Each of the three takes a quarter of an hour where the marks are put into their order."""
    marks = 500_000 * "\u0301\u0323"
    assert len(plain_name(f"e{marks}")) < 33
    assert read(tmp_path, [f"e{marks}", "an English text " * 5], "treebank").words
    with pytest.raises(DataError, match="cut at their marks"):
        read(tmp_path, [f"e{marks}", "text"])


def test_texts_whose_words_usif_would_leave_out_are_refused(tmp_path: Path) -> None:
    for text in ("Привет, как дела", "你好 世界", "αβγ δεζ"):
        with pytest.raises(DataError, match=r"(?s)left out.*take sif or average"):
            read(tmp_path, [text, "English"], "treebank")
    for text in ("l'été à la plage — où es-tu ? 3 €", "Größe über alles", "il telefono è rotto", "è à é å"):
        assert read(tmp_path, [text, "English"], "treebank").words


def test_where_words_are_split_at_blanks_alone_marks_stay(tmp_path: Path) -> None:
    assert set(read(tmp_path, [HINDI], "whitespace").words) == set(HINDI.split())


def test_a_few_words_of_other_scripts_are_no_reason(tmp_path: Path) -> None:
    assert read(tmp_path, [*["an English text of some words"] * 10, HINDI]).words
