"""What every command line prints: the nearest known name for a misspelled one, no password, and letters as escapes."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

from sentfold.errors import RunError, SentfoldError, escape_controls, first_line

CHOICES = "one of: "  # how the `expected` of an error begins that lists all known names
# What Python, torch and Arrow say where memory is short, as under `ulimit -v`.
NO_MEMORY = (
    "can't allocate memory", "Cannot allocate memory", "failed to map segment", "malloc of size",
    "Failed to launch worker thread",
)  # fmt: skip
QUOTING = (SentfoldError, ValueError, LookupError)  # errors that quote a user's data, which can hold any words
# An address with a password that every library reads alike: of other letters some end the address.
ADDRESSED = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "HF_ENDPOINT")
READABLE = re.compile(r"(https?|socks[45][ah]?)://[\w.~%!$&()*+,;=:-]*@[\w.\[\]:-]+(/[\w./~%-]*)?", re.ASCII)
PASSWORD = re.compile(r"(?<=://)[^/?#\s'\"]*@")  # user and password in an address


def prepare_streams() -> None:
    """Settle what a command prints and reads, before libraries are imported.

    No command reads standard input: transformers would ask there whether to run a stranger's code, and take a line that
    is meant for something else as the answer.
    Letters that the encoding of the output lacks are printed as escapes, such as \\u25bc; Python ends with a traceback.
    The hub's library prints no warnings: they hold the address that does not answer, with its password. What libraries
    log can hold values of a stranger's file, and is printed with escapes too.
    """
    logging.setLogRecordFactory(escaped_record)
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stderr is None:  # closed by the shell, 2>&-: what is printed there would go to stdout
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # until the command ends
    sys.stdin = StringIO()


def escaped_record(*values: Any, **named: Any) -> logging.LogRecord:
    """A record of a library's log in which control characters are escapes."""
    record = logging.LogRecord(*values, **named)
    with suppress(TypeError, ValueError, KeyError):  # values that do not fit the message: the handler says so
        message = record.getMessage()
        if (escaped := escape_controls(message)) != message:  # others keep their values, which some formats print
            record.msg, record.args = escaped, ()
    return record


def refuse_unreadable_addresses() -> None:
    """Raise RunError for the address of a proxy or a hub with a password that libraries cannot take out of it.

    They would call all of it, with the password, a server that does not answer.
    """
    for name, value in os.environ.items():
        if name.upper() in ADDRESSED and "@" in value and not READABLE.fullmatch(value):
            raise RunError(
                "an address with a password cannot be read",
                where=f"the variable {name}",
                expected="http or https, ://, user, colon, password, @, host; letters of the password that are no "
                "letter, digit or one of . _ ~ - written as %23 for #, %2F for /, and so on",
                got="another form, which is not shown",
                state="nothing was downloaded",
                remedy=f"correct {name}, or unset it",
            )


def nearest_names(name: str, known: Iterable[str], *, count: int = 1, cutoff: float = 0.6) -> list[str]:
    """At most `count` of the known names, the most similar first; none that is less similar than `cutoff` of 1."""
    return get_close_matches(name, list(dict.fromkeys(known)), n=count, cutoff=cutoff)


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str, count: int = 1) -> str:
    """The question whether one of the nearest names was meant; `otherwise` where no known name is near."""
    near = nearest_names(name, known, count=count)
    return f"did you mean {' or '.join(near)}?" if near else otherwise


def suggest(error: SentfoldError) -> SentfoldError:
    """The same error; if it lists all known names and one of them is near, its remedy begins with that name.

    The misspelled name is the last one in quotes in the error's first line, without the keys that lead to it; else it
    is what the error got.
    """
    if not error.expected.startswith(CHOICES):
        return error
    quoted = re.findall(r"'([^']+)'", error.what)
    name = quoted[-1].rpartition(".")[2] if quoted else error.got
    near = nearest_names(name, error.expected.removeprefix(CHOICES).split(", "))
    if near and name not in near:
        rest = f" Otherwise {error.remedy}" if error.remedy else ""
        error.remedy = f"did you mean {near[0]}?{rest}"
    return error


def hide_passwords(text: str) -> str:
    """The text with `***` for the user and password of each address: errors are printed, logged and recorded."""
    return PASSWORD.sub("***@", text)


def plain_error(error: BaseException) -> SentfoldError | None:
    """What the system refused, as an error of sentfold; None for another error, which is a fault of the code.

    Too little memory is called so where Python, torch or Arrow said so, also in an error behind one of sentfold.
    """
    for behind in _errors_behind(error):
        said = getattr(behind, "strerror", None) or str(behind)  # the name of a file is a user's too
        if isinstance(behind, MemoryError) or any(words in said for words in NO_MEMORY):
            return SentfoldError(
                "there is too little memory", got=first_line(behind), state="the command ended",
                remedy="give fewer texts or narrower vectors, or run the command where there is more memory",
            )  # fmt: skip
    if isinstance(error, SentfoldError):
        return error
    if isinstance(error, OSError):
        return SentfoldError(
            "the system refuses to read or write", where=str(error.filename or "standard output"),
            got=error.strerror or first_line(error), state="the command ended",
        )  # fmt: skip
    return None


def _errors_behind(error: BaseException) -> Iterator[BaseException]:
    """The error and those that it was raised for, but none that quotes a user's data."""
    seen, left = set[int](), [error]
    while left:
        one = left.pop()
        if id(one) not in seen:
            seen.add(id(one))
            left += [other for other in (one.__cause__, one.__context__) if other is not None]
            if not isinstance(one, QUOTING):
                yield one


def message_of(error: SentfoldError) -> str:
    """What a command line prints for an error: the nearest known name in it, and no password."""
    return hide_passwords(f"error: {suggest(error)}")
