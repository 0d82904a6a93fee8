"""README.md and the pages of docs/ name only files, headings and commands that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from sentfold.cli.checkout import CHECKOUT_COMMANDS
from sentfold.cli.main import own_commands

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
INDENTED = re.compile(r"^    (.*)$", re.MULTILINE)
COMMAND = re.compile(r"(?:^|[$;&(|] ?)sentfold ([a-z][a-z-]*)", re.MULTILINE)
WRITTEN = re.compile(
    r"^# (\S+/\S+?),?(?: |$)", re.MULTILINE
)  # the first line of a block that a reader writes to a file
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
# A path of the repository: a name that begins like one of its files, or a folder and what is in it.
NAME = re.compile(r"[\w.][\w./-]*")
# What a run or `make install` writes, and the names that pages give to files of a reader.
MADE = re.compile(r"(data|reports/mine|suites/mine|suites/NAME|\.venv|\.dvc/tmp|\.dvc/config\.local|\.sentfold)(/|$)")


def tracked() -> set[str]:
    """The files of the repository, and their folders."""
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True)
    files = done.stdout.decode().splitlines()
    return {*files, *(str(parent) for file in files for parent in Path(file).parents)}


def commands(text: str) -> set[str]:
    """The commands of sentfold that the code of a page names."""
    code = [*FENCE.findall(text), *INDENTED.findall(text), *CODE.findall(FENCE.sub("", text))]
    return set(COMMAND.findall("\n".join(code)))


def paths_in_code(text: str) -> list[str]:
    """What is in backticks, outside of blocks of code, and looks like a path of the repository.

    Paths that the page tells its reader to write are left out.
    """
    tops = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".venv")}
    spans = [span.partition("::")[0].rstrip("/") for span in CODE.findall(FENCE.sub("", text))]
    return [
        span
        for span in spans
        if NAME.fullmatch(span)
        and "/" in span
        and span.partition("/")[0] in tops
        and not MADE.match(span)
        and span not in WRITTEN.findall(text)
    ]


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    titles = [re.sub(r"[`*]", "", title) for title in HEADING.findall(FENCE.sub("", text))]
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_of_a_page_leads_to_a_file_and_to_a_heading_of_it(page: Path) -> None:
    known = tracked()
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        assert str(target.relative_to(ROOT)) in known, link
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_in_backticks_is_one_of_the_repository(page: Path) -> None:
    known = tracked()
    assert [path for path in paths_in_code(page.read_text(encoding="utf-8")) if path not in known] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_a_page_names_exists(page: Path) -> None:
    assert commands(page.read_text(encoding="utf-8")) <= {*own_commands(), *CHECKOUT_COMMANDS}


def test_every_page_is_in_the_index() -> None:
    linked = set(LINK.findall((ROOT / "docs/README.md").read_text(encoding="utf-8")))
    assert {str(page.relative_to(ROOT / "docs")) for page in PAGES[1:]} - {"README.md"} <= linked
