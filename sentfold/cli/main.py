"""The entry point of the command `sentfold`: find the command's file, import it, run it.

A command is a module of this package that defines a function `command`, annotated for typer. The file's name is the
command's name, with `-` for `_`; the first line of its docstring is its line in `sentfold --help`. The commands of a
checkout are in checkout.py.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import typer

from sentfold.cli.checkout import CHECKOUT_COMMANDS, run_in_checkout
from sentfold.decision.progress import progress_bars
from sentfold.errors import SentfoldError
from sentfold.libraries import prepare_libraries
from sentfold.suggestions import message_of, nearest_names, plain_error, prepare_streams

HELP_OPTIONS = ("--help", "-h", "help")
FIRST = ("decide", "compare", "run", "show", "claims")  # what a user does first


def main() -> None:
    """Run the command that the command line names. An error of sentfold is printed without a traceback; exit code 2."""
    words = sys.argv[1:]
    try:
        prepare_streams()
        prepare_libraries()
        run(words)
    except BrokenPipeError:  # a reader such as `head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (SentfoldError, MemoryError, ImportError, OSError, RuntimeError) as error:
        if (plain := plain_error(error)) is None:
            raise
        print(message_of(plain), file=sys.stderr)
        sys.exit(2)


def run(words: list[str]) -> None:
    """Run a command line, given without the program's name. Raises SentfoldError, or SystemExit at its end."""
    if not words or words[0] in HELP_OPTIONS:
        print(describe_commands())
    elif words[0] == "--version":
        print(f"sentfold {version('sentfold')}")
    elif words[0] in CHECKOUT_COMMANDS:
        run_in_checkout(words, Path.cwd())
    elif words[0] in (own := own_commands()):
        # A folder's configuration can name models of the hub, which transformers would ask for, with the user's token.
        if not _names_the_hub(words):
            os.environ["HF_HUB_OFFLINE"] = "1"
        _run_own(words, own[words[0]])
    else:
        sys.exit(_unknown(words[0], [*own, *CHECKOUT_COMMANDS]))


def _names_the_hub(words: list[str]) -> bool:
    """Whether the user names a model of the hub with its commit. The command `encode` alone takes one."""
    names = [word.removeprefix("--encoder=") for word in words]
    commits = [name for name in names if re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)]
    return words[0] == "encode" and any(not Path(name).exists() for name in commits)


def own_commands() -> dict[str, str]:
    """The first line of help of each command in this package, by the command's name. No command is imported."""
    commands = {}
    for path in sorted(Path(__file__).parent.glob("[!.]*.py")):  # macOS leaves ._NAME.py, and Emacs .#NAME.py
        tree = ast.parse(path.read_bytes())
        if any(isinstance(node, ast.FunctionDef) and node.name == "command" for node in tree.body):
            commands[path.stem.replace("_", "-")] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return commands


def describe_commands() -> str:
    """The text of `sentfold --help`."""
    own = own_commands()
    checkout = {name: text for name, (_, text) in CHECKOUT_COMMANDS.items()}
    known = own | checkout
    width = max(map(len, known)) + 2

    def lines(names: Iterable[str]) -> list[str]:
        return [f"  {name:<{width}}{known[name]}" for name in names]

    return "\n".join([
        "usage: sentfold COMMAND [OPTIONS]     options of a command: sentfold COMMAND --help",
        "to begin: sentfold decide pairs.csv --encoder all-MiniLM-L6-v2     pairs.csv: two texts and a score a row",
        "version:  sentfold --version",
        "",
        "Start with:",
        *lines(FIRST),
        "",
        "More for your own data:",
        *lines(name for name in own if name not in FIRST),
        "",
        "More in a checkout, a folder with dvc.yaml and pipeline/ (run, show and claims need a checkout too):",
        *lines(name for name in checkout if name not in FIRST),
        "",
        "The stages of dvc.yaml: `python -m pipeline --help` in a checkout",
    ])  # fmt: skip


def _run_own(words: list[str], text: str) -> None:
    module = importlib.import_module(f"sentfold.cli.{words[0].replace('-', '_')}")
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(help=text)(module.command)
    with progress_bars():
        app(words[1:], prog_name=f"sentfold {words[0]}")


def _unknown(word: str, known: list[str]) -> str:
    near = nearest_names(word, known)
    hint = f"did you mean `sentfold {near[0]}`?" if near else "`sentfold --help` lists the commands"
    return f"error: there is no command '{word}'\n  to do     {hint}"


if __name__ == "__main__":
    main()
