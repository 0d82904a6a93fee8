"""The page: what its bytes promise, and what a real browser does with it."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pipeline.papers.verdicts import decide_all
from pipeline.report.answer import state_answer
from pipeline.report.contents import build_tables
from pipeline.report.evidence import Evidence
from pipeline.report.page import Picture, write_page
from pipeline.report.space_map import Plane, SpaceMap
from pipeline.report.text_report import report_text
from sentfold.report.drawing import PAGE_COLOURS, draw_forest, figure_bytes
from sentfold.report.page import inline_svg, pack, prose
from sentfold.report.table import Entry
from tests.browser import Page, needs_chromium
from tests.report.made_up import make_evidence, make_results, parameters_of

HEADLINE = "spearman.all.cosine"
EVIL = 'best </script><script>alert(1)</script> & "vectors" <img src=https://example.org/x.png onerror=alert(2)>'
TUNED = "minilm-lp-unit-selected"  # a space that claims of SBERT-LP are tested by
SCORES = {"minilm": (80.0, 70.0), "minilm-lp": (75.5, 71.0), "minilm-pca": (79.9, 72.0), TUNED: (83.0, 90.0)}


def made_up_evidence(spaces: tuple[str, ...] = tuple(SCORES)) -> Evidence:
    """A made-up suite with texts in it that would do harm if a browser took them for code."""
    scores = {
        (space, corpus, protocol): value
        for space in spaces
        for corpus, value in zip(("stsb", "sickr"), SCORES[space], strict=True)
        for protocol in (HEADLINE, "pearson.all.cosine")
    }
    results = make_results(scores, absent={"sts16": "the mirror lacks it"})
    notes = {"source": "mirror", "text": EVIL, "task": "similarity", "splits": {}}
    return make_evidence(
        results,
        corpora={"stsb": notes, "sickr": notes, "sts16": {"absent": "the mirror lacks it"}},
        parameters={space: {**parameters_of(space), "note": EVIL, "sha256": "0" * 64} for space in spaces},
        made_of={"minilm": EVIL},
        controls={("minilm-lp", corpus): "minilm-pca" for corpus in ("stsb", "sickr")},
        published_by=frozenset({"mteb"}),
    )


def make_map() -> SpaceMap:
    """Twelve sentences on a line, in the other plane in reverse; each has ten of eleven others, not quite the same."""
    line = [[80 * place, 500] for place in range(12)]
    others = [[other for other in range(12) if other != place] for place in range(12)]
    left = Plane("minilm", 0.91, line, [row[:10] for row in others])
    right = Plane("minilm-lp", 0.85, line[::-1], [row[1:] for row in others])
    return SpaceMap("sickr", (left, right), [5 * place for place in range(12)], [place % 2 for place in range(12)])


def make_page(evidence: Evidence | None = None, mapped: SpaceMap | None = None) -> str:
    evidence = evidence or made_up_evidence()
    figure = draw_forest(
        ["minilm-lp"], {"stsb": [Entry("+1", 1.0, 0.5, 1.5)]}, "axis", "Differences", "beneath", limit=5.0
    )
    picture = Picture("speed-quality", "Speed", "A caption.", figure_bytes(figure, "svg"))
    return write_page(evidence, build_tables(evidence), decide_all(evidence), [picture], mapped or make_map())


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


def data_of(page: str) -> dict[str, Any]:
    """What the browser decodes."""
    content: dict[str, Any] = json.loads(gzip.decompress(b64decode(Elements(page).code["script"][0])))
    return content


# --- bytes ------------------------------------------------------------------------------------------


def test_the_policy_names_exactly_the_page_s_own_style_and_script(page_file: Path) -> None:
    elements = Elements(page_file.read_text(encoding="utf-8"))
    policy = next(a["content"] for tag, a in elements.tags if tag == "meta" and "http-equiv" in a)
    assert policy is not None and policy.startswith("default-src 'none';") and "unsafe" not in policy
    _, script = elements.code["script"]
    assert len(elements.code["style"]) == 1
    for text, rule in ((script, "script-src"), (elements.code["style"][0], "style-src")):
        digest = b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy


def test_nothing_on_the_page_leads_elsewhere_or_runs_inline(page_file: Path) -> None:
    elements = Elements(page_file.read_text(encoding="utf-8"))
    ids = [attributes["id"] for _, attributes in elements.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in elements.tags:
        assert tag not in {"link", "iframe", "img", "object", "embed", "base"}, tag
        for name, value in attributes.items():
            assert not name.startswith("on") and name not in {"src", "style"}, (tag, name)
            if name.endswith("href"):
                assert value is not None and value.startswith("#") and value[1:] in ids, value
    assert "@import" not in elements.code["style"][0] and "url(" not in elements.code["style"][0]


def test_foreign_text_is_in_the_data_alone_and_no_hash_is(page_file: Path) -> None:
    text = page_file.read_text(encoding="utf-8")
    assert "alert(1)" not in text and "<img" not in text
    data = data_of(text)
    assert next(made for name, made, *_ in data["spaces"] if name == "minilm") == EVIL
    assert re.search(r"\b[0-9a-f]{64}\b", json.dumps(data)) is None


def test_the_same_results_make_the_same_bytes(page_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert make_page() == page_file.read_text(encoding="utf-8")
    assert b64decode(pack({"b": 1, "a": 2}))[4:8] == bytes(4)  # RFC 1952: the time of the file, 0 for none


def test_every_cell_has_a_note_and_a_computed_number_names_its_vectors(page_file: Path) -> None:
    data = data_of(page_file.read_text(encoding="utf-8"))
    spaces, count = {name for name, *_ in data["spaces"]}, 0
    for table in data["tables"]:
        for panel in table["panels"]:
            for _, _, cells in (line for group in panel["groups"] for line in group["lines"]):
                assert len(cells) == len(panel["heads"])
                for number, *texts in cells:
                    kind, *rest = data["notes"][number]
                    count += 1
                    assert kind in {"score", "printed", "about", "blank"} and (kind == "blank") == (not texts)
                    assert kind != "printed" or rest[0] in data["printed"]
                    for source in rest[2] if kind == "about" else ():
                        space, corpus = source.split("/")
                        assert space in spaces and corpus in data["corpora"]
    assert count > 500


def test_a_score_knows_its_differences_and_their_marks(page_file: Path) -> None:
    data = data_of(page_file.read_text(encoding="utf-8"))
    names = [name for name, *_ in data["spaces"]]
    scores = dict(zip(names, data["scores"][HEADLINE]["stsb"], strict=True))
    baseline, control = scores["minilm-lp"][4:6]
    assert (baseline[:2], control[:2]) == (["minilm", -4.5], ["minilm-pca", -4.4])
    for _, value, low, high, sign in (baseline, control):
        assert value - 1.2 < low < value < high < value + 1.2  # paired: alone, each score moves by six
        assert sign == -1
    assert scores["minilm"][4:] == [None, None, None] and scores["minilm-pca"][5] is None
    assert data["corpora"]["sts16"]["absent"] == "the mirror lacks it" and "sts16" not in data["scores"][HEADLINE]


def test_the_answer_counts_what_the_tables_mark(page_file: Path) -> None:
    text = re.sub(r"<[^>]+>", "", page_file.read_text(encoding="utf-8"))
    assert "minilm-lp-unit-selected is better than minilm (Spearman of cosine, all pairs) beyond chance" in text
    results = make_results({(space, "stsb", HEADLINE): value for space, value in {"e": 70.0, "e-pca": 71.0}.items()})
    tasks = {"similarity": [HEADLINE]}
    for sign, said in ((1, "`e-pca` is better than `e`"), (0, "No space is better than `e`")):
        answer = state_answer(results, tasks, {("e-pca", "e", "stsb", HEADLINE): sign})
        assert answer.sentence.startswith(said) and "+1.00 [" in answer.sentence and answer.corpus == "stsb"
    alone = state_answer(make_results({("mine", "lee", HEADLINE): 70.0}), tasks, {})
    assert alone.sentence.startswith("On `lee`, `mine` scores highest: 70.00 [")


def test_a_suite_that_tests_no_claim_has_a_page_and_a_report_about_itself() -> None:
    evidence = made_up_evidence(("minilm", "minilm-lp", "minilm-pca"))
    page = make_page(evidence)
    assert "<title>Scores of suite made-up</title>" in page and 'id="papers"' not in page and "laims" not in page[:4000]
    data = data_of(page)
    assert data["claims"] == [] and data["papers"] == [] and {table["paper"] for table in data["tables"]} == {""}
    assert "laims" not in report_text(evidence, build_tables(evidence), [])


def test_prose_is_escaped_before_it_is_set() -> None:
    assert prose("a `<b>` -3.5 x-1 *em* 3*4") == "a <code>&lt;b&gt;</code> −3.5 x-1 <em>em</em> 3*4"


def test_a_figure_of_a_page_has_no_style_attribute_and_ids_of_its_own() -> None:
    figure = draw_forest(
        ["a", "b"], {"stsb": [Entry("+1", 1.0, 0.5, 1.5), Entry("+2", 2.0)]}, "axis", "T", "t", limit=5.0
    )
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
    show(browser, page_file)
    yield browser
    browser.evaluate("0")
    assert browser.complaints == []
    assert {url.partition("#")[0] for url in browser.requests if not url.startswith(("about:", "blob:"))} == {
        page_file.as_uri()
    }


def show(browser: Page, file: Path, hash_: str = "") -> None:
    """Open the page and wait until its data are decoded and drawn."""
    browser.open("about:blank")
    browser.requests.clear()
    browser.complaints.clear()
    browser.open(f"{file.as_uri()}{hash_}")
    wait(browser, "document.documentElement.dataset.ready")


def wait(browser: Page, expression: str) -> None:
    deadline = time.monotonic() + 20  # a busy machine shows it later
    while not browser.evaluate(expression):
        assert time.monotonic() < deadline, expression


def names(page: Page, where: str = "#board tbody.measured") -> list[str]:
    shown: list[str] = page.evaluate(
        f"[...document.querySelectorAll('{where} tr:not([hidden]) th')].map((cell) => cell.textContent)"
    )
    return shown


def choose(page: Page, name: str, value: str) -> None:
    """What a person does with a select or a search box."""
    event = "input" if name == "find" else "change"
    page.evaluate(
        f"{{const box = document.querySelector('[name={name}]'); box.value = '{value}';"
        f"box.dispatchEvent(new Event('{event}', {{bubbles: true}}))}}"
    )


@needs_chromium
def test_scores_are_searched_sorted_and_shown_as_differences_and_the_address_keeps_it(
    page: Page, page_file: Path
) -> None:
    assert page.evaluate("getComputedStyle(document.querySelector('h2')).fontWeight") == "600"  # the style was let in
    assert names(page) == list(SCORES)
    page.evaluate("document.querySelectorAll('#board .sort')[1].click()")
    assert names(page) == [TUNED, "minilm", "minilm-pca", "minilm-lp"]  # by stsb, the best first
    page.evaluate("document.querySelectorAll('#board .sort')[1].focus()")
    page.press("Enter", 13)
    assert names(page) == ["minilm-lp", "minilm-pca", "minilm", TUNED]
    assert page.evaluate("document.querySelectorAll('#board th')[1].getAttribute('aria-sort')") == "ascending"
    assert "stsb, ascending" in page.evaluate("document.getElementById('said').textContent")
    assert page.evaluate("document.querySelector('#board td.best').textContent") != ""
    assert page.evaluate("document.querySelectorAll('nav a:not([hidden])').length") == 7
    choose(page, "find", "lp")
    assert names(page) == ["minilm-lp", TUNED]
    choose(page, "show", "control")
    assert names(page) == ["minilm-lp"]
    assert page.evaluate("document.querySelector('#board td .n').textContent") == "−4.40"
    address = page.evaluate("location.hash")
    show(page, page_file, address)
    assert names(page) == ["minilm-lp"] and page.evaluate("document.querySelector('[name=find]').value") == "lp"


@needs_chromium
def test_the_forest_plot_follows_its_choices_and_points_to_what_is_outside(page: Page) -> None:
    rows = "#plot-rows tbody"
    assert names(page, rows) == [TUNED, "minilm-pca", "minilm-lp"]  # on sickr, the answer's corpus
    assert page.evaluate("document.querySelectorAll('#plot-rows .right').length") == 1  # +20 on a scale of ±5
    choose(page, "range", "50")
    assert page.evaluate("document.querySelectorAll('#plot-rows .right').length") == 0
    choose(page, "corpus", "stsb")
    assert names(page, rows) == [TUNED, "minilm-pca", "minilm-lp"]
    assert "−4.50" in page.evaluate(f"document.querySelector('{rows}').innerText")
    choose(page, "against", "control")
    assert names(page, rows) == ["minilm-lp"]
    assert "−4.40" in page.evaluate(f"document.querySelector('{rows}').innerText")


@needs_chromium
def test_a_number_leads_to_its_lineage_and_escape_leads_back(page: Page, page_file: Path) -> None:
    target = f"score/minilm-lp/stsb/{HEADLINE}"
    page.evaluate(f"document.querySelector('#board [data-number=\"{target}\"]').click()")
    text = page.evaluate("document.getElementById('panel').innerText")
    for part in (
        "75.50",
        "−4.50 against minilm",
        "−4.40 against minilm-pca",
        "1000 bootstrap resamples",
        "neighbors 30",
        "data/made-up/spaces/minilm-lp/stsb.parquet",
        "sentfold trace reports/made-up/tables/scores.csv",
        EVIL,
    ):
        assert part in text, part  # fmt: skip
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    show(page, page_file, page.evaluate("location.hash"))
    assert page.evaluate("document.getElementById('panel').hidden") is False
    page.press("Escape", 27)
    assert page.evaluate("document.getElementById('panel').hidden") is True


@needs_chromium
def test_a_sentence_that_is_pointed_at_in_one_plane_is_marked_in_both_and_the_address_keeps_it(
    page: Page, page_file: Path
) -> None:
    about = page.evaluate("document.getElementById('planes').innerText")
    assert "minilm: trustworthiness 0.91" in about and "minilm-lp: trustworthiness 0.85" in about
    page.evaluate("document.getElementById('map').scrollIntoView({behavior: 'instant'})")
    x, y = page.evaluate(
        "(() => {const box = document.querySelectorAll('#planes svg')[1].children[3].getBoundingClientRect();"
        "return [box.x + box.width / 2, box.y + box.height / 2]})()"
    )
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    said = page.evaluate("document.getElementById('map-chosen').textContent")
    assert said.startswith("Sentence 4: row 15 of sickr, class 1. 9 of its 10 nearest sentences in minilm-lp")
    for which in (0, 1):
        marked = f"[...document.querySelectorAll('#planes svg')[{which}].children]"
        assert page.evaluate(f"{marked}.findIndex((dot) => dot.classList.contains('this'))") == 3
        assert page.evaluate(f"{marked}.filter((dot) => dot.classList.contains('near')).length") == 10
    show(page, page_file, page.evaluate("location.hash"))
    assert page.evaluate("document.getElementById('map-chosen').textContent") == said
    page.evaluate("document.querySelector('[name=place]').focus()")
    page.press("ArrowUp", 38)  # by keyboard, the next sentence
    assert "Sentence 5: row 20" in page.evaluate("document.getElementById('map-chosen').textContent")


@needs_chromium
def test_a_map_that_is_left_out_says_why(browser: Page, tmp_path: Path) -> None:
    planes = (Plane("minilm", 0.74, [], []), Plane("minilm-lp", 0.9, [], []))
    file = tmp_path / "index.html"
    file.write_text(make_page(mapped=SpaceMap("sickr", planes, reason="its number is .74")), encoding="utf-8")
    show(browser, file)
    assert "No map is shown: its number is .74." in browser.evaluate("document.getElementById('map').innerText")
    assert browser.evaluate("document.querySelectorAll('#planes svg').length") == 0 and browser.complaints == []


@needs_chromium
def test_papers_have_tabs_whose_tables_are_drawn_when_they_are_opened(page: Page) -> None:
    assert page.evaluate("document.querySelectorAll('.claims li').length") > 0
    assert "not testable" not in page.evaluate("document.querySelector('.claims').innerText")
    assert page.evaluate("document.querySelectorAll('#paper table').length") == 0
    page.evaluate("document.querySelector('#paper .fold').open = true")
    wait(page, "document.querySelectorAll('#paper table').length > 0")
    for kind, parts in (("printed", ("SBERT-LP", "published.csv")), ("measured", ("minilm on", "Parameters"))):
        page.evaluate(f"document.querySelector('#paper tbody.{kind} td[data-v] .n').click()")
        text = page.evaluate("document.getElementById('panel').innerText")
        assert all(part in text for part in parts), text
    first = page.evaluate("document.querySelector('[aria-selected=true]').textContent")
    page.evaluate("document.querySelector('[aria-selected=true]').focus()")
    page.press("ArrowRight", 39)
    assert page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"
    assert page.evaluate("document.activeElement.textContent") != first


@needs_chromium
def test_it_fits_a_phone_and_follows_a_dark_screen_with_enough_contrast(page: Page) -> None:
    page.resize(390, 844, phone=True)
    page.evaluate("for (const node of document.querySelectorAll('.fold')) node.open = true")
    wait(page, "[...document.querySelectorAll('.fold')].every((node) => node.children.length > 1)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
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
    colours = []
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        for selector in ("body", ".muted", "td .ci", "span.up", "span.down", ".verdict", "summary", "label"):
            assert page.evaluate(f"{contrast}('{selector}')") >= 4.5, (scheme, selector)
    page.prefer("light")
    assert colours[0] != colours[1]
