"""Moses's English tokeniser, without escapes, as far as the tokenisers of word encoders can tell.

SentEval and the authors of SIF, uSIF, S3E, LASE and GEM read texts that were cut by it and lower-cased; a mirror
holds the texts as released. Moses keeps the full stop of an abbreviation on its word and cuts off others in the
middle of a text; no tokeniser of ours tells `mr.` from `mr .`, so here only the last one is cut off.
Source: Koehn et al. 2007, "Moses: open source toolkit for statistical machine translation", ACL; tokenizer.perl.
"""

from __future__ import annotations

import re

_RULES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"[\x00-\x1f]", ""),
        (r"([^\w\s.'`,-]|_)", r" \1 "),
        (r"\.{2,}", r" \g<0> "),
        # A comma, but not the one inside a number.
        (r"(?<!\d),|,(?!\d)", " , "),
        # An apostrophe: alone, or with the letters after it.
        (r"(?<![^\W\d_])'(?![^\W\d_])", " ' "),
        (r"(?<![^\W_])'(?=[^\W\d_])", " ' "),
        (r"(?<=[^\W\d_])'(?![^\W\d_])", " ' "),
        (r"(?<=[^\W\d_])'(?=[^\W\d_])", " '"),
        (r"(?<=\d)'(?=s)", " '"),
        (r"(?<=[^\s.])\.(?=\s*$|\s*'\s*$)", " . "),
        (r"\s+", " "),
    )
)


def moses_lower(text: str) -> str:
    """The text with blanks between its Moses tokens, lower-cased."""
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text.strip().lower()
