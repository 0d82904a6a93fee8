"""verdict.html is one small file that loads nothing, shows what the decision says, and survives any text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sentfold.data.datasets import Dataset, read_dataset
from sentfold.decision.decide import Decision, decide_dataset
from sentfold.decision.families import FAMILIES as EVERY_FAMILY
from sentfold.decision.families import Family, all_but_the_top, mean_removal
from sentfold.decision.page import DRAWN, GRID, flat_map, related_pairs, write_page
from sentfold.decision.verdict import decision_record
from sentfold.retrieval.base.ranking import unit_rows
from tests.browser import CHROMIUM, Page, needs_chromium, open_browser

FAMILIES = (Family("mean removal", mean_removal), Family("all but the top", all_but_the_top))


def page_of(folder: Path, m: int, text: str) -> tuple[str, str]:
    """The page and the verdict of m pairs whose texts are long and hold `text`."""
    rng = np.random.default_rng(0)
    rows = [f'"{text} {n} {"x" * 200}","{text} -{n}",{rng.integers(0, 5)}' for n in range(m)]
    (folder / "p.csv").write_text("left,right,score\n" + "\n".join(rows) + "\n")
    data = read_dataset(folder / "p.csv")
    vectors = rng.normal(size=(len(data.texts), 6)).astype(np.float32)
    decision = decide_dataset(data, vectors, families=FAMILIES)
    write_page(folder / "verdict.html", decision, data, vectors)
    return (folder / "verdict.html").read_text(), decision.verdict


def test_the_page_is_small_and_loads_nothing(tmp_path: Path) -> None:
    page, verdict = page_of(tmp_path, 1500, "a text")
    assert len(page.encode()) < 300_000
    assert not re.search(r"https?:|<link|<img|src=|@import|url\(", page)
    assert verdict in unescape(page)
    points = json.loads(re.search(r"points = (\[\[.*?\]\])", page)[1])
    assert [len(side) for side in points] == [2 * DRAWN, 2 * DRAWN]
    assert {min(points[0]), max(points[0])} == {0, GRID}


@pytest.mark.parametrize("letter", ["\U0001f600", "<", "語"])
def test_the_page_is_small_whatever_letters_the_texts_have(letter: str, tmp_path: Path) -> None:
    page, _ = page_of(tmp_path, 600, letter * 100)
    assert len(page.encode()) < 300_000
    assert letter in json.loads(re.search(r"texts = (\[.*?\]);\n", page)[1])[0]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert CHROMIUM is not None
    with open_browser(CHROMIUM, tmp_path_factory.mktemp("profile")) as page:
        yield page


@needs_chromium
def test_the_page_of_all_candidates_fits_one_screen_and_a_pointer_marks_one_text_on_both_maps(
    browser: Page, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{'a left text ' * 20}{n},{'a right text ' * 20}{n},{rng.integers(0, 5)}" for n in range(40)]
    (tmp_path / "p.csv").write_text("left,right,score\n" + "\n".join(rows) + "\n")
    data = read_dataset(tmp_path / "p.csv")
    vectors = rng.normal(size=(80, 6)).astype(np.float32)
    decision = decide_dataset(data, vectors, families=FAMILIES)
    shown = next(one for one in decision.candidates if not one.identical)
    every = tuple(replace(shown, name=family.name) for family in (*EVERY_FAMILY, FAMILIES[0]))
    write_page(tmp_path / "verdict.html", replace(decision, candidates=every), data, vectors)
    browser.resize(1280, 900)
    browser.open((tmp_path / "verdict.html").as_uri())
    assert len(browser.evaluate("[...document.querySelectorAll('circle')].map(c => c.r.baseVal.value)")) == 10
    assert browser.evaluate("document.documentElement.scrollHeight") <= 900
    marked = "[...document.querySelectorAll('canvas')].map(canvas => canvas.toDataURL())"
    before = browser.evaluate(marked)
    box = browser.evaluate("(b => [b.x + b.width / 2, b.y + b.height / 2])(canvases[1].getBoundingClientRect())")
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
    assert re.fullmatch(r"a (left|right) text .*…", browser.evaluate("said.textContent"))
    assert all(now != then for now, then in zip(browser.evaluate(marked), before, strict=True))
    assert browser.complaints == []
    asked = "fetch('data:text/plain,a').then(() => 'answered', error => 'refused')"
    assert browser.evaluate(asked) == "refused", "what a text might smuggle in could send nothing away"


def crossed_pairs(folder: Path, n: int, m: int) -> tuple[str, Decision]:
    """The page and the decision of m of the pairs of n texts, whose scores are noisy cosines without a shared part."""
    rng = np.random.default_rng(3)
    inner = unit_rows(rng.normal(size=(n, 24)))
    left, right = rng.permutation(np.array([*combinations(range(n), 2)]))[:m].T
    scores = (inner[left] * inner[right]).sum(axis=1) + 0.3 * rng.normal(size=m)
    texts = [f"text {i}" for i in range(n)]
    frame = {"left": [texts[i] for i in left], "right": [texts[i] for i in right], "score": scores}
    pl.DataFrame(frame).write_csv(folder / "p.csv")
    data = read_dataset(folder / "p.csv")
    vectors = (inner + 0.1 * rng.normal(size=24)).astype(np.float32)[[int(text.split()[1]) for text in data.texts]]
    decision = decide_dataset(data, vectors, families=FAMILIES)
    write_page(folder / "verdict.html", decision, data, vectors)
    return unescape((folder / "verdict.html").read_text()), decision


@pytest.mark.parametrize(("n", "m", "told"), [(15, 105, False), (64, 600, False), (64, 60, False), (3000, 120, True)])
def test_the_page_says_of_the_pairs_that_would_do_what_the_command_says(
    n: int, m: int, told: bool, tmp_path: Path
) -> None:
    """Pairs of few texts, or in too few groups, do not tell how many others would show a difference."""
    page, decision = crossed_pairs(tmp_path, n, m)
    said = [line.strip() for line in decision.describe().splitlines() if "would need" in line]
    assert re.findall(r"A true difference of .* would need about .*?\.(?=<)", page) == said
    assert decision.verdict.startswith("No verdict") == (n == 15 or m == 60)
    assert bool(said) == bool(decision_record(decision)["items_for_this_difference"]) == told
    assert all("if no two share a text" in line for line in said)


def test_texts_cannot_end_the_script_or_become_markup(tmp_path: Path) -> None:
    page, _ = page_of(tmp_path, 40, "</script><b>&amp;")
    assert page.count("</script>") == 1
    assert "<b>" not in page
    texts = json.loads(re.search(r"texts = (\[.*?\]);", page)[1])
    assert texts[0].startswith("</script><b>&amp; 0")


def test_the_pairs_that_move_most_are_of_one_class_or_a_query_with_its_document() -> None:
    kinds = [
        Dataset("t", "labels", tuple("abcde"), np.arange(5), np.array([1.0, 0, 1, 0, 2]), classes=("x", "y", "z")),
        Dataset(
            "q", "queries", tuple("abcde"), np.array([3, 4]), np.array([-1.0, -1.0]), documents=np.arange(3),
            relevant=({0: 2.0, 2: 1.0}, {1: 1.0}),
        ),
    ]  # fmt: skip
    expected = [
        ([[1, 3], [0, 2]], ["x", "y"]),
        ([[3, 0], [3, 2], [4, 1]], ["2", "1", "1"]),
    ]
    for data, (rows, values) in zip(kinds, expected, strict=True):
        found = related_pairs(data)
        assert (found[0].tolist(), found[1]) == (rows, values)


def test_the_map_is_that_of_two_principal_components() -> None:
    angles = np.linspace(0, np.pi / 3, 50)
    ring = np.column_stack([np.cos(angles), np.sin(angles), np.zeros(50)])
    flat = np.array(flat_map(ring)).reshape(-1, 2)
    # An arc lies along its first component, in the order of its angles, and is symmetric in the second.
    assert (np.diff(flat[:, 0]) > 0).all() or (np.diff(flat[:, 0]) < 0).all()
    assert np.abs(flat[:, 1] - flat[::-1, 1]).max() <= 1
