"""The errors that sentfold reports to its users, all of one base class.

Every message says what went wrong, where, what was expected and what was found, in which
state the files are now, and what to do next. The command line prints it without a traceback and exits 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class SentfoldError(Exception):
    """Base of all errors that the user, not the programmer, has to act on.

    what      the failure in one clause
    where     the file, key, corpus or space it concerns
    expected  what would have been right
    got       what was found instead
    state     what was left behind
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
        return "\n".join([self.what, *(f"  {name:<9} {text}" for name, text in rows if text)])


class ParameterError(SentfoldError):
    """A parameter is unknown, of the wrong type, out of range, or does not fit the data."""


class SuiteError(SentfoldError):
    """A suite file is missing, malformed, or names something that does not exist."""


class ArtifactError(SentfoldError):
    """An artifact is missing, truncated, altered, of another kind, or cannot be written."""


class SourceError(SentfoldError):
    """A corpus cannot be had from its source, or is not what the catalogue says it is."""


class UnansweredError(SourceError):
    """A server did not answer, or broke off: another attempt, later, may succeed."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h


class EncoderError(SentfoldError):
    """A sentence encoder is unknown, cannot be loaded safely, or is not the pinned one."""


class SolverError(SentfoldError):
    """A numerical result failed its own certificate."""


class RunError(SentfoldError):
    """A run of stages could not start or did not finish."""


@contextmanager
def located(where: str, *, state: str | None = None, remedy: str = "") -> Iterator[None]:
    """Put `where` in front of what an error inside says of its place; fill in state and remedy.

    For code that knows the corpus or the URL around a function that knows only arrays or bytes.
    """
    try:
        yield
    except SentfoldError as error:
        error.where = f"{where}: {error.where}" if error.where else where
        error.state = error.state if state is None else state
        error.remedy = error.remedy or remedy
        raise


def first_line(error: BaseException) -> str:
    """The first line of another library's error, or its class when it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
