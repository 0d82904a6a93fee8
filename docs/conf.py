"""The settings of Sphinx for the site: `make docs` writes it to site/. The folder of its sources is the repository.

The pages are plain Markdown, which a forge shows too. README.md is the front page, and the index in docs/README.md is
the navigation: its sections and their links, and no other list of pages.
"""

from __future__ import annotations

import re
from os.path import normpath
from pathlib import Path
from typing import Any

project = "sentfold"
html_title = "sentfold"
html_theme = "furo"
extensions = ["myst_parser"]
myst_heading_anchors = 4  # with the names that a forge gives them
root_doc = "README"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/findings/*.md",
    "flows/examples/*.md",
    "reports/*/*.md",
    "reports/*/tables/*.md",
]
suppress_warnings = ["toc.not_included"]  # of pages that the index does not list, such as reports

SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n)*)", re.MULTILINE)
LINK = re.compile(r"^- \[.+?\]\((.+?)\.md\)", re.MULTILINE)
FILES_IN_HEADING = re.compile(r"^(#+ .+) (\(\[CSV\].+\))$", re.MULTILINE)


def adapt(app: Any, page: str, source: list[str]) -> None:
    """Change the text of a page that Sphinx is about to read.

    The front page gets the sections of docs/README.md, of which Sphinx makes the navigation. In reports, links to
    files leave the headings, where Sphinx fails on them; and index.html, which not every clone has, is no link.
    """
    if page == root_doc:
        for title, lines in SECTION.findall(Path(app.srcdir, "docs/README.md").read_text(encoding="utf-8")):
            paths = [normpath(f"docs/{link}") for link in LINK.findall(lines)]
            pages = "\n".join(path for path in paths if path != root_doc)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{pages}\n```\n"
    if page.startswith("reports/"):
        source[0] = FILES_IN_HEADING.sub(r"\1\n\n\2", source[0]).replace("[index.html](index.html)", "`index.html`")


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", adapt)
