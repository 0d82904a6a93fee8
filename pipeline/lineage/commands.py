"""The commands that walk numbers home; each imports what it needs when it is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pipeline.errors import ParameterError

PANEL = "Lineage"
app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)


def slug(name: str) -> str:
    """A suite's name, refused unless it is one: names become paths."""
    from pipeline.params import check_slug

    try:
        return check_slug(name)
    except ValueError as error:
        raise ParameterError("a name cannot be used", where="the command line", got=str(error)) from None


SuiteOption = Annotated[str, typer.Option("--suite", "-s", callback=slug, help="Which suite.")]
RevisionOption = Annotated[
    str | None, typer.Option("--rev", metavar="COMMIT", help="A commit, branch or tag instead of this checkout.")
]
JsonOption = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write everything as JSON, too.")]


@app.command(rich_help_panel=PANEL)
def audit(
    suite: SuiteOption = "quick",
    rev: RevisionOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 also where something is absent here.")] = False,
    json_file: JsonOption = None,
) -> None:
    """Verify every reported number: table, scores, artifacts, parameters, code in git. Exit 1 if one is wrong."""
    from pipeline.lineage.audit import audit as run
    from pipeline.lineage.audit_text import audit_content, audit_text

    found = run(Path.cwd(), suite, revision=rev)
    if json_file is not None:
        write_text(json_file, json.dumps(audit_content(found), indent=1))
    typer.echo(audit_text(found))
    if found.failed(strict=strict):
        raise typer.Exit(1)


def write_text(path: Path, text: str) -> None:
    """Write a file that the user named, or raise ArtifactError."""
    from pipeline.artifacts import write_bytes_atomically

    write_bytes_atomically(path, text.rstrip("\n").encode() + b"\n")
