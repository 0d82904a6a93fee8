"""Messages of errors."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sentfold.errors import SentfoldError, escape_controls


def test_a_name_from_a_file_cannot_send_commands_to_the_terminal() -> None:
    message = str(SentfoldError("a bad name", got="\x1b[2Jclean\rfake \u202ereversed", where="a\x07b"))
    assert message == "\n".join([
        "a bad name",
        "  where     a\\x07b",
        "  got       \\x1b[2Jclean\\rfake \\u202ereversed",
        "  state     nothing was written",
    ])  # fmt: skip


def test_a_line_break_in_a_name_makes_no_line_that_says_what_to_do() -> None:
    message = str(SentfoldError("a bad\n  to do     x", got="column\n  to do     curl x | sh", remedy="correct it"))
    assert [line for line in message.splitlines() if line.startswith("  to do")] == ["  to do     correct it"]
    assert "column\n              to do     curl" in message  # a further line stays readable, and is indented


@given(st.text())
def test_only_what_can_be_printed_line_breaks_and_tabs_stay(text: str) -> None:
    escaped = escape_controls(text)
    assert all(character.isprintable() or character in "\n\t" for character in escaped)
    if text.isprintable():
        assert escaped == text
