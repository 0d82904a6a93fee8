"""docs/tutorial.md: a reader who types its commands in a fresh checkout sees what the page shows."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checkout import ROOT, environment, make_checkout_with_suites

pytestmark = pytest.mark.slow  # two runs of a small suite

PAGE = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"After `(git commit [^`]+)`")
HASH = re.compile(r"\b[0-9a-f]{7,64}\b(\.dir)?")  # of a commit, a file or a folder: they differ from clone to clone
LEFT_OUT = "…"
NAME = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b.c", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b.c"}


def shell(folder: Path, command: str) -> str:
    """What a command prints on stdout. A failure fails the test with all that it printed."""
    done = subprocess.run(
        ["bash", "-c", f"set -e; {command}"], cwd=folder, env=environment(**NAME), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def blank_hashes(text: str) -> list[str]:
    return [HASH.sub("#", line).rstrip() for line in text.splitlines()]


def edit(file: Path, block: str) -> None:
    """Change a file as a block of `diff` shows it."""
    lines = {mark: [line[1:] for line in block.splitlines() if line[0] == mark] for mark in "-+"}
    text = file.read_text(encoding="utf-8")
    for old, new in zip(lines["-"], lines["+"], strict=True):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def steps() -> Iterator[tuple[str, str]]:
    """Every block after the installation, and the commit that a sentence names, in the order of the page."""
    body = PAGE[PAGE.index("## 2.") :]
    found = [(match.start(), match[1], match[2]) for match in BLOCK.finditer(body)]
    found += [(match.start(), "sh", match[1]) for match in INLINE.finditer(body)]
    yield from ((kind, text) for _, kind, text in sorted(found))


def test_every_command_of_the_tutorial_prints_what_the_page_shows(tmp_path: Path) -> None:
    folder = make_checkout_with_suites(tmp_path / "clone", corpora=None)
    shell(folder, "git add -A; git commit -qm start")
    kinds = []
    for kind, text in steps():
        kinds.append(kind)
        if kind == "diff":
            edit(folder / "params.yaml", text)
        elif kind == "sh":
            shell(folder, text)
        else:
            for example in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, shown = example.partition("\n")
                lines = blank_hashes(shell(folder, command))
                # DVC chooses the order of independent stages anew; all else comes in the order of the page.
                rest = lines if command.startswith("dvc ") else iter(lines)
                for line in blank_hashes(shown):
                    assert line in ("", LEFT_OUT) or line in rest, (command, line, lines)
    assert (kinds.count("console"), kinds.count("diff"), kinds.count("sh")) == (7, 1, 4)
    assert not any((folder / name).exists() for name in ("suites/first", "reports/first", "data/first"))
    assert "neighbors: 30 # k" in (folder / "params.yaml").read_text()
    assert (folder / "suites/paper/suite.yaml").is_file()  # the other suites stay
