"""docs/your-own-data.md: its script is run, and its commands print what the page shows."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "your-own-data.md"
BLOCK = re.compile(r"^```console\n\$ sentfold (?P<words>.*)\n(?P<shown>(?:.*\n)*?)```$", re.MULTILINE)
COMMANDS = {match["words"]: match["shown"] for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))}
CODE = "from sentfold.cli.main import main; main()"
FIRST = "decide pairs.csv --encoder all-MiniLM-L6-v2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the page's script was run."""
    path = tmp_path_factory.mktemp("example")
    script = re.findall(r"^```python\n(# make_example.py\n.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    (path / "make_example.py").write_text(script[0])
    subprocess.run([sys.executable, "make_example.py"], cwd=path, check=True)
    return path


def printed(folder: Path, words: str) -> str:
    """What a command prints, without its notes."""
    return subprocess.run(
        [sys.executable, "-c", CODE, *shlex.split(words)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    ).stdout


def test_the_first_example_prints_what_the_page_shows(folder: Path) -> None:
    assert printed(folder, FIRST) == COMMANDS[FIRST]


@pytest.mark.slow
@pytest.mark.parametrize("words", [words for words in COMMANDS if words != FIRST])
def test_every_other_example_prints_what_the_page_shows(words: str, folder: Path) -> None:
    assert printed(folder, words) == COMMANDS[words]


def test_the_page_names_every_candidate() -> None:
    from sentfold.decision.families import FAMILIES

    text = PAGE.read_text(encoding="utf-8").replace(
        "NPE, LPP", "neighbourhood preserving (NPE) locality preserving (LPP)"
    )
    assert [family.name for family in FAMILIES if f"{family.name}" not in text] == []


def test_the_page_shows_the_simulation_as_its_report_has_it() -> None:
    report = PAGE.parents[1] / "reports" / "benchmarks" / "decide_simulation.json"
    if not report.is_file():
        pytest.skip("not run yet: python -m benchmarks.decide_simulation")
    text = PAGE.read_text(encoding="utf-8").partition("<!-- simulation -->")[2]
    table = [line for line in text.partition("<!-- end of the simulation -->")[0].splitlines() if line.startswith("| ")]
    content = json.loads(report.read_text())
    nulls = [f"| {row['pairs']:,} | {row['recommended']} of {row['sets']:,} |" for row in content["nulls"].values()]
    shares = [f"{share:.0%} of " for share in content["found"].values()]
    assert len(table) == 1 + len(nulls) + len(shares)
    assert sorted(nulls) == sorted(line[line.index("| ", 2) :] for line in table[1 : 1 + len(nulls)])
    assert all(any(share in line for line in table[1 + len(nulls) :]) for share in shares)


def write_output(wanted: list[str]) -> None:
    """Put what the commands print into the page: `python -m tests.docs.test_your_own_data [WORD of the commands]`."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        text = PAGE.read_text(encoding="utf-8")
        script = re.findall(r"^```python\n(# make_example.py\n.*?)^```$", text, re.S | re.M)[0]
        (path / "make_example.py").write_text(script)
        subprocess.run([sys.executable, "make_example.py"], cwd=path, check=True)
        for words in (words for words in COMMANDS if not wanted or set(wanted) & set(words.split())):
            block = f"```console\n$ sentfold {words}\n"
            text = text.replace(f"{block}{COMMANDS[words]}```", f"{block}{printed(path, words)}```")
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_output(sys.argv[1:])
