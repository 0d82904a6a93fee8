"""The errors that sentfold reports to its users. All have one base class.

A message says what went wrong, where, what was expected, what was there instead, in which state the files are now,
and what to do next. The command line prints the message without a traceback and exits with code 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class SentfoldError(Exception):
    """Base of all errors that a user can correct.

    what      the failure in one clause
    where     the file, key, corpus or space that has the failure
    expected  what would be right
    got       what is there instead
    state     in which state the files are now
    remedy    what to do next
    """

    exit_code = 2  # of a command that ends with this error

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        expected: str = "",
        got: str = "",
        state: str = "nothing was written",
        remedy: str = "",
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.expected = expected
        self.got = got
        self.state = state
        self.remedy = remedy

    def __str__(self) -> str:
        rows = [
            ("where", self.where),
            ("expected", self.expected),
            ("got", self.got),
            ("state", self.state),
            ("to do", self.remedy),
        ]
        lines = [self.what, *(f"  {name:<9} {text}" for name, text in rows if text)]
        # A further line of a text is indented, or a name from a stranger's file could pass for what to do.
        return "\n".join(escape_controls(line).replace("\n", "\n" + " " * 12) for line in lines)


class ParameterError(SentfoldError):
    """A parameter is unknown, has a wrong type, is out of range, or does not fit the data."""


class SuiteError(SentfoldError):
    """A suite file is missing, malformed, or names something that does not exist."""


class ArtifactError(SentfoldError):
    """An artifact is missing, truncated, altered, of another kind, or cannot be written."""


class SourceError(SentfoldError):
    """A corpus cannot be read from its source, or differs from what the catalogue says."""


class UnansweredError(SourceError):
    """A server did not answer, or ended the connection: a later attempt may succeed."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h


class EncoderError(SentfoldError):
    """A sentence encoder is unknown, cannot be loaded safely, or differs from the pinned encoder."""


class SolverError(SentfoldError):
    """A numerical result does not satisfy its equations within the required bound."""


class RunError(SentfoldError):
    """A run of stages could not start or did not finish."""


def escape_controls(text: str) -> str:
    """The text with control characters other than line breaks and tabs written as escapes, such as \\x1b.

    Names and values in a message can come from a stranger's file, and a terminal obeys control characters.
    """
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


@contextmanager
def located(where: str, *, state: str | None = None, remedy: str = "") -> Iterator[None]:
    """Add a place to the errors of a block: `where` comes first in the error's own `where`.

    A caller that knows the corpus or the URL uses this around a function that sees only arrays or bytes.
    state   replaces the error's state, unless None
    remedy  is used if the error has none
    """
    try:
        yield
    except SentfoldError as error:
        error.where = f"{where}: {error.where}" if error.where else where
        error.state = error.state if state is None else state
        error.remedy = error.remedy or remedy
        raise


def first_line(error: BaseException) -> str:
    """The first line of another library's error message, or the name of its class if the message is empty."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
