"""Text of the report as text of a page: escaped, and set as a printer would."""

from __future__ import annotations

import re
from html import escape


def prose(text: str) -> str:
    """Escaped text; `code` and *emphasis* as elements, and a minus sign before a number instead of a hyphen."""
    safe = escape(text)
    safe = re.sub(r"`([^`]+)`", r"<code>\1</code>", safe)
    safe = re.sub(r"(?<!\w)\*([^*]+)\*(?!\w)", r"<em>\1</em>", safe)
    return minus(safe)


def minus(text: str) -> str:
    """A minus sign for every hyphen that stands before a number and after no letter or digit."""
    return re.sub(r"(?<![\w-])-(?=\d)", "−", text)
