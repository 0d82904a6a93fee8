"""Errors of model folders: a hub that does not answer, which a stage may try again, and a damaged modules.json."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sentfold.encoders.model_folder import refuse_unsafe
from sentfold.errors import EncoderError
from tests.corpora.hub_server import Page, PageServer, serving

PROGRAM = """
from sentfold.encoders.model_folder import ModelSource, locate_model
from sentfold.errors import SentfoldError
try:
    locate_model("mini", ModelSource(hub="a/b", revision="0" * 40))
except SentfoldError as error:
    print(error.what, error.exit_code)
"""
ASKED_FIRST = "/api/models/a/b/tree/" + "0" * 40


def fetch(endpoint: str, home: Path) -> str:
    """The error, and the exit code of a stage that ends with it."""
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}
    for name in ("HF_HUB_OFFLINE", "HF_HUB_CACHE"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    return done.stdout.strip() or done.stderr


@pytest.mark.slow  # the hub's client waits between its own attempts
def test_a_hub_that_nobody_runs_is_worth_another_attempt(tmp_path: Path) -> None:
    assert fetch("http://127.0.0.1:9", tmp_path) == "encoder 'mini' cannot be fetched 75"


@pytest.mark.parametrize(("status", "code"), [pytest.param(503, 75, marks=pytest.mark.slow), (404, 2)])
def test_an_answer_of_the_hub_is_worth_another_attempt_only_if_it_says_later(
    status: int, code: int, tmp_path: Path
) -> None:
    server = PageServer()
    server.pages[ASKED_FIRST] = Page(b"{}", status=status)
    with serving(server):
        assert fetch(server.url, tmp_path) == f"encoder 'mini' cannot be fetched {code}"


def test_a_list_of_modules_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(EncoderError, match="encoder 'mini' has no list of modules") as error:
        refuse_unsafe("mini", tmp_path)
    assert error.value.where == "modules.json"
