"""docs/your-own-data.md: its script is run, and its commands print what the page shows."""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
import sys
import zlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.checkout import environment, make_checkout

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


def test_nothing_is_installed_from_an_index_that_does_not_have_it() -> None:
    root = PAGE.parents[1]
    for file in (root / "README.md", *PAGE.parent.glob("*.md"), *root.glob("sentfold/**/*.py")):
        assert not re.search(r"pip install '?sentfold", file.read_text(encoding="utf-8")), file


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


@pytest.mark.slow
def test_the_first_example_prints_what_the_page_shows(folder: Path) -> None:
    assert printed(folder, FIRST) == COMMANDS[FIRST]


@pytest.mark.slow
@pytest.mark.parametrize("words", [words for words in COMMANDS if words != FIRST])
def test_every_other_example_prints_what_the_page_shows(words: str, folder: Path) -> None:
    assert printed(folder, words) == COMMANDS[words]


def hashed_letters(texts: list[str]) -> np.ndarray:
    """A stand-in for an encoder: how often each letter occurs, and each pair of letters."""
    x = np.zeros((len(texts), 64), dtype=np.float32)
    for row, text in enumerate(texts):
        for pair in pairwise(text):
            x[row, zlib.crc32("".join(pair).encode()) % 64] += 1
    return x


def block_of(heading: str) -> list[str]:
    """The lines of the shell block under a heading."""
    part = PAGE.read_text(encoding="utf-8").partition(f"# {heading}\n")[2]
    return re.findall(r"^```sh\n(.*?)^```$", part, re.S | re.M)[0].splitlines()


@pytest.mark.slow
def test_two_models_that_mteb_has_run_are_compared_by_their_predictions(folder: Path) -> None:
    with (folder / "pairs.csv").open(newline="") as stream:
        scores = [float(row["score"]) for row in csv.DictReader(stream)]
    rng = np.random.default_rng(0)
    for name, noise in (("one", 0.1), ("two", 2.0)):
        content = {"cosine_scores": [score / 3 + noise * rng.normal() for score in scores]}
        meta = {"model_name": name, "revision": "1"}
        file = folder / "predictions" / name / "STSBenchmark_predictions.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"mteb_model_meta": meta, "default": {"test": content}}))
    (command,) = block_of("Two models that mteb has run")
    shown = printed(folder, command.removeprefix("sentfold "))
    assert shown.startswith("one is better than two by +"), shown


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_commands_for_a_checkout_make_a_suite_that_the_audit_verifies(folder: Path, tmp_path: Path) -> None:
    clone = make_checkout(tmp_path / "clone")
    name = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b.c",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b.c",
    }
    lines = ["git add -A", "git commit -qm start", *block_of("In a checkout")]
    (clone / "pairs.csv").write_bytes((folder / "pairs.csv").read_bytes())
    done = subprocess.run(
        ["bash", "-ec", "\n".join(lines)],
        cwd=clone,
        env=environment(**name),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"[1-9][0-9,]* verified, 0 wrong", done.stdout), done.stdout
    assert (clone / "reports/mine/index.html").is_file()


@pytest.mark.slow
def test_the_python_of_the_page_runs(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = re.findall(r"^## From Python\n\n```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M)[0]
    with (folder / "pairs.csv").open(newline="") as stream:
        pairs = list(csv.DictReader(stream))
    with (folder / "labels.csv").open(newline="") as stream:
        labelled = list(csv.DictReader(stream))
    texts = [row["text"] for row in labelled]
    place = {text: row for row, text in enumerate(texts)}
    names = {
        "vectors": hashed_letters(texts), "new_vectors": hashed_letters(["The fridge came damaged."]),
        "left": [place[pair["left"]] for pair in pairs], "right": [place[pair["right"]] for pair in pairs],
        "left_texts": [pair["left"] for pair in pairs], "right_texts": [pair["right"] for pair in pairs],
        "scores": [float(pair["score"]) for pair in pairs], "classes": [row["intent"] for row in labelled],
        "model": hashed_letters,
    }  # fmt: skip
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(PAGE), "exec"), names)
    better, space = names["better"], names["space"]
    assert np.allclose(better, space.transform(names["new_vectors"]), atol=1e-6)


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
