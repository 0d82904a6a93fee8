"""A page that stays on this machine: with the hashes of every artifact, and the texts of repaired and broken pairs."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

from pipeline.base.artifacts import corpus_path, read_table
from pipeline.base.suite import Suite
from pipeline.papers.verdicts import decide_all
from pipeline.report.contents import build_tables
from pipeline.report.evidence import Cases
from pipeline.report.gallery import draw_gallery
from pipeline.report.inputs import gather_evidence
from pipeline.report.own_tables import find_hero
from pipeline.report.page import write_page
from sentfold.errors import ArtifactError
from sentfold.files import write_bytes_atomically


def local_page_path(suite: str) -> Path:
    """Where a suite's local page is: below data/, which version control ignores."""
    return Path("data") / suite / "page" / "index.html"


def write_local_page(suite: Suite) -> Path:
    """Write the local page of a finished report. Returns its path.

    Raises ArtifactError if the report was not made yet. The page quotes corpora: mind their licences before
    you pass it on.
    """
    source = Path("reports") / suite.suite / "lineage.json"
    try:
        lineage = json.loads(source.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArtifactError(
            f"suite '{suite.suite}' has no report yet",
            where=str(source),
            got=str(error),
            remedy=f"run `sentfold run --suite {suite.suite}`",
        ) from None
    evidence = gather_evidence(suite)
    tables, decided = build_tables(evidence), decide_all(evidence)
    pictures = [picture for picture, _ in draw_gallery(evidence)]
    hero = find_hero(evidence)
    extra = case_texts(evidence.cases, suite.suite, hero.ours if hero else "")
    page = write_page(evidence, tables, decided, pictures, lineage=lineage, extra=extra)
    path = local_page_path(suite.suite)
    write_bytes_atomically(path, page.encode())
    return path


def case_texts(cases: Cases | None, suite: str, space: str) -> str:
    """The sentences of the repaired and broken pairs of table 4, as a section of a page; '' if there are none."""
    orders = None if cases is None else cases.orders.get(space)
    if cases is None or orders is None:
        return ""
    items = read_table(corpus_path(suite, cases.corpus, "items"), kind="items.similarity").to_pydict()
    texts = read_table(corpus_path(suite, cases.corpus, "sentences"), kind="sentences").column("text").to_pylist()

    def pair(row: int) -> str:
        sides = " · ".join(escape(texts[items[side][row]]) for side in ("row1", "row2"))
        return f"<dt>row {row}, rated {cases.human[row]:.2f}</dt><dd>{sides}</dd>"

    parts = []
    for title, found in (("Repaired", orders.best), ("Broken", orders.worst)):
        lists = "".join(f"<dl>{pair(order.higher)}{pair(order.lower)}</dl>" for order in found)
        parts.append(f"<h3>{title} by {escape(space)}, of {escape(cases.corpus)}</h3>{lists}")
    return (
        '<section id="texts" aria-labelledby="texts-h"><h2 id="texts-h">Texts of SBERT-LP 4</h2>'
        f"<p>On this machine alone.</p>{''.join(parts)}</section>"
    )
