"""The check before a run: made again when a byte of what it reads changed, and only then."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import pipeline.check
from flows.check import check_suite
from pipeline.errors import ParameterError
from tests.checkout import make_checkout


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = make_checkout(tmp_path / "checkout", corpora="wordsim")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("SENTFOLD_MIRROR", raising=False)
    return folder


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The suites that were checked in full."""
    made: list[str] = []
    whole = pipeline.check.check_everything

    def noted(suite: str) -> object:
        made.append(suite)
        return whole(suite)

    monkeypatch.setattr(pipeline.check, "check_everything", noted)
    return made


def append(name: str) -> Callable[[Path], object]:
    return lambda root: (root / name).open("a").write("# a comment\n")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a parameter": lambda root: (root / "params.yaml").write_text(
        (root / "params.yaml").read_text().replace("resamples: ", "resamples: 1")
    ),
    "the suite": append("suite.yaml"),
    "the figures": append("sensitivities.yaml"),
    "the catalogue": append("pipeline/corpora/catalogue.yaml"),
    "code": append("pipeline/params.py"),
    "the libraries": append("requirements.lock"),
    "new code": lambda root: (root / "pipeline/words/another.py").write_text(""),
    "code is gone": lambda root: (root / "pipeline/words/paths.py").unlink(),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_was_found_sound_is_checked_again_once_a_byte_of_it_changed(
    what: str, checkout: Path, checks: list[str]
) -> None:
    check_suite("quick")
    check_suite("quick")
    assert checks == ["quick"]
    CHANGES[what](checkout)
    check_suite("quick")
    assert checks == ["quick", "quick"]


def test_times_alone_are_no_reason_to_check_again(checkout: Path, checks: list[str]) -> None:
    check_suite("quick")
    for path in checkout.rglob("*"):
        os.utime(path, (0, 0))
    check_suite("quick")
    assert checks == ["quick"]


def test_an_error_is_raised_each_time_and_not_remembered_as_sound(checkout: Path, checks: list[str]) -> None:
    check_suite("quick")
    path = checkout / "params.yaml"
    sound = path.read_text()
    path.write_text(sound + "unknown: 1\n")
    for _ in range(2):
        with pytest.raises(ParameterError, match="unknown"):
            check_suite("quick")
    path.write_text(sound)
    check_suite("quick")
    assert checks == ["quick"] * 3, "the sound one is still known"


def test_a_damaged_memory_is_no_memory(checkout: Path, checks: list[str]) -> None:
    check_suite("quick")
    (checkout / ".dvc/tmp/sentfold-checked-quick").write_bytes(b"\xff\x00")
    check_suite("quick")
    assert checks == ["quick", "quick"]


def test_a_sound_checkout_loads_no_method(checkout: Path) -> None:
    check_suite("quick")
    code = "import sys; from flows.check import check_suite; check_suite('quick'); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True, check=True)
    assert "'pipeline.suite'" in done.stdout
    assert not [name for name in ("numba", "scipy", "torch", "pipeline.check") if f"'{name}'" in done.stdout]
