"""Stage `report`: the tables, figures and summary of one suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.artifacts import corpus_path, read_record, sha256_of, space_path, write_bytes_atomically, write_json
from pipeline.evaluate.parameters import EvaluateParameters
from pipeline.params import load_parameters
from pipeline.report.case_table import find_cases
from pipeline.report.claim_list import claims_content, claims_markdown, count_verdicts, decide_all
from pipeline.report.contents import build_tables
from pipeline.report.difference_panels import TITLE
from pipeline.report.environment import describe_environment
from pipeline.report.families import find_controls
from pipeline.report.figures import figure_bytes
from pipeline.report.gallery import Drawn, draw_gallery
from pipeline.report.grid import Table
from pipeline.report.layout import latex, markdown, markdown_rows, tidy_csv
from pipeline.report.page import write_page
from pipeline.report.parameters import ReportParameters
from pipeline.report.results import Results, load_results
from pipeline.report.sections import Plan, methods_of, write_markdown, write_summary
from pipeline.report.small_tables import cluster_table
from pipeline.report.spaces import describe_spaces
from pipeline.report.speed_tables import load_benchmark
from pipeline.report.sweeps import load_sweeps
from pipeline.report.tables import HEADLINE, Blanks, long_csv, markdown_table, wide_csv
from pipeline.report.verdicts import Decided, Evidence
from pipeline.report.word_controls import control_pairs
from pipeline.suite import Suite


def report(suite: Suite) -> Path:
    """Write every table and figure of a suite under reports/<suite>/. Returns the report's path."""
    parameters = load_parameters(ReportParameters, "report")
    evaluated = load_parameters(EvaluateParameters, "evaluate")
    results = load_results(suite, confidence=evaluated.confidence)
    plan = Plan(
        similar=results.corpora_of("similarity"),
        classified=results.corpora_of("classification"),
        published={name: (entry.source, entry.model) for name, entry in parameters.published.items()},
        referees=parameters.referees,
    )
    folder = Path("reports") / suite.suite
    _write(folder / "tables" / "sts.csv", wide_csv(results, plan.similar, HEADLINE))
    evidence = gather_evidence(results, parameters, evaluated)
    _write(folder / "tables" / "scores.csv", long_csv(results, evidence.controls))
    tables = build_tables(evidence, parameters.referees)
    decided = decide_all(evidence)
    write_tables(tables, folder / "tables")
    pictures = draw_gallery(evidence)
    write_pictures(pictures, folder / "figures")
    _write(folder / "summary.txt", write_summary(results, plan))
    _write(
        folder / "report.md",
        "\n".join(
            [
                opening(suite, decided, evidence.made_of),
                write_markdown(results, plan),
                control_sections(tables),
                table_links(tables),
            ]
        ),
    )
    _write(folder / "claims.md", claims_markdown(decided, suite.suite))
    write_json(folder / "claims.json", claims_content(decided, suite.suite))
    write_json(folder / "lineage.json", lineage(suite))
    _write(folder / "index.html", write_page(evidence, tables, decided, [picture for picture, _ in pictures]))
    return folder / "report.md"


def gather_evidence(results: Results, parameters: ReportParameters, evaluated: EvaluateParameters) -> Evidence:
    """What tables and verdicts rest on besides the scores."""
    suite = results.suite
    models = {encoder: entry.model for encoder, entry in parameters.published.items()}
    cases = find_cases(results, suite.encoders[0], resamples=evaluated.resamples, seed=evaluated.seed)
    made_of, clusters = describe_spaces(suite, models), cluster_table(suite)
    controls = find_controls(results, methods_of(suite), control_pairs(suite))
    return Evidence(results, made_of, cases, load_benchmark(), clusters, load_sweeps(suite), controls)


def write_tables(tables: list[Table], folder: Path) -> None:
    """Each table as Markdown, CSV and LaTeX."""
    for table in tables:
        for suffix, write in (("md", markdown), ("csv", tidy_csv), ("tex", latex)):
            _write(folder / f"{table.name}.{suffix}", write(table))


def control_sections(tables: list[Table]) -> str:
    """The section of report.md with every difference to a control that is not of a correlation of cosines.

    Those stand beside their scores, at the top of the report.
    """
    parts, blanks = ["## Differences to controls\n"], Blanks()
    for table in tables:
        for panel in table.panels:
            if panel.title.startswith(TITLE) and table.name != "similarity":
                parts += [f"### {table.title}: {panel.title.removeprefix(f'{TITLE}: ')}\n"]
                parts += [markdown_rows(panel, blanks), *(f"{sentence}\n" for sentence in (*panel.shows, *panel.notes))]
    if len(parts) == 1:
        parts.append("No row of any other task has a control that was scored beside it.\n")
    return "\n".join([*parts, blanks.legend()])


def opening(suite: Suite, decided: Sequence[Decided], made_of: Mapping[str, str]) -> str:
    """The head of report.md: what was decided, where everything stands, and what each space is made of."""
    rows = [[space, made_of.get(space, "")] for space in suite.spaces]
    return "\n".join(
        [
            f"# Suite `{suite.suite}`\n",
            f"Of {len(decided)} claims of the five papers, {count_verdicts(decided)}: [claims](claims.md). "
            "First come the scores of cosine with their differences and intervals, then "
            "[all other tables, and what each shows](#all-tables-and-what-each-panel-shows). "
            "[index.html](index.html) is all of it as one page, to be opened from disk.\n",
            "<details><summary>What each space is made of</summary>\n",
            markdown_table(["space", "made of"], rows),
            "</details>\n",
        ]
    )


def table_links(tables: list[Table]) -> str:
    """The section of report.md that leads to the tables and says what they show, from their numbers."""
    lines = []
    for table in tables:
        links = f"[CSV](tables/{table.name}.csv), [LaTeX](tables/{table.name}.tex)"
        lines.append(f"### [{table.title}](tables/{table.name}.md) ({links})\n")
        lines += [f"- *{panel.title}.* {' '.join(panel.shows)}" for panel in table.panels if panel.shows]
        lines.append("")
    return "\n".join(["## All tables, and what each panel shows\n", *lines])


def write_pictures(pictures: list[Drawn], folder: Path) -> None:
    """Each figure as SVG and PNG."""
    for picture, figure in pictures:
        write_bytes_atomically(folder / f"{picture.name}.svg", picture.svg)
        write_bytes_atomically(folder / f"{picture.name}.png", figure_bytes(figure, "png"))


def lineage(suite: Suite) -> dict[str, Any]:
    """What may differ between machines: hashes of what was read, certificates, versions, processor."""
    spaces = {}
    for space in suite.spaces:
        for corpus in suite.corpora:
            path = space_path(suite.suite, space, corpus)
            record = read_record(path, kind="vectors")
            own = {key: record[key] for key in ("inputs", "notes", "parameters")}
            spaces[f"{space}/{corpus}"] = own | {"sha256": sha256_of(path)}
    corpora = {
        corpus: read_record(corpus_path(suite.suite, corpus, "sentences"), kind="sentences")["notes"]
        for corpus in suite.corpora
    }
    return {"corpora": corpora, "environment": describe_environment(), "spaces": spaces, "suite": suite.suite}


def _write(path: Path, text: str) -> None:
    write_bytes_atomically(path, text.rstrip("\n").encode() + b"\n")
