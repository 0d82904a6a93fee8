"""Forms of a text: composed letters, and what stays of a text without case, punctuation and blanks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache


@cache
def _long_runs_of_marks() -> re.Pattern[str]:
    """More than 30 combining marks in a row, of which the first 30 are the group; so many Unicode allows (UAX 15).

    The time to put a run into its canonical order grows with the square of its length. Some characters become marks
    when they are decomposed. No character from U+20000 on is one.
    """
    marks = (chr(code) for code in range(0x300, 0x20000))
    found = "".join(mark for mark in marks if unicodedata.combining(unicodedata.normalize("NFKD", mark)[0]))
    return re.compile(f"([{found}]{{30}})[{found}]+")


def compose(text: str) -> str:
    """Unicode's form NFC of a text, of which more than 30 marks in a row are cut to 30."""
    return text if text.isascii() else unicodedata.normalize("NFC", _long_runs_of_marks().sub(r"\1", text))


def forms(texts: Iterable[str]) -> Iterator[str]:
    """Each text without case, punctuation, blanks and control characters; or as it is, if nothing else is in it.

    Texts of one form are not independent. Cost O(letters).
    """
    bare = _Bare()
    for text in texts:
        # The Turkish İ in small letters is an i with a dot above. The small ı stays, as it is another letter than i.
        yield compose(text).casefold().replace("i\u0307", "i").translate(bare) or text


class _Bare(dict[int, str]):
    """For str.translate: compatible characters become one, and punctuation, blanks and control characters nothing.

    Each character is converted once. Converting whole texts (NFKC) takes six times as long for U+FDFA, which becomes
    eighteen characters.
    """

    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFKD", chr(code)).casefold()
        self[code] = "".join(letter for letter in plain if unicodedata.category(letter)[0] not in "PZC")
        return self[code]
