"""The commands that follow reported numbers to their sources; each imports what it needs when it is called."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from sentfold.cli.checkout import FOLDER_VARIABLE
from sentfold.errors import ParameterError, RunError, SentfoldError, escape_controls
from sentfold.locks import runs_elsewhere

if TYPE_CHECKING:
    from pipeline.lineage.recompute import Remade
    from pipeline.lineage.scope import Scope

PANEL = "Lineage"
app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)


def slug(name: str) -> str:
    """A suite's name, refused unless it is one: names become paths."""
    from sentfold.settings import check_slug

    try:
        return check_slug(name)
    except ValueError as error:
        raise ParameterError("a name cannot be used", where="the command line", got=str(error)) from None


def from_users_folder(path: Path | None) -> Path | None:
    """A path of the command line, seen from the root; the path begins at the folder that the user ran `sentfold` in."""
    return None if path is None else Path(os.environ.get(FOLDER_VARIABLE, ""), path)


def in_users_folder(table: str) -> str:
    """A table as the user names it: by its path from the folder that `sentfold` was run in, else from the root."""
    own = os.path.normpath(Path(os.environ.get(FOLDER_VARIABLE, ""), table))
    return own if Path(own).is_file() else table


SuiteOption = Annotated[str, typer.Option("--suite", "-s", callback=slug, help="Which suite.")]
RevisionOption = Annotated[
    str | None, typer.Option("--rev", metavar="COMMIT", help="A commit, branch or tag instead of this checkout.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print everything as JSON instead.")]


@app.command(rich_help_panel=PANEL)
def audit(
    suite: SuiteOption = "quick",
    rev: RevisionOption = None,
    recompute: Annotated[
        str | None,
        typer.Option(
            help="Run again and compare every byte: report (what writes the tables and pages), sample (a few stages), "
            "or all. This runs the commit's code."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Which stages a sample is made of. Without it: others each time.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 also if a number is not verified for another reason.")
    ] = False,
    signed: Annotated[
        bool, typer.Option("--signed", help="Exit 1 unless git verifies a signature of the commit or of a tag of it.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Verify every reported number: table, scores, artifacts, parameters, code in git. Exit 1 if anything is wrong."""
    from pipeline.lineage.audit import audit as run
    from pipeline.lineage.recompute import Which
    from pipeline.lineage.recompute import recompute as rerun
    from pipeline.lineage.text import audit_content, audit_text

    if recompute not in (None, *get_args(Which)):
        expected = ", ".join(get_args(Which))
        raise ParameterError("bad value", where="--recompute", expected=expected, got=str(recompute))

    def again(scope: Scope) -> list[Remade]:
        def tell(line: str) -> None:
            typer.echo(escape_controls(f"run again: {line}"), err=True)

        drawn = secrets.randbelow(1_000_000) if seed is None else seed
        if recompute == "sample":
            tell(f"a sample by --seed {drawn}")
        return rerun(scope, which=cast("Which", recompute), seed=drawn, tell=tell)

    in_progress = "a run changes this checkout now, so what looks wrong may be unfinished"
    try:
        found = run(Path.cwd(), suite, revision=rev, again=None if recompute is None else again, signed=signed)
    except SentfoldError as error:
        if rev is None and runs_elsewhere(Path.cwd()):
            error.state = f"{in_progress}: audit again when the run has ended"
        raise
    if rev is None and found.failed(strict=strict) and runs_elsewhere(Path.cwd()):
        raise RunError(
            in_progress, where=str(Path.cwd()), state="nothing was changed",
            got="git verifies no signature of the commit" if signed and not found.signature else "",
            remedy="audit again when the run has ended; or audit a commit: --rev HEAD",
        )  # fmt: skip
    typer.echo(json.dumps(audit_content(found), indent=1) if as_json else audit_text(found))
    if found.failed(strict=strict) or (signed and not found.signature):
        raise typer.Exit(1)


@app.command(rich_help_panel=PANEL)
def trace(
    table: Annotated[str, typer.Argument(help="A table of a report, e.g. reports/quick/tables/sts.csv.")],
    row: Annotated[str, typer.Option("--row", help="The row: a space.")],
    column: Annotated[str, typer.Option("--column", help="The column: a corpus, a protocol, or 'corpus protocol'.")],
    field: Annotated[
        str, typer.Option(help="value, low, high, difference, difference_low, ..., control_difference, ...")
    ] = "value",
    line: Annotated[int | None, typer.Option(help="Line of the file, where several cells have one name.")] = None,
    as_json: JsonOption = False,
    svg: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", callback=from_users_folder, help="Draw the tree as a picture in this file instead."
        ),
    ] = None,
) -> None:
    """Follow one printed number to its sources: scores, spaces, corpus, model, parameters, code, each with its hash."""
    from pipeline.lineage.text import trace_text
    from pipeline.lineage.trace import trace as run
    from pipeline.lineage.trace_picture import draw_trace, refuse_other_file
    from sentfold.cli.inputs import refuse_target
    from sentfold.decision.use import behind_links, replace_in_mode

    refuse_target(svg, in_users_folder(table))
    if svg is not None:
        refuse_other_file(svg)
    found = run(Path.cwd(), in_users_folder(table), row=row, column=column, field=field, line=line)
    if svg is not None:
        picture = draw_trace(found).encode()
        with replace_in_mode(behind_links(svg)) as temporary:
            temporary.write_bytes(picture)
        typer.echo(f"{svg}: what {found.number.text} rests on, {len(found.nodes)} things")
    else:
        typer.echo(json.dumps(asdict(found), indent=1) if as_json else trace_text(found))


@app.command(rich_help_panel=PANEL)
def diff(
    old: Annotated[str, typer.Argument(metavar="REV1", help="A commit, branch or tag.")],
    new: Annotated[str, typer.Argument(metavar="REV2", help="Another.")] = "HEAD",
    suite: SuiteOption = "quick",
) -> None:
    """Say which reported numbers two commits disagree about, by how much, and what changed above each."""
    from pipeline.lineage.diff import diff as run
    from pipeline.lineage.diff import diff_text

    typer.echo(diff_text(run(Path.cwd(), old, new, suite), Path.cwd()))


@app.command(rich_help_panel=PANEL)
def crate(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", callback=from_users_folder, help="The folder to write; it must be new or empty."
        ),
    ],
    suite: SuiteOption = "quick",
) -> None:
    """Write the report, its definitions and the runs behind it as a Workflow Run RO-Crate, for an archive.

    Nothing is written where `sentfold audit` finds anything wrong.
    """
    from pipeline.lineage.audit import audit as verify
    from pipeline.lineage.crate import export_crate
    from pipeline.lineage.hashes import LineageError

    found = verify(Path.cwd(), suite)
    if found.failed(strict=False):
        raise LineageError(
            "the report is not what the recorded runs wrote", where=f"reports/{suite}", expected="nothing wrong",
            got=f"{found.count('wrong'):,} wrong numbers; {found.faults_apart:,} other files and records are wrong",
            remedy=f"sentfold audit --suite {suite} names each",
        )  # fmt: skip
    typer.echo(f"{folder}: an RO-Crate of {export_crate(Path.cwd(), suite, folder)} runs of stages")
