"""Tokenisers: each rule against tokens worked out by hand, and the Treebank rules against nltk's."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentfold.errors import ParameterError
from sentfold.words.tokenizers import TOKENIZERS, clean_usif, split_treebank, tokenize

QUOTED = "She said ``Go!'' (twice) to the Café's owner, didn't she?"


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("whitespace", " A  dog,\tno\u00a0cat \n", ["A", "dog,", "no", "cat"]),
        ("regex", "It's 3.5 kg... OK_1?!", ["it", "'", "s", "3", ".", "5", "kg", "...", "ok_1", "?!"]),
        (
            "wordpunct",
            QUOTED,
            [
                *("she", "said", '"', "go", '!"', "(", "twice", ")", "to", "the", "café", "'", "s", "owner"),
                *(",", "didn", "'", "t", "she", "?"),
            ],
        ),
        # A quote made of two is put down with a blank behind it, so it does not melt into a bracket.
        ("wordpunct", "''(", ['"', "("]),
        ("wordpunct", 'end.")', ["end", '.")']),
        (
            "treebank",
            QUOTED,
            ["she", "said", "go", "twice", "to", "the", "café", "s", "owner", "did", "not", "she"],
        ),
        ("treebank", "Well-known U.S. firms can't lose.", ["well", "known", "u.s", "firms", "ca", "not", "lose"]),
        # No ASCII letter or digit: dropped; only hyphens left of a token: nothing.
        ("treebank", "é -- - ? 7-", ["7"]),
    ],
)  # fmt: skip
def test_a_text_is_cut_as_its_rule_says(name: str, text: str, tokens: list[str]) -> None:
    assert tokenize([text], name) == [tokens]


def test_wordpunct_lower_cases_last_for_lower_casing_can_make_punctuation() -> None:
    # U+0130 in lower case is an i and a combining dot, which is no word character.
    assert tokenize(["\u0130x"], "wordpunct") == [["i\u0307x"]]
    assert tokenize(["\u0130x"], "regex") == [["i", "\u0307", "x"]]


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("text", ["", " \t\n", "\u00a0\u2003"])
def test_no_words_have_no_tokens(name: str, text: str) -> None:
    assert tokenize([text], name) == [[]]


@given(st.lists(st.text(max_size=30), max_size=5), st.sampled_from(TOKENIZERS))
def test_no_token_is_empty_or_holds_a_blank_and_texts_do_not_mix(texts: list[str], name: str) -> None:
    tokens = tokenize(texts, name)
    assert all(token and not re.search(r"\s", token) for words in tokens for token in words)
    assert tokens == [tokenize([text], name)[0] for text in texts]


@given(st.text("ab ", max_size=20))
def test_all_rules_agree_on_plain_lower_case_words(text: str) -> None:
    assert len({tuple(tokenize([text], name)[0]) for name in TOKENIZERS}) == 1


@pytest.mark.parametrize(
    ("token", "cleaned"),
    [
        ("N'T", ["not"]),
        ("(well-known)", ["well", "known"]),
        ('"Yes."', ["yes."]),  # quotes go last, so the stop before one stays
        ("--", []),
        ("-5-", ["5"]),
        ("'tis", ["tis"]),
        ("日本", []),
    ],
)
def test_a_token_is_cleaned_by_usifs_rules_in_their_order(token: str, cleaned: list[str]) -> None:
    assert clean_usif([token]) == cleaned


def test_an_unknown_tokeniser_is_refused_with_those_that_are() -> None:
    with pytest.raises(ParameterError) as caught:
        tokenize([], "moses")
    assert "moses" in str(caught.value)
    assert "wordpunct" in str(caught.value)


# --- the Treebank rules -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # One sentence is assumed: only the last full stop is cut off.
        ("Mr. Fox ran. He won.", ["Mr.", "Fox", "ran.", "He", "won", "."]),
        ('He won ("easily.")', ["He", "won", "(", "``", "easily", ".", "''", ")"]),
        ("the dogs' 5,000 bones: 3:30, ok", ["the", "dogs", "'", "5,000", "bones", ":", "3:30", ",", "ok"]),
        ("I'd gonna cannot wanna go", ["I", "'d", "gon", "na", "can", "not", "wan", "na", "go"]),
        ("'twas the '90s", ["'", "twas", "the", "'", "90s"]),
        ("a--b – c…", ["a", "--", "b", "–", "c…"]),
        ("wait.. what...", ["wait", "..", "what", "..."]),
        ("50% of #1 & @me; yes", ["50", "%", "of", "#", "1", "&", "@", "me", ";", "yes"]),
    ],
)
def test_treebank_words_are_those_of_the_published_rules(text: str, tokens: list[str]) -> None:
    assert split_treebank(text) == tokens


PIECES = (
    "a", "dog", "can", "not", "d'ye", "gimme", "wanna", "gonna", "'tis", "'twas", "more'n", "lemme", "n't", "N'T",
    "'ll", "'LL", "'s", "'S", "'", '"', "''", "``", ".", "..", ",", ":", ";", "?", "!", "(", ")", "[", "]", "{", "<",
    "*", "-", "--", "—", "“", "”", "‘", "’", "«", "$", "%", "1", "23", " ", "  ", "\n", "\t", "\u00a0", "é", "İ", "_",
)  # fmt: skip


if find_spec("nltk"):
    from nltk.tokenize.destructive import NLTKWordTokenizer

    NLTK = NLTKWordTokenizer()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("nltk") is None, reason="nltk, the rules' origin, is not installed")
@settings(max_examples=3000)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_treebank_words_are_those_of_nltk(text: str) -> None:
    assert split_treebank(text) == NLTK.tokenize(text)
