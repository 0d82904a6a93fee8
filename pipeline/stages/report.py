"""Stage `report`: the tables, figures and summary of one suite."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from pipeline.base.artifacts import space_path
from pipeline.base.suite import Suite
from pipeline.papers.ledger import claims_content, claims_markdown
from pipeline.papers.verdicts import decide_all
from pipeline.report.cells import index_table, index_text, long_table, wide_table
from pipeline.report.contents import build_tables
from pipeline.report.evidence import Evidence
from pipeline.report.gallery import draw_gallery
from pipeline.report.inputs import gather_evidence
from pipeline.report.page import Picture, write_page
from pipeline.report.space_map import map_spaces
from pipeline.report.text_report import report_text, summary_text
from sentfold.files import sha256_of, write_bytes_atomically, write_json
from sentfold.numeric_profile import profile_name
from sentfold.report.render import latex, markdown, tidy_csv
from sentfold.report.table import Table

LIBRARIES = (
    "numpy", "scipy", "scikit-learn", "polars", "pyarrow", "torch", "transformers",
    "sentence-transformers", "tokenizers", "safetensors", "gensim", "datasets", "dvc", "matplotlib",
)  # fmt: skip


def report(suite: Suite) -> Path:
    """Write every table and figure of a suite under reports/<suite>/. Returns the report's path."""
    evidence = gather_evidence(suite)
    folder = Path("reports") / suite.suite
    tables, decided = build_tables(evidence), decide_all(evidence)
    drawn = draw_gallery(evidence)
    write_tables(evidence, tables, folder / "tables")
    write_pictures(drawn, folder / "figures")
    _write(folder / "summary.txt", summary_text(evidence, tables))
    _write(folder / "report.md", report_text(evidence, tables, decided))
    _write(folder / "claims.md", claims_markdown(decided, suite.suite))
    write_json(folder / "claims.json", claims_content(decided, suite.suite))
    write_json(folder / "lineage.json", lineage(evidence))
    _write(folder / "index.html", write_page(evidence, tables, decided, drawn, map_spaces(evidence)))
    return folder / "report.md"


def write_tables(evidence: Evidence, tables: Sequence[Table], folder: Path) -> None:
    """Write each table as Markdown, CSV and LaTeX; scores.csv and sts.csv; and cells.json, the index of their cells."""
    index = {}
    for table in tables:
        for suffix, render in (("md", markdown), ("csv", tidy_csv), ("tex", latex)):
            _write(folder / f"{table.name}.{suffix}", render(table))
        index[f"{table.name}.csv"] = index_table(table)
    for name, (text, cells) in (("scores.csv", long_table(evidence)), ("sts.csv", wide_table(evidence))):
        _write(folder / name, text)
        index[name] = cells
    _write(folder / "cells.json", index_text(evidence.results.suite.suite, index))


def write_pictures(drawn: Sequence[Picture], folder: Path) -> None:
    """Write each figure as SVG, and a list of all figures, which is written even if no figure applies."""
    lines = [f"- [{picture.title}]({picture.name}.svg). {picture.caption}" for picture in drawn]
    _write(folder / "index.md", "\n".join(["# Figures\n", *(lines or ["No figure applies to this suite."])]))
    for picture in drawn:
        write_bytes_atomically(folder / f"{picture.name}.svg", picture.svg)


def lineage(evidence: Evidence) -> dict[str, Any]:
    """The facts that may differ between machines: hashes of inputs, certificates, versions, processor."""
    suite, spaces = evidence.results.suite.suite, {}
    for (space, corpus), record in evidence.records.items():
        own = {key: record[key] for key in ("inputs", "notes", "parameters")}
        spaces[f"{space}/{corpus}"] = own | {"sha256": sha256_of(space_path(suite, space, corpus))}
    return {"corpora": evidence.corpora, "environment": describe_environment(), "spaces": spaces, "suite": suite}


def describe_environment() -> dict[str, Any]:
    """The facts that decide the bytes of a report: numeric profile, BLAS kernels, library versions, machine."""
    import scipy.linalg  # noqa: F401  (loads the BLAS that threadpool_info then reports)

    kernels = (pool for pool in threadpool_info() if pool.get("user_api") == "blas")
    names = {f"{p.get('internal_api')} {p.get('version')} {p.get('architecture', '')}".strip() for p in kernels}
    return {
        "blas": sorted(names),
        "libraries": {name: _version(name) for name in LIBRARIES},
        "machine": platform.machine(),
        "profile": profile_name(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "system": platform.system(),
    }


def _version(name: str) -> str:
    """The public version. Builds with a local label (2.13.0+cpu) compute the same bytes under the numeric profile."""
    try:
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        return "not installed"


def _write(path: Path, text: str) -> None:
    """Write a text. The Markdown of a report has no element of HTML: a name or a reason that is one stays text."""
    text = text.replace("<", "&lt;") if path.suffix == ".md" else text
    write_bytes_atomically(path, text.rstrip("\n").encode() + b"\n")
