"""Tokenisers, each by the rule of the code that it comes from.

    whitespace  split at blanks, nothing else (S3E, LASE and SIF as released; their texts are lower case)
    regex       runs of word characters or of punctuation, of the lower-cased text
    wordpunct   GEM's: the same runs of the original text, lower-cased afterwards; '' and `` mean a double quote.
                Which punctuation is skipped is GEM's own decision, not made here.
    treebank    uSIF's: Penn Treebank words, cleaned (see clean_usif)

The Treebank rules are those of nltk 3.10's word_tokenize without its sentence splitter, rearranged; a test
compares both. The rules are written out here because nltk's rules change from release to release, and every count
with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, get_args

from sentfold.errors import ParameterError

TokenizerName = Literal["whitespace", "regex", "wordpunct", "treebank"]
TOKENIZERS: tuple[TokenizerName, ...] = get_args(TokenizerName)


def tokenize(texts: Iterable[str], name: str) -> list[list[str]]:
    """The tokens of each text, in order, repeats kept; no text, or none but blanks, has none.

    name  one of TOKENIZERS
    Raises ParameterError for another name.
    Cost O(characters).
    """
    rule = _RULES.get(name)
    if rule is None:
        raise ParameterError(
            f"there is no tokeniser '{name}'", where="tokenizer", expected=f"one of: {', '.join(TOKENIZERS)}", got=name
        )
    return [rule(text) for text in texts]


_RUNS = re.compile(r"\w+|[^\w\s]+")


def split_regex(text: str) -> list[str]:
    """Runs of word characters, and of what is neither that nor blank, of the lower-cased text."""
    return _RUNS.findall(text.lower())


def split_wordpunct(text: str) -> list[str]:
    """The same runs by GEM's rule: quotes made one, cut as written, then lower-cased.

    Lower-casing comes last because it can itself make punctuation: İ becomes i and a combining dot.
    """
    return [token.lower() for token in _RUNS.findall(text.replace("''", '" ').replace("``", '" '))]


# --- Penn Treebank ------------------------------------------------------------------------------

_CLOSING = r"\]\)}>\"'"


def _compile(*rules: tuple[str, str, str]) -> tuple[tuple[re.Pattern[str], str, str], ...]:
    return tuple((re.compile(pattern), replacement, needs) for pattern, replacement, needs in rules)


# (pattern, replacement, characters without any of which it cannot match; none given: it is always tried).
# In the order of application: what each matches may depend on the blanks that the ones above put in.
_PUNCTUATION = _compile(
    # Opening quotes.
    (r"[«“‘„]|`+", r" \g<0> ", "«“‘„`"),
    (r'^"', "``", '"'),
    (r"``", " `` ", "`"),
    (r"(?<=[ (\[{<])(?:\"|'')", " `` ", "\"'"),
    (r"(?<!\w)'(?!(?i:re|ve|ll|m|t|s|d|n)\b)(?=\w)", "' ", "'"),
    # The full stop that ends the text, before any closing brackets and quotes.
    (rf"([^.])\.([{_CLOSING}»”’ ]*+)\s*$", r"\1 . \2 ", "."),
    # A comma or colon, but not the one inside a number.
    (r"([:,])(\D)", r" \1 \2", ":,"),
    (r"[:,]$", r" \g<0> ", ":,"),
    (r"\.{2,}", r" \g<0> ", "."),
    (r"[;@#$%&‒-―?!]", r" \g<0> ", ""),
    (rf"([^.])\.([{_CLOSING}]*)\s*$", r"\1 .\2 ", "."),
    (r"([^'])' ", r"\1 ' ", "'"),
    (r"[*\[\](){}<>]|--", r" \g<0> ", "*[](){}<>-"),
)
_CLITICS = _compile(
    # Closing quotes.
    (r"[»”’]|''", r" \g<0> ", "»”’'"),
    (r'"', " '' ", '"'),
    # A word is followed by exactly one blank from here on.
    (r"\s+", " ", ""),
    (r"(?<=[^' ])('[sSmMdD]?) ", r" \1 ", "'"),
    (r"(?<=[^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ", r" \1 ", "'"),
)
# What each needs here are letters in a row, in either case.
_CONTRACTIONS = _compile(
    (r"(?i)\b(can)(not)\b", r" \1 \2 ", "nnot"),
    (r"(?i)\b(gim|lem)(me)\b", r" \1 \2 ", "mme"),
    (r"(?i)\b(gon)(na)\b", r" \1 \2 ", "nna"),
    (r"(?i)\b(wan)(na)(?=\s)", r" \1 \2 ", "nna"),
    (r"(?i)\b(got)(ta)\b", r" \1 \2 ", "tta"),
    (r"(?i)\b(more)('n)\b", r" \1 \2 ", "'n"),
    (r"(?i)\b(d)('ye)\b", r" \1 \2 ", "'ye"),
    # These want a blank before them, which the ones above may have put there.
    (r"(?i) ('t)(is)\b", r" \1 \2 ", "'t"),
    (r"(?i) ('t)(was)\b", r" \1 \2 ", "'t"),
)


def split_treebank(text: str) -> list[str]:
    """Penn Treebank words of a text that is taken for one sentence: only its last full stop is cut off."""
    text = f" {_substitute(text, _PUNCTUATION)} "
    text = _substitute(text, _CLITICS)
    lower = text.lower()
    for pattern, replacement, needs in _CONTRACTIONS:
        if needs in lower:
            text = pattern.sub(replacement, text)
    return text.split()


def _substitute(text: str, rules: tuple[tuple[re.Pattern[str], str, str], ...]) -> str:
    for pattern, replacement, needs in rules:
        # Most sentences have few of these characters, and looking for one is far cheaper than the pattern.
        if not needs or any(character in text for character in needs):
            text = pattern.sub(replacement, text)
    return text


_ALPHANUMERIC = re.compile("[A-Za-z0-9]")


def clean_usif(tokens: Sequence[str]) -> list[str]:
    """What uSIF makes of Treebank words: no token without an ASCII letter or digit, lower case, stripped of
    quotes, brackets and stops, "n't" as "not", cut at hyphens.
    """
    cleaned: list[str] = []
    for token in tokens:
        if _ALPHANUMERIC.search(token):
            bare = token.lower().strip("';.:()").strip('"')
            cleaned.extend(piece for piece in ("not" if bare == "n't" else bare).split("-") if piece)
    return cleaned


_RULES: dict[str, Callable[[str], list[str]]] = {
    "whitespace": str.split,
    "regex": split_regex,
    "wordpunct": split_wordpunct,
    "treebank": lambda text: clean_usif(split_treebank(text)),
}
