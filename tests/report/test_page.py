"""The page: what its bytes promise, and what a real browser does with it."""

from __future__ import annotations

import hashlib
import json
import re
import time
from base64 import b64encode
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pipeline.papers.verdicts import decide_all
from pipeline.report.contents import build_tables
from pipeline.report.entries import difference_entry
from pipeline.report.page import Picture, write_page
from sentfold.report.drawing import PAGE_COLOURS, draw_forest, figure_bytes
from sentfold.report.page import inline_svg, prose
from sentfold.report.table import Entry
from tests.browser import Page, needs_chromium
from tests.report.made_up import make_evidence, make_results, parameters_of

HEADLINE = "spearman.all.cosine"
EVIL = 'best </script><script>alert(1)</script> & "vectors" <img src=https://example.org/x.png onerror=alert(2)>'
SCORES = {"minilm": (80.0, 70.0), "minilm-lp": (75.5, 71.0), "minilm-pca": (79.9, 72.0)}


def make_page() -> str:
    """A page of a made-up suite with texts in it that would do harm if a browser took them for code."""
    scores = {
        (space, corpus, protocol): value
        for space, values in SCORES.items()
        for corpus, value in zip(("stsb", "sickr"), values, strict=True)
        for protocol in (HEADLINE, "pearson.all.cosine")
    }
    results = make_results(scores, absent={"sts16": "the mirror lacks it"})
    notes = {"source": "mirror", "text": EVIL, "task": "similarity", "splits": {}}
    evidence = make_evidence(
        results,
        corpora={"stsb": notes, "sickr": notes, "sts16": {"absent": "the mirror lacks it"}},
        parameters={space: {**parameters_of(space), "note": EVIL} for space in SCORES},
        made_of={"minilm": EVIL},
        controls={("minilm-lp", corpus): "minilm-pca" for corpus in ("stsb", "sickr")},
        published_by=frozenset({"mteb"}),
    )
    entry = difference_entry(results, ("minilm-lp", "minilm"), "stsb", HEADLINE, role="baseline")
    figure = draw_forest(["minilm-lp"], {"stsb": [entry]}, "axis", "Differences", "beneath")
    pictures = [Picture("differences", "Differences", "A caption.", figure_bytes(figure, "svg"))] * 2
    return write_page(evidence, build_tables(evidence), decide_all(evidence), pictures)


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        path = folder / "index.html"
        path.write_text(make_page(), encoding="utf-8")
        yield path


class Elements(HTMLParser):
    """Every tag with its attributes, and the texts of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.code: dict[str, list[str]] = {"script": [], "style": []}
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag if tag in self.code else ""
        if self.inside:
            self.code[tag].append("")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.code[self.inside][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""


# --- bytes ------------------------------------------------------------------------------------------


def test_the_policy_names_exactly_the_page_s_own_style_and_script(page_file: Path) -> None:
    elements = Elements(page_file.read_text(encoding="utf-8"))
    policy = next(a["content"] for tag, a in elements.tags if tag == "meta" and "http-equiv" in a)
    assert policy is not None and policy.startswith("default-src 'none';") and "unsafe" not in policy
    data, script = elements.code["script"]
    assert len(elements.code["style"]) == 1
    for text, rule in ((script, "script-src"), (elements.code["style"][0], "style-src")):
        digest = b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy
    assert json.loads(data)["suite"] == "made-up"


def test_nothing_on_the_page_leads_elsewhere_or_runs_inline(page_file: Path) -> None:
    elements = Elements(page_file.read_text(encoding="utf-8"))
    for tag, attributes in elements.tags:
        assert tag not in {"link", "iframe", "img", "object", "embed", "base", "form"}, tag
        for name, value in attributes.items():
            assert not name.startswith("on") and name not in {"src", "style"}, (tag, name)
            if name.endswith("href"):
                assert value is not None and value.startswith("#"), value
    assert "@import" not in elements.code["style"][0] and "url(" not in elements.code["style"][0]


def test_foreign_text_is_text(page_file: Path) -> None:
    text = page_file.read_text(encoding="utf-8")
    assert "alert(1)</script>" not in text and "<img" not in text
    assert "best &lt;/script&gt;" in text
    assert Elements(text).code["script"][0].count("alert(1)") >= 1  # whole, in the data


def test_ids_are_unique_and_every_link_has_its_end(page_file: Path) -> None:
    elements = Elements(page_file.read_text(encoding="utf-8"))
    ids = [attributes["id"] for _, attributes in elements.tags if "id" in attributes]
    drawn = [name for name in ids if name is not None and name.startswith("differences-")]
    named = [name for name in ids if name not in drawn and not str(name).startswith("figure-")]
    assert len(named) == len(set(named))
    facts = json.loads(elements.code["script"][0])
    for tag, attributes in elements.tags:
        target = attributes.get("href") or ""
        if tag == "a":
            kind, *rest = target[1:].split("/")
            if kind == "score":
                space, corpus, protocol = rest
                assert protocol in facts["spaces"][space]["corpora"][corpus]["scores"]
            elif kind == "printed":
                assert rest[0] in facts["printed"]
            elif kind in {"about", "blank"}:
                assert int(rest[0]) < len(facts["about" if kind == "about" else "blanks"])
            else:
                assert kind in ids
        for name in ("aria-labelledby", "for"):
            assert name not in attributes or attributes[name] in ids


def test_every_number_of_every_table_leads_somewhere(page_file: Path) -> None:
    text = page_file.read_text(encoding="utf-8")
    cells = re.findall(r"<td[ >].*?</td>", text)
    assert len(cells) > 500
    assert all(re.search(r'<a class="(n|blank)" href="#', cell) for cell in cells)


def test_a_computed_number_names_the_vectors_that_it_was_computed_from(page_file: Path) -> None:
    facts = json.loads(Elements(page_file.read_text(encoding="utf-8")).code["script"][0])
    difference = next(of for about, _, of in facts["about"] if "in minilm-lp less that in its baseline minilm" in about)
    assert [place.split("/")[0] for place in difference] == ["minilm-lp", "minilm"]
    for _, _, places in facts["about"]:
        for place in places:
            space, corpus = place.split("/")
            assert facts["spaces"][space]["corpora"][corpus]["n"] == 1000
            assert corpus in facts["corpora"]


def test_a_number_knows_its_differences_to_baseline_and_control(page_file: Path) -> None:
    facts = json.loads(Elements(page_file.read_text(encoding="utf-8")).code["script"][0])
    scores = {space: facts["spaces"][space]["corpora"]["stsb"]["scores"][HEADLINE] for space in SCORES}
    baseline, control = scores["minilm-lp"][3:]
    assert (baseline[:2], control[:2]) == (["minilm", -4.5], ["minilm-pca", -4.4])
    for _, value, low, high in (baseline, control):
        assert value - 1.2 < low < value < high < value + 1.2  # paired: alone, each score moves by six
    assert scores["minilm"][3:] == [None, None]
    assert scores["minilm-pca"][3][0] == "minilm" and scores["minilm-pca"][4] is None


def test_a_page_for_version_control_holds_no_hash(page_file: Path) -> None:
    assert re.search(r"\b[0-9a-f]{64}\b", page_file.read_text(encoding="utf-8")) is None


def test_the_same_results_make_the_same_bytes(page_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert make_page() == page_file.read_text(encoding="utf-8")


def test_prose_is_escaped_before_it_is_set() -> None:
    assert prose("a `<b>` -3.5 x-1 *em* 3*4") == "a <code>&lt;b&gt;</code> −3.5 x-1 <em>em</em> 3*4"


def test_a_figure_of_a_page_has_no_style_attribute_and_ids_of_its_own() -> None:
    figure = draw_forest(["a", "b"], {"stsb": [Entry("+1", 1.0, 0.5, 1.5), Entry("+2", 2.0)]}, "axis", "T", "t")
    svg = figure_bytes(figure, "svg")
    one, two = (inline_svg(svg, name=name, title="T <1>", colours=PAGE_COLOURS) for name in ("one", "two"))
    assert " style=" not in one and "<style" not in one and "<metadata" not in one
    assert 'role="img"' in one and 'aria-label="T &lt;1&gt;"' in one
    ids = [set(re.findall(r'id="([^"]+)"', text)) for text in (one, two)]
    assert ids[0] and not ids[0] & ids[1]
    for text, names in zip((one, two), ids, strict=True):
        used = set(re.findall(r'href="#([^"]+)"', text)) | set(re.findall(r"url\(#([^)]+)\)", text))
        assert used <= names


# --- a real browser ---------------------------------------------------------------------------------


@pytest.fixture
def page(browser: Page, page_file: Path) -> Iterator[Page]:
    """The page, opened from disk; afterwards, nothing may have been complained of, and nothing asked of a network."""
    browser.resize(1280, 900)
    browser.open("about:blank")
    browser.requests.clear()
    browser.complaints.clear()
    browser.open(page_file.as_uri())
    yield browser
    browser.evaluate("0")
    assert browser.complaints == []
    assert {url for url in browser.requests if not url.startswith("about:")} == {page_file.as_uri()}


ROWS = "[...document.querySelectorAll('#similarity table')][0].querySelectorAll('tbody.measured tr:not(.group) th')"


def first_names(page: Page) -> list[str]:
    names: list[str] = page.evaluate(f"[...{ROWS}].map((cell) => cell.firstChild.textContent.trim())")
    return names


@needs_chromium
def test_it_opens_from_disk_with_its_tables_and_without_a_complaint(page: Page) -> None:
    assert page.evaluate("document.querySelectorAll('table').length") >= 10
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).fontWeight") == "600"  # the style was let in
    assert first_names(page) == list(SCORES)


@needs_chromium
def test_a_column_sorts_by_pointer_and_says_so(page: Page) -> None:
    head = "document.querySelectorAll('#similarity table')[0].querySelectorAll('thead th')[2]"
    page.evaluate(f"{head}.querySelector('button').click()")
    assert first_names(page) == ["minilm-pca", "minilm-lp", "minilm"]  # sickr: 72, 71, 70
    assert page.evaluate(f"{head}.getAttribute('aria-sort')") == "descending"
    page.evaluate(f"{head}.querySelector('button').click()")
    assert first_names(page) == ["minilm", "minilm-lp", "minilm-pca"]
    assert page.evaluate(f"{head}.getAttribute('aria-sort')") == "ascending"
    assert "sickr, ascending" in page.evaluate("document.getElementById('said').textContent")


@needs_chromium
def test_a_column_sorts_by_keyboard_and_blanks_stay_last(page: Page) -> None:
    head = "document.querySelectorAll('#sbert-lp-1 table')[3].querySelectorAll('thead th')[1]"
    page.evaluate(f"{head}.querySelector('button').focus()")
    for _ in range(2):
        page.press("Enter", 13)
        cells = (
            "[...document.querySelectorAll('#sbert-lp-1 table')[3].querySelectorAll('tbody.measured td:nth-child(2)')]"
        )
        values = page.evaluate(f"{cells}.map((cell) => cell.dataset.v ?? '')")
        filled = [value for value in values if value]
        assert values[: len(filled)] == filled and len(filled) == 3
    assert [float(value) for value in filled] == sorted(float(value) for value in filled)


@needs_chromium
def test_a_number_leads_to_its_lineage_and_back(page: Page) -> None:
    link = "document.querySelector('a.n[href=\"#score/minilm-lp/stsb/spearman.all.cosine\"]')"
    page.evaluate(f"{link}.focus()")
    page.press("Enter", 13)
    text = page.evaluate(
        "new Promise((done) => setTimeout(() => done(document.getElementById('lineage').innerText), 100))"
    )
    assert page.evaluate("document.getElementById('lineage').open")
    for part in (
        "minilm-lp on stsb",
        "75.50",
        "95%",
        "1000 bootstrap",
        "Spearman of cosine, all pairs",
        "1000 items",
        "lle",
        "−4.50 against minilm (−",
        "−4.40 against minilm-pca (−",
    ):
        assert part in text, part
    assert "data/made-up/spaces/minilm-lp/stsb.parquet" in text
    table, column = "reports/made-up/tables/scores.csv", '"stsb spearman.all.cosine"'
    assert f"sentfold trace {table} --row minilm-lp --column {column}" in " ".join(text.split())
    page.press("Escape", 27)
    after = page.evaluate(
        "new Promise((done) => setTimeout(() => done(document.activeElement.getAttribute('href')), 100))"
    )
    assert after == "#score/minilm-lp/stsb/spearman.all.cosine"
    assert not page.evaluate("document.getElementById('lineage').open")


@needs_chromium
def test_a_difference_leads_to_the_vectors_of_both_its_sides(page: Page) -> None:
    row = (
        "[...document.querySelectorAll('#similarity tr')].find((r) => r.cells[0].textContent === 'minilm-lp − minilm')"
    )
    page.evaluate(f"{row}.querySelector('a.n').click()")
    text = page.evaluate(LINEAGE_SOON)
    for part in (
        "in minilm-lp less that in its baseline minilm",
        "minilm-lp on stsb",
        "minilm on stsb",
        "1000 bootstrap resamples",
        "data/made-up/spaces/minilm-lp/stsb.parquet",
        "data/made-up/spaces/minilm/stsb.parquet",
    ):
        assert part in text, part


LINEAGE_SOON = "new Promise((done) => setTimeout(() => done(document.getElementById('lineage').innerText), 100))"


@needs_chromium
def test_a_printed_figure_and_a_blank_say_where_they_come_from(page: Page, page_file: Path) -> None:
    for selector, parts in (
        ("#sbert-lp-1 tbody.printed a.n", ("Printed", "SBERT-LP", "Protocol", "published.csv")),
        ("#sbert-lp-1 tbody.measured a.blank", ("Why this is blank", "Reason", "the suite names no corpus")),
    ):
        page.evaluate(f"document.querySelector('{selector}').click()")
        deadline = time.monotonic() + 20  # a busy machine shows it later
        while not all(part in (text := page.evaluate(LINEAGE_SOON)) for part in parts):
            assert time.monotonic() < deadline, text
        page.evaluate("document.getElementById('lineage').close()")
        while page.evaluate("location.hash"):  # cleared a moment later: who clicks before would be cleared with it
            assert time.monotonic() < deadline


@needs_chromium
def test_claims_can_be_chosen_by_outcome(page: Page) -> None:
    chosen = page.evaluate("document.querySelector('.claims > li').classList[1]")
    shown = f"[...document.querySelectorAll('.claims > .{chosen}')].filter((item) => item.offsetParent).length"
    before = page.evaluate(shown)
    page.evaluate(f"document.querySelector('.choose input[value={chosen}]').click()")
    assert before > 0 and page.evaluate(shown) == 0


@needs_chromium
def test_foreign_text_runs_nothing(page: Page) -> None:
    page.evaluate("document.querySelector('a.n[href=\"#score/minilm/stsb/spearman.all.cosine\"]').click()")
    text = page.evaluate(
        "new Promise((done) => setTimeout(() => done(document.getElementById('lineage').innerText), 100))"
    )
    assert "<script>alert(1)</script>" in text
    assert page.evaluate("document.querySelectorAll('img').length") == 0


@needs_chromium
def test_it_fits_a_phone_and_follows_a_dark_screen(page: Page) -> None:
    page.resize(375, 800, phone=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    colours = []
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours[0] != colours[1]


@needs_chromium
def test_text_and_paper_differ_enough_for_every_reader(page: Page) -> None:
    # WCAG 2 asks 4.5 to 1 of text; both schemes, for what is printed smallest and palest too.
    contrast = """
    ((selector) => {
      const parts = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((c) => c / 255)
        .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
      const light = (colour) => parts(colour).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
      const ink = getComputedStyle(document.querySelector(selector)).color;
      const [a, b] = [ink, getComputedStyle(document.body).backgroundColor].map(light).sort((x, y) => y - x);
      return (a + 0.05) / (b + 0.05);
    })
    """
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        for selector in ("body", ".protocol", "td .ci", ".fails .verdict", ".untestable .verdict", "summary"):
            assert page.evaluate(f"{contrast}('{selector}')") >= 4.5, (scheme, selector)
