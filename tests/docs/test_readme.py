"""README.md is short, and its examples print what it shows. The links of the other pages next to it lead to files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = (ROOT / "docs/your-own-data.md").read_text(encoding="utf-8")
CONSOLE = re.compile(r"^```console\n\$ (?P<command>.*)\n(?P<shown>(?:.*\n)*?)```$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the examples, which the script of docs/your-own-data.md writes."""
    path = tmp_path_factory.mktemp("example")
    (script,) = re.findall(r"^```python\n(# make_example.py\n.*?)^```$", EXAMPLES, re.DOTALL | re.MULTILINE)
    subprocess.run([sys.executable, "-c", script], cwd=path, check=True)
    return path


def test_the_readme_can_be_read() -> None:
    assert len(README.splitlines()) <= 200 and len(README.encode()) <= 12 * 1024


def test_the_first_lines_of_the_example_file_are_as_shown(folder: Path) -> None:
    shown = {match["command"]: match["shown"] for match in CONSOLE.finditer(README)}
    assert "".join((folder / "pairs.csv").read_text().splitlines(keepends=True)[:3]) == shown["head -n 3 pairs.csv"]


def test_every_example_of_a_command_is_one_that_a_test_runs() -> None:
    # tests/docs/test_your_own_data.py runs all commands of that page.
    examples = [match[0] for match in CONSOLE.finditer(README) if match["command"].startswith("sentfold ")]
    assert examples and all(example in EXAMPLES for example in examples)


@pytest.mark.slow
def test_the_python_example_prints_what_the_readme_shows(folder: Path) -> None:
    ((code, shown),) = re.findall(r"^```python\n(.*?)^```\n\n```\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout == shown


@pytest.mark.parametrize("page", ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"))
def test_every_link_of_a_page_leads_to_a_file(page: str) -> None:
    links = LINK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / link).exists()] == []
