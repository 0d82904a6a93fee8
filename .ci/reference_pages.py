"""Write docs/reference-cli.md and docs/reference-api.md from the code.

    python .ci/reference_pages.py [--check]

The reference of the command line is what `--help` prints. The reference of the library is the source of each public
class and function without its body: the signature and the docstring. With --check nothing is written: exits 1 if a
page is not current.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import typer

import sentfold
from sentfold.cli.checkout import CHECKOUT_COMMANDS
from sentfold.cli.main import own_commands, run
from sentfold.encoders.base.protocol import find_method

ROOT = Path(__file__).parents[1]
NOTE = "`python .ci/reference_pages.py` writes this page from the code; a test fails if the page is not current."
# Package of sentfold -> the heading of its exports, and the classes that these inherit from, take or return.
PACKAGES = {
    "decision": (
        "Decisions on your data",
        (
            "sentfold.decision.compress.Compression",
            "sentfold.decision.threshold.Threshold",
            "sentfold.decision.spaces.Space",
        ),
    ),
    "manifold": ("Changes of vectors", ("sentfold.manifold.estimators.linear.LinearEstimator",)),
    "encoders": (
        "Encoders",
        (
            "sentfold.encoders.base.estimator.WordEstimator",
            "sentfold.encoders.base.word_encoder.WordSettings",
            "sentfold.encoders.model_folder.ModelSource",
        ),
    ),
}


def main() -> int:
    stale = []
    for page, make in (("docs/reference-cli.md", command_line), ("docs/reference-api.md", library)):
        text, path = "\n".join(make()), ROOT / page
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(page)
        if "--check" not in sys.argv[1:]:
            path.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv[1:]:
        print(f"{', '.join(stale)}: not current: run python .ci/reference_pages.py", file=sys.stderr)
    return int(bool(stale) and "--check" in sys.argv[1:])


# --- the command line -----------------------------------------------------------------------------------------------


def command_line() -> Iterator[str]:
    """The lines of the page: each command's `--help`."""
    sys.path.insert(0, str(ROOT))  # flows and pipeline are not installed
    from flows.__main__ import app as flows_app
    from pipeline.__main__ import app as pipeline_app

    yield from ("# Reference: the command line", "", NOTE, "", *block("text", help_of(run, [])))
    yield from ("## Your own data", "")
    for name in own_commands():
        yield from (f"### sentfold {name}", "", *block("text", help_of(run, [name, "--help"])))
    yield from ("## A checkout", "", "These commands need a clone of the repository.", "")
    apps = {"flows": flows_app, "pipeline": pipeline_app}
    for name, (package, _) in CHECKOUT_COMMANDS.items():
        shown = help_of(apps[package], [name, "--help"], prog_name="sentfold")
        yield from (f"### sentfold {name}", "", *block("text", shown))
    yield from ("## Stages", "", "`dvc.yaml` runs these. By hand they write the same files, unrecorded.", "")
    stages: Any = typer.main.get_command(pipeline_app)  # of several commands, so a group, which has `commands`
    for name in sorted(stages.commands.keys() - CHECKOUT_COMMANDS):
        shown = help_of(pipeline_app, [name, "--help"], prog_name="python -m pipeline")
        yield from (f"### {name}", "", *block("text", shown))


def help_of(app: Callable[..., Any], words: list[str], **settings: str) -> str:
    """What a command line prints in a terminal of 80 columns."""
    os.environ["COLUMNS"] = "80"
    with redirect_stdout(StringIO()) as printed, suppress(SystemExit):
        app(words, **settings)
    return printed.getvalue()


# --- the library ----------------------------------------------------------------------------------------------------


def library() -> Iterator[str]:
    """The lines of the page: each export of sentfold, and the classes that exports inherit from, take or return."""
    yield from ("# Reference: the library", "", NOTE, "")
    yield "Names with a line `from sentfold import` are public. Others describe classes that public names use as"
    yield from ("a base, take or return. [methods.md](methods.md) has the equations.", "")
    for package, (title, further) in PACKAGES.items():
        yield from (f"## {title}", "")
        for name, module in sentfold.EXPORTS.items():
            if module.split(".")[1] == package:
                yield from describe(getattr(sentfold, name), f"`from sentfold import {name}`; defined in")
        for path in further:
            module, _, name = path.rpartition(".")
            yield from describe(getattr(import_module(module), name), "Defined in")


def describe(thing: Any, where: str) -> Iterator[str]:
    """The section of one class or function."""
    path = f"{thing.__module__.replace('.', '/')}.py"
    yield from (f"### {thing.__name__}", "", f"{where} [{path}](../{path})", "", *block("python", outline(thing)))
    if isinstance(method := getattr(thing, "method", None), str):
        yield from (
            "Its settings, which the constructor takes by name:",
            "",
            *block("python", outline(find_method(method).Settings)),
        )


def outline(thing: Any) -> str:
    """The source of a class or function without bodies: signatures, docstrings, and the fields of a class."""
    source = re.sub(r"  # type: ignore.*", "", inspect.getsource(thing))
    node, lines = ast.parse(source).body[0], source.splitlines()
    if isinstance(node, ast.FunctionDef):
        return head(node, lines)
    assert isinstance(node, ast.ClassDef)
    fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
    methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
    shown = [part for part in methods if part.name == "__init__" or not part.name.startswith("_")]
    listed = "\n".join("\n".join(lines[part.lineno - 1 : part.end_lineno]) for part in fields)
    return "\n\n".join(filter(None, [head(node, lines), listed, *(head(part, lines) for part in shown)]))


def head(node: ast.FunctionDef | ast.ClassDef, lines: list[str]) -> str:
    """The decorators, the signature and the docstring."""
    start = min(part.lineno for part in (node, *node.decorator_list)) - 1
    if ast.get_docstring(node) is None:
        return "\n".join(lines[start : node.body[0].lineno - 1]) + " ..."
    return "\n".join(lines[start : node.body[0].end_lineno])


def block(language: str, text: str) -> tuple[str, ...]:
    """A block of code in Markdown, and an empty line."""
    return (f"```{language}", text.rstrip(), "```", "")


if __name__ == "__main__":
    sys.exit(main())
