"""One table in four renderings: each holds every number once, whatever characters its names are made of."""

from __future__ import annotations

import csv
import io
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.report.page import Picture
from pipeline.stages.report import write_pictures
from sentfold.report.render import CSV_HEADER, Blanks, latex, latex_text, markdown_rows, plain_rows, tidy_csv
from sentfold.report.table import Entry, Group, Head, Line, Panel, Table

# What a corpus, a space or a title may hold that a format takes for something else.
ODD = st.text("ab1 |&%$#_{}~^\\,;\"'*-−×βλ–", min_size=1, max_size=12).filter(lambda text: text.strip() == text)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    if draw(st.booleans()):
        return Entry(reason=draw(ODD), command=draw(st.sampled_from(["", "make paper"])))
    value = draw(st.floats(-100, 100))
    text, width = f"{value:.2f}", draw(st.floats(0, 9))
    return Entry(text, value, value - width, value + width, sign=draw(st.sampled_from([-1, 0, 1])))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    panels = []
    for _ in range(draw(st.integers(1, 3))):
        heads = tuple(Head(draw(ODD), draw(ODD), draw(ODD)) for _ in range(draw(st.integers(1, 3))))
        row = st.builds(Line, ODD, ODD, st.tuples(*[entries()] * len(heads)))
        group = st.builds(Group, ODD, st.booleans(), st.lists(row, min_size=1, max_size=3).map(tuple))
        panels.append(Panel(draw(ODD), draw(ODD), heads, tuple(draw(st.lists(group, min_size=1, max_size=2)))))
    return Table("name", draw(ODD), draw(ODD), tuple(panels))


def shown(entry: Entry) -> str:
    """What stands in a cell that is no blank."""
    return f"{entry.text}{entry.mark} {entry.interval}"


@given(table=tables())
@settings(deadline=None, max_examples=25)
def test_the_csv_reads_back_as_every_entry_in_its_order(table: Table) -> None:
    header, *rows = csv.reader(io.StringIO(tidy_csv(table)))
    assert tuple(header) == CSV_HEADER
    assert len(rows) == len(table.entries)
    for row, entry in zip(rows, table.entries, strict=True):
        fields = dict(zip(header, row, strict=True))
        assert (fields["value"], fields["reason"], fields["command"]) == (entry.text, entry.reason, entry.command)
        if entry.low is not None and entry.high is not None:
            # Two decimals: half of the last one.
            assert abs(float(fields["low"]) - entry.low) <= 0.005 + 1e-9
            assert float(fields["low"]) <= float(fields["value"]) + 0.01
            assert abs(float(fields["high"]) - entry.high) <= 0.005 + 1e-9


@given(table=tables())
@settings(deadline=None, max_examples=25)
def test_every_line_of_a_markdown_table_has_as_many_cells(table: Table) -> None:
    for panel in table.panels:
        lines = [line for line in markdown_rows(panel, Blanks()).splitlines() if line.startswith("|")]
        counts = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
        assert len(counts) == 1
        assert len(lines) == 2 + sum(1 + len(group.lines) for group in panel.groups)
        text = "\n".join(lines)
        assert all(shown(entry) in text for entry in panel.entries if not entry.blank)


@given(table=tables())
@settings(deadline=None, max_examples=25)
def test_columns_on_a_terminal_are_aligned_and_hold_every_number(table: Table) -> None:
    for panel in table.panels:
        blanks = Blanks()
        head, rule, *rows = plain_rows(panel, blanks).splitlines()
        assert set(rule) == {"-", " "}
        assert len(rows) == sum(len(group.lines) for group in panel.groups)
        assert all(len(line) <= len(rule) for line in (head, *rows))
        assert max(map(len, (head, *rows))) == len(rule), "the last column is as wide as its widest cell"
        lines = [line for group in panel.groups for line in group.lines]
        for row, line in zip(rows, lines, strict=True):
            assert row.startswith(line.name)
            places = [row.find(shown(entry)) for entry in line.entries if not entry.blank]
            assert -1 not in places
        assert set(blanks.reasons) == {entry.blank_text for entry in panel.entries if entry.blank}


@given(table=tables())
@settings(deadline=None, max_examples=25)
def test_latex_braces_close_and_no_character_is_a_command_by_accident(table: Table) -> None:
    comment, _, text = latex(table).partition("\n")
    assert comment.startswith("% ")
    depth = 0
    for before, letter in pairwise(f" {text}"):
        depth += (letter == "{") - (letter == "}") if before != "\\" else 0
        assert depth >= 0
    assert depth == 0
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == len(table.panels)


@pytest.mark.parametrize("letter", list("\\&%$#_{}~^"))
def test_a_special_character_of_latex_is_never_left_bare(letter: str) -> None:
    escaped = latex_text(f"a{letter}b")
    assert escaped != f"a{letter}b"
    assert escaped.startswith("a\\") and escaped.endswith("b")


def test_a_reason_that_recurs_has_one_number_and_reasons_are_numbered_as_they_come() -> None:
    blanks = Blanks()
    assert [blanks.mark(reason) for reason in ("late", "lost", "late")] == ["– [1]", "– [2]", "– [1]"]
    assert blanks.legend() == "[1] late  \n[2] lost  \n"
    assert Blanks().legend() == ""


def test_a_name_or_a_reason_of_several_lines_makes_no_row_of_its_own() -> None:
    odd = "gone\n| **best** | 99.99 |\r\n```{include} /etc/passwd\n```"
    head, line = Head("lee", "lee", "p"), Line("minilm", odd, (Entry(reason=odd),))
    panel = Panel("Scores", "p", (head,), (Group(odd, False, (line,)),))
    blanks = Blanks()
    assert len(markdown_rows(panel, blanks).splitlines()) == 4  # header, rule, group, row
    assert len(plain_rows(panel, blanks).splitlines()) == 3
    assert len(blanks.legend().splitlines()) == 1


def test_an_element_of_html_in_a_text_of_a_suite_stays_text(tmp_path: Path) -> None:
    write_pictures([Picture("map", "Map", "of <img src=x onerror=alert(1)>", b"<svg/>")], tmp_path)
    assert "<" not in (tmp_path / "index.md").read_text(encoding="utf-8")
    assert (tmp_path / "map.svg").read_bytes() == b"<svg/>"


def test_panels_are_lettered_as_columns_of_a_spreadsheet() -> None:
    panel = Panel("title", "protocol", (), ())
    letters = [letter for letter, _ in Table("t", "", "", (panel,) * 54).lettered()]
    assert letters[:3] == ["a", "b", "c"] and letters[25:28] == ["z", "aa", "ab"] and letters[51:] == ["az", "ba", "bb"]
    assert len(set(letters)) == 54


def test_an_interval_never_prints_a_negative_zero_and_needs_both_bounds() -> None:
    assert Entry("0.0", 0.0, -0.04, 0.04).interval == "[0.0, 0.0]"
    assert Entry("0.0", 0.0, -0.04, 0.04, digits=2).interval == "[-0.04, 0.04]"
    assert Entry("0.0", 0.0, -0.04).interval == Entry("0.0", 0.0, high=1.0).interval == ""


def test_a_number_tells_where_it_comes_from_by_its_link() -> None:
    heads = (Head("t", "lee", "spearman.all.cosine"),) * 4
    links = ("score/minilm/lee/spearman.all.cosine", "difference/minilm-lp/minilm/lee/spearman.all.cosine", "", "x/y")
    line = Line("minilm", "", tuple(Entry("1", 1.0, link=link, of=("minilm/lee",)) for link in links))
    measured, printed = (Table("t", "", "", (Panel("p", "", heads, (Group("g", p, (line,)),)),)) for p in (False, True))
    assert [cell.origin for cell in measured.cells()] == ["score", "difference", "derived", "derived"]
    assert {cell.origin for cell in printed.cells()} == {"printed"}
    assert line.entries[0].key == ("minilm", "lee", "spearman.all.cosine")
    assert line.entries[2].key == ("minilm/lee",)
    # A printed number's protocol is what its paper says, which the panel's title has.
    assert {cell.protocol for cell in printed.cells()} == {"p"}
    assert {cell.protocol for cell in measured.cells()} == {"spearman.all.cosine"}
