"""Tokenizers, each by the rule of the released code of a method.

    whitespace  split at blanks, nothing else (S3E, LASE and SIF as released; their texts are lower case)
    regex       runs of word characters or of punctuation in the lower-cased text
    wordpunct   the rule of GEM: the same runs in the original text, lower-cased afterwards; '' and `` become a
                double quote. The encoder gem, not the tokenizer, decides which punctuation is skipped.
    treebank    the rule of uSIF: Penn Treebank words, cleaned (see clean_usif)

The Treebank rules are those of nltk 3.10's word_tokenize without its sentence splitter, rearranged; a test
compares the two. The rules are copied as text because nltk's rules change from release to release, and then every
word count changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, get_args

from sentfold.errors import ParameterError

TokenizerName = Literal["whitespace", "regex", "wordpunct", "treebank"]
TOKENIZERS: tuple[TokenizerName, ...] = get_args(TokenizerName)


def tokenize(texts: Iterable[str], name: str) -> list[list[str]]:
    """The tokens of each text, in order, with repeats; a text that is empty or all blanks has no tokens.

    name  one of TOKENIZERS
    Raises ParameterError for another name.
    Cost O(characters).
    """
    rule = _RULES.get(name)
    if rule is None:
        raise ParameterError(
            f"there is no tokenizer '{name}'", where="tokenizer", expected=f"one of: {', '.join(TOKENIZERS)}", got=name
        )
    return [rule(text) for text in texts]


_RUNS = re.compile(r"\w+|[^\w\s]+")


def split_regex(text: str) -> list[str]:
    """Runs of word characters, and runs of other characters that are not blanks, in the lower-cased text."""
    return _RUNS.findall(text.lower())


def split_wordpunct(text: str) -> list[str]:
    """The runs of split_regex by the rule of GEM: unify double quotes, split the text as written, then lower-case.

    Lower-casing comes last because lower-casing can add a non-word character: İ becomes i and a combining dot.
    """
    return [token.lower() for token in _RUNS.findall(text.replace("''", '" ').replace("``", '" '))]


# --- Penn Treebank ------------------------------------------------------------------------------

_CLOSING = r"\]\)}>\"'"


def _compile(*rules: tuple[str, str, str]) -> tuple[tuple[re.Pattern[str], str, str], ...]:
    return tuple((re.compile(pattern), replacement, needs) for pattern, replacement, needs in rules)


# (pattern, replacement, characters): the pattern can match only a text that has one of the characters; with an empty
# string the pattern is always tried. The order matters: a pattern may need the blanks that earlier patterns insert.
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
# Here the third entry is a substring of the lower-cased text: the pattern can match only a text that contains it.
_CONTRACTIONS = _compile(
    (r"(?i)\b(can)(not)\b", r" \1 \2 ", "nnot"),
    (r"(?i)\b(gim|lem)(me)\b", r" \1 \2 ", "mme"),
    (r"(?i)\b(gon)(na)\b", r" \1 \2 ", "nna"),
    (r"(?i)\b(wan)(na)(?=\s)", r" \1 \2 ", "nna"),
    (r"(?i)\b(got)(ta)\b", r" \1 \2 ", "tta"),
    (r"(?i)\b(more)('n)\b", r" \1 \2 ", "'n"),
    (r"(?i)\b(d)('ye)\b", r" \1 \2 ", "'ye"),
    # These patterns need a blank in front, which an earlier pattern may have inserted.
    (r"(?i) ('t)(is)\b", r" \1 \2 ", "'t"),
    (r"(?i) ('t)(was)\b", r" \1 \2 ", "'t"),
)


def split_treebank(text: str) -> list[str]:
    """Penn Treebank words of a text that is treated as one sentence: only the last full stop becomes a token."""
    text = f" {_substitute(text, _PUNCTUATION)} "
    text = _substitute(text, _CLITICS)
    lower = text.lower()
    for pattern, replacement, needs in _CONTRACTIONS:
        if needs in lower:
            text = pattern.sub(replacement, text)
    return text.split()


def _substitute(text: str, rules: tuple[tuple[re.Pattern[str], str, str], ...]) -> str:
    for pattern, replacement, needs in rules:
        # Most sentences have few of these characters, and a search for a character is far cheaper than the pattern.
        if not needs or any(character in text for character in needs):
            text = pattern.sub(replacement, text)
    return text


_ALPHANUMERIC = re.compile("[A-Za-z0-9]")


def clean_usif(tokens: Sequence[str]) -> list[str]:
    """Treebank words cleaned by the rule of uSIF.

    Tokens without an ASCII letter or digit are dropped. The others are lower-cased, stripped of quotes, round
    brackets and ; . : at both ends, and split at hyphens; "n't" becomes "not".
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
