"""The nearest name: in every error that lists the known names, and nowhere else."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentfold.errors import ParameterError, SentfoldError, SuiteError
from sentfold.suggestions import did_you_mean, hide_passwords, message_of, nearest_names, plain_error, suggest

NAMES = st.lists(st.text("abcdefghij-", min_size=4, max_size=12), min_size=1, max_size=8)


@given(NAMES, st.data())
def test_a_known_name_is_nearest_to_itself_also_without_its_last_letter(known: list[str], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(known))
    assert nearest_names(name, known) == [name]
    assert nearest_names(name[:-1], [name]) == [name]


def behind(error: Exception, remedy: str = "save the model again") -> SentfoldError:
    """An error of sentfold that was raised for another one, as `raise ... from None` leaves it."""
    own = SentfoldError("no model", got=f"{type(error).__name__}: {error}", remedy=remedy)
    own.__context__ = error
    return own


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError("Unable to allocate 9 GiB"), "too little memory"),
        (behind(pa.lib.ArrowException("Unknown error: Failed to launch worker thread")), "too little memory"),
        (behind(RuntimeError("unable to mmap 9 bytes: Cannot allocate memory (12)")), "too little memory"),
        (behind(MemoryError("Cannot allocate")), "too little memory"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "too little memory"),
        (SentfoldError("no column", got="MemoryError, Cannot allocate memory"), "no column"),
        (behind(ValueError("could not convert string to float: 'Cannot allocate memory'"), remedy=""), "no model"),
        (FileNotFoundError(errno.ENOENT, "No such file", "Cannot allocate memory.csv"), "refuses to read"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "a" * 300), "File name too long"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left"),
    ],
)  # fmt: skip
def test_what_the_system_refuses_is_an_error_without_a_traceback(error: Exception, said: str) -> None:
    plain = plain_error(error)
    assert plain is not None and said in message_of(plain) and "save the model again" not in message_of(plain)


def test_a_fault_of_the_code_keeps_its_traceback() -> None:
    assert plain_error(RuntimeError("a fault")) is None
    assert plain_error(own := SentfoldError("its own")) is own


def test_a_question_names_as_many_as_asked_for_and_is_replaced_where_nothing_is_near() -> None:
    assert did_you_mean("lease", ["lee", "lase", "wordsim"], count=2, otherwise="-") == "did you mean lase or lee?"
    assert did_you_mean("zzz", ["lee", "lase"], otherwise="look at the list") == "look at the list"


@pytest.mark.parametrize(
    ("what", "expected", "got", "remedy"),
    [
        ("suite 'quick' has no space 'minilm-ppca'", "one of: minilm, minilm-pca", "minilm-ppca", "minilm-pca"),
        ("no parameters named 'encoders.minlm'", "one of: minilm, sbert", "minlm", "minilm"),
        ("unknown key 'kinds.memory.at_onc'", "one of: stages, at_once", "'stage'", "at_once"),
        ("there is no such runner", "one of: threads, dask", "desk", "dask"),
    ],
)
def test_an_error_that_lists_the_names_asks_for_the_nearest(what: str, expected: str, got: str, remedy: str) -> None:
    error = suggest(SuiteError(what, expected=expected, got=got, remedy="correct the file"))
    assert error.remedy == f"did you mean {remedy}? Otherwise correct the file"
    assert str(error).endswith(error.remedy)


@pytest.mark.parametrize(
    "error",
    [
        ParameterError("there is no claim 'zzz'", expected="one of: lase-faster, gem-residual", got="zzz"),
        ParameterError("bad value for 'seed'", expected="a number", got="seedling"),
        ParameterError("the plan is of another suite", expected="suite: quick", got="suite: quack"),
    ],
)
def test_other_errors_stay_as_they_are(error: SentfoldError) -> None:
    before = str(error)
    assert str(suggest(error)) == before


@given(
    st.from_regex(r"[a-z0-9:%.+=-]{1,20}", fullmatch=True),
    st.sampled_from(["hub.org", "hub.org/a@b", "[::1]:80/x?u=a@b"]),
)
def test_the_password_of_an_address_is_never_printed_and_the_address_is(secret: str, place: str) -> None:
    assert hide_passwords(f"no answer from https://{secret}@{place}.") == f"no answer from https://***@{place}."
    assert hide_passwords(f"no answer from https://{place}.") == f"no answer from https://{place}."
    error = SentfoldError("no answer", where=f"http://{secret}@{place}", got=f"http://me:{secret}@{place}")
    assert message_of(error).count(f"http://***@{place}") == 2
    assert not any(f"{before}{secret}@" in message_of(error) for before in ("//", "me:"))


def test_the_hub_s_library_prints_no_address_that_does_not_answer() -> None:
    """Its warnings on each attempt hold the address with its password."""
    code = "from sentfold.suggestions import prepare_streams; prepare_streams(); "
    code += "from huggingface_hub.utils import logging; print(logging.get_verbosity() > logging.WARNING)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "True\n"


def test_a_value_that_a_library_logs_commands_no_terminal() -> None:
    code = (
        "import logging; from sentfold.suggestions import prepare_streams; prepare_streams(); "
        "logging.warning('value %s of\\n%d', '\\x1b[2J', 3); "
        "logging.warning('%d', 'no number'); logging.warning('%s', 'é')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert b"value \\x1b[2J of\n3" in done.stderr
    assert b"\x1b" not in done.stderr and "é".encode() in done.stderr


@pytest.mark.parametrize("module", ["sentfold.cli.main", "pipeline", "flows"])
def test_no_command_takes_a_line_of_standard_input_for_an_answer(module: str) -> None:
    """transformers asks by `input` whether to run the code of a stranger's model."""
    code = (
        f"import sys; sys.argv = ['x', '--help']; from {module}{'.__main__' if '.' not in module else ''} import main\n"
    )
    code += "try:\n    main()\nexcept SystemExit:\n    pass\nprint('said', input())\n"
    words, root = [sys.executable, "-c", code], Path(__file__).parents[1]
    done = subprocess.run(words, cwd=root, input="yes\n", capture_output=True, text=True, check=False)
    assert "EOFError" in done.stderr and "said yes" not in done.stdout, done.stderr
