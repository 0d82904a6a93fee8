"""docs/add-a-method.md, followed literally in a fresh checkout."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import ROOT, environment, make_checkout

PAGE = ROOT / "docs/add-a-method.md"
PLACE = re.compile(r"# (?P<path>\S+?)(?:, (?:below (?P<key>\w+:)|(?P<end>at the end)))?")


def fences(language: str) -> list[str]:
    """The contents of the page's fenced blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def write_block(checkout: Path, block: str) -> None:
    """Put a block where its first line says."""
    first, _, rest = block.partition("\n")
    place = PLACE.fullmatch(first)
    assert place, f"the first line names no file: {first}"
    path = checkout / place["path"]
    if place["key"]:
        text, count = re.subn(rf"^({place['key']}.*\n)", lambda line: line[1] + rest, path.read_text(), flags=re.M)
        assert count == 1, f"{path.name} has {count} lines that begin with {place['key']}"
        path.write_text(text)
    elif place["end"]:
        path.write_text(f"{path.read_text().rstrip()}\n\n{rest}")
    else:
        assert not path.exists(), f"{place['path']} exists already"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block)


def follow(checkout: Path) -> None:
    """Write every block of Python and YAML of the page."""
    for block in [*fences("python"), *fences("yaml")]:
        write_block(checkout, block)


def run_line(checkout: Path, line: str) -> str:
    """What a command line of the page prints; it fails the test if it fails."""
    # The checkout's own sentfold, not the installed one.
    variables = environment(PYTHONPATH=str(checkout))
    done = subprocess.run(line, shell=True, cwd=checkout, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in which the page's files were written and nothing was run."""
    folder = make_checkout(tmp_path / "checkout", corpora="wordsim, happy")
    follow(folder)
    return folder


# The accuracy of the nearest centroid by its definition.
BRUTE = """
def brute():
    import numpy as np
    x = np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1], [1, 0.05], [0, 2]])
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    labels, right = np.array([5, 5, 7, 7, 7, 5]), 0
    for i in range(6):
        others = np.arange(6) != i
        far = {c: np.linalg.norm(x[i] - x[others & (labels == c)].mean(axis=0)) for c in (5, 7)}
        right += min(far, key=far.get) == labels[i]
    return right / 6
"""
CHECKS = """
from sentfold.encoders.base.protocol import find_method as encoder
from sentfold.manifold.base.protocol import find_method as manifold, Source
from sentfold.measures.registry import find_measure
from sentfold.measures.base.case import Case
from sentfold.encoders.base.lexicon import Lexicon
from sentfold.words.counts import WordCounts
import numpy as np

words = ("a", "longer", "word", "equals")
method = encoder("longest")
lexicon = Lexicon(words, np.eye(4, dtype=np.float32), WordCounts(words, np.ones(4, dtype=np.int64)))
fitted = method.build(lexicon, method.Settings(kept=2)).fit(["a longer word"])
assert np.array_equal(fitted.encode(["a longer word", ""]).vectors, np.float32([[0, .5, .5, 0], [0, 0, 0, 0]]))

method = manifold("projection")
x = np.random.default_rng(1).standard_normal((50, 20)).astype(np.float32)
made = method.embed(Source(x), method.Settings(components=4000)).vectors
assert made.shape == (50, 4000)
# The ratio of squared lengths has mean 1 and variance 2/4000: 0.2 is nine standard deviations.
assert np.allclose((made**2).sum(1) / (x**2).sum(1), 1, atol=0.2)

measure = find_measure("centroid")
near = np.float32([[1, 0], [1, 0.1], [0, 1], [0.1, 1], [1, 0.05], [0, 2]])
items = {"row": list(range(6)), "label": [5, 5, 7, 7, 7, 5]}
scores = measure.score(Case("c", "centroid", items, {}, near), measure.settings(resamples=100))
assert abs(scores.scores["accuracy.centroid"] - brute()) < 1e-12
"""


@pytest.mark.slow
def test_the_methods_of_the_page_are_found_by_their_files_and_compute_what_the_page_says(checkout: Path) -> None:
    (checkout / "protocols.py").write_text(BRUTE + CHECKS)
    run_line(checkout, f"{sys.executable} protocols.py")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which the page's files were written and the page's commands were run, which takes half a minute."""
    folder = make_checkout(tmp_path_factory.mktemp("page") / "checkout", corpora="wordsim, happy")
    follow(folder)
    for line in "".join(fences("sh")).splitlines():
        run_line(folder, line)
    return folder


@pytest.mark.slow
def test_the_page_followed_literally_gives_rows_in_the_tables_of_its_suite(finished: Path) -> None:
    for name, title in (("similarity", "Similarity"), ("centroid", "Nearest centroid")):
        table = (finished / f"reports/mine/tables/{name}.md").read_text()
        assert table.startswith(f"# {title} in every space of the suite")
        rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| wl-")]
        titles = {space: made_of.split(",")[0].split(";")[0] for space, made_of, *_ in rows if "−" not in space}
        assert titles == {
            "wl-average": "mean of words",
            "wl-longest": "mean of the longest words",
            "wl-longest-projection": "random projection",
        }


@pytest.mark.slow
def test_git_shows_what_the_page_wrote_and_no_artifact(finished: Path) -> None:
    shown = run_line(finished, "git status --porcelain --untracked-files=all").splitlines()
    written = {block.partition("\n")[0].removeprefix("# ").partition(",")[0] for block in fences("python")}
    assert written <= {line.removeprefix("?? ") for line in shown}
    assert not [line for line in shown if line.startswith("?? data/")]
    assert not list((finished / "data").rglob(".gitignore"))


@pytest.mark.slow
def test_an_edit_of_the_encoders_file_makes_only_its_own_spaces_stale(finished: Path) -> None:
    with (finished / "sentfold/encoders/longest.py").open("a") as file:
        file.write("# edited\n")
    stale = set(re.findall(r"dvc.yaml:(\S+?):", run_line(finished, "dvc status suites/mine/dvc.yaml")))
    assert {"encode@wl-longest", "report"} <= stale
    assert not [stage for stage in stale if stage.endswith("wl-average")]
