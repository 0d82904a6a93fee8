"""Write the committed scores into the tables of README.md, docs/findings.md and the pages of docs/findings/.

    python .ci/refresh_findings.py ROOT [--check]

ROOT is a checkout. The script reads reports/paper-mirror/tables and rewrites four things in these pages:

- Tables. A table is refreshed if the line above it is a comment with a protocol, such as
  `<!-- scores: spearman.all.cosine -->`, or with a measure of retrieval, as `<!-- retrieval: nDCG@10 -->`. The first
  line of the table names corpora. A column with another protocol names it too, as `snli, best-f1.cosine`. With the
  name of a suite, as `<!-- scores: spearman.all.cosine of layers-mirror -->`, the scores are of that suite.
  A row is a space, or two spaces `a − b`: then its cells are the difference with the interval. A row whose name has
  `MTEB` is left unchanged. To add a row, write its name alone, as `| minilm-lpp − minilm |`, and run the script.
- Copies. A table under a comment such as `<!-- panel: trainings (b) of train-mirror -->` is the second panel of that
  report's tables/trainings.md.
- The counts of the outcomes of claims, between `<!-- counts of claims -->` and `<!-- end of the counts -->`, from
  reports/paper-mirror/claims.json.
- The parts of docs/findings/retrieval.md that retrieval_finding.py writes. While the committed report has no table of
  retrieval, the tables of that page stay as they are.

It then prints each cell that the report cannot fill, and each difference with its interval in the text, as
`+2.25 [+0.83, +3.75]`, that no table of reports/ contains any more. A person changes those. Exits 1 if it printed any.
With --check it writes nothing, and exits 1 too if it would change a page.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import retrieval_finding

SUITE = "reports/paper-mirror"
MARK = re.compile(r"<!-- (?:scores|retrieval): (\S+)(?: of (\S+))? -->")
PANEL = re.compile(r"<!-- panel: (\S+) \((\w)\) of (\S+) -->")
COUNTS = re.compile(r"(<!-- counts of claims -->\n).*?(<!-- end of the counts -->)", re.DOTALL)
TRIPLE = re.compile(r"[+-]\d+\.\d+ \[[+-]\d+\.\d+, [+-]\d+\.\d+\]")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)  # what a command prints is not from reports/
# The columns of a difference and of its interval, and the column that names the other space.
DIFFERENCES = (
    ("difference_to", ("difference", "difference_low", "difference_high")),
    ("control", ("control_difference", "control_low", "control_high")),
)
ORDER = ("the print", "under", "the same", "")  # how the headings of the counts begin, in the order of the page
Rows = dict[tuple[str, str, str], dict[str, str]]


def read_rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        yield from csv.DictReader(stream)


def show_difference(texts: list[str]) -> str:
    value, low, high = (float(text) for text in texts)
    return f"{value:+.2f} [{low:+.2f}, {high:+.2f}]"


def find_cell(rows: Rows, name: str, corpus: str, protocol: str) -> str | None:
    """The text of a cell, "" if the report leaves the number blank, or None if it has no such row."""
    space, _, other = name.partition(" − ")
    row = rows.get((space, corpus, protocol))
    if row is None:
        return None
    if not other:
        return row["value"]
    for named, columns in DIFFERENCES:
        if row[named] == other:
            texts = [row[column] for column in columns]
            return show_difference(texts) if all(texts) else ""
    return None


def refresh_table(lines: list[str], protocol: str, rows: Rows) -> tuple[list[str], list[str]]:
    """The lines of a table with the cells of the report, and the cells that the report lacks."""
    heads = [cell.strip() for cell in lines[0].strip("|").split("|")][1:]
    written, missing = lines[:2], []
    for line in lines[2:]:
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        if "MTEB" not in name:
            cells = [*cells, *[""] * (len(heads) - len(cells))]
            for column, head in enumerate(heads):
                corpus, _, own = head.partition(", ")
                cell = find_cell(rows, name, corpus, own or protocol)
                if cell is None:
                    missing.append(f"{name}, {head}: the report has no such number; the page keeps {cells[column]!r}")
                else:
                    cells[column] = cell
        written.append(f"| {name} | {' | '.join(cells)} |")
    return written, missing


def list_pages(root: Path) -> list[str]:
    """The pages that have numbers of the report."""
    return [
        "README.md",
        "docs/findings.md",
        *sorted(f"docs/findings/{p.name}" for p in root.glob("docs/findings/*.md")),
    ]


def read_differences(root: Path) -> Rows:
    """The rows of the table of retrieval in the form of scores.csv: (search, pool, measure) -> its columns."""
    rows: Rows = {}
    for (name, pool), (value, low, high) in retrieval_finding.read_searches(root).items():
        search, _, other = name.partition(" − ")
        own = rows.setdefault((search, pool, retrieval_finding.MEASURE), {"control": "", "difference_to": ""})
        own |= (
            dict(zip(DIFFERENCES[0][1], (value, low, high), strict=True), difference_to=other)
            if other
            else {"value": value}
        )
    return rows


def read_scores(root: Path, suite: str) -> Rows:
    """(space, corpus, protocol) -> the columns of the suite's scores.csv."""
    rows = read_rows(root / "reports" / suite / "tables/scores.csv")
    return {(row["space"], row["corpus"], row["protocol"]): row for row in rows}


def copy_panel(page: str, letter: str) -> list[str]:
    """The lines of one panel's table in a page of tables, without the lines that head a group of rows."""
    _, _, rest = page.partition(f"\n## ({letter}) ")
    panel = rest.partition("\n## ")[0]
    return [line for line in panel.splitlines() if line.startswith("|") and not line.startswith("| **")]


def refresh_page(text: str, rows: Rows, root: Path) -> tuple[str, list[str]]:
    """The page with all marked tables rewritten, and the cells that the report lacks."""
    lines, written, missing = text.split("\n"), [], []
    while lines:
        written.append(lines.pop(0))
        mark, panel = MARK.fullmatch(written[-1]), PANEL.fullmatch(written[-1])
        if mark or panel:
            length = next((at for at, line in enumerate(lines) if not line.startswith("|")), len(lines))
            if mark:
                own = read_scores(root, mark[2]) if mark[2] else rows
                table, lacking = refresh_table(lines[:length], mark[1], own)
            else:
                source = root / "reports" / panel[3] / "tables" / f"{panel[1]}.md"
                table, lacking = copy_panel(source.read_text(encoding="utf-8"), panel[2]), []
            written, lines, missing = [*written, *table], lines[length:], [*missing, *lacking]
    return "\n".join(written), missing


def write_counts(claims: Path) -> str:
    """One line for each heading of the ledger."""
    content = json.loads(claims.read_text(encoding="utf-8"))
    lines = []
    counts = content["counts"]
    for heading in sorted(
        counts, key=lambda name: next(at for at, begin in enumerate(ORDER) if name.startswith(begin))
    ):
        outcomes = counts[heading]
        listed = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
        lines.append(f"- {heading}: {listed}\n" if heading else f"- {listed}\n")
    return "".join(lines)


def printed_differences(root: Path) -> set[str]:
    """Every value with its interval in any table of reports/, as a page prints it."""
    found = set()
    columns = [("value", "low", "high"), *[triple for _, triple in DIFFERENCES]]
    for path in (root / "reports").glob("*/**/*.csv"):
        for row in read_rows(path):
            for names in columns:
                texts = [row.get(name) or "" for name in names]
                if all(re.fullmatch(r"[+-]?\d+(\.\d+)?", text) for text in texts):
                    found.add(show_difference(texts))
    return found


def main(root: Path, *, check: bool) -> int:
    rows = read_scores(root, Path(SUITE).name)
    searches = read_differences(root)
    known, wrong, scores = printed_differences(root), False, list(rows.values())
    for name in list_pages(root):
        page = root / name
        before = page.read_text(encoding="utf-8")
        after, complaints = before, []
        if searches or name != retrieval_finding.PAGE:
            after, complaints = refresh_page(before, rows | searches, root)
        if name == retrieval_finding.PAGE:
            after = retrieval_finding.refresh_parts(after, root, scores)
        counts = write_counts(root / SUITE / "claims.json")
        after = COUNTS.sub(lambda match, counts=counts: match[1] + counts + match[2], after)
        complaints += [
            f"no table has {triple}" for triple in TRIPLE.findall(FENCE.sub("", after)) if triple not in known
        ]
        if after != before:
            print(f"{name}: {'not up to date' if check else 'rewritten'}")
            wrong |= check
            if not check:
                page.write_text(after, encoding="utf-8")
        for complaint in complaints:
            print(f"{name}: {complaint}")
            wrong = True
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), check="--check" in sys.argv[2:]))
