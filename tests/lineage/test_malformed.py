"""Files that are not as they should be are an error that names them, told from a wrong number by its exit code."""

from __future__ import annotations

import re

import pytest

from tests.lineage.small import Small

# What is put in place of what, in which file; and what the error must name.
EDITS = {
    "a list of stages in dvc.lock": ("dvc.lock", r"(?s)stages:.*", "stages: [1]\n", "dvc.lock: stages"),
    "an entry that is a number": ("dvc.lock", r"(?s)  fold@mini:\n.*", "  fold@mini: 3\n", "dvc.lock: stage fold@mini"),
    "a list of parameters": (
        "dvc.lock", r"(  fold@mini:\n(?:.|\n)*?    params:\n)(?:      .*\n)+", r"\1    - 1\n", "stage fold@mini",
    ),
    "a file without parameters": (
        "dvc.lock", r"(  fold@mini:\n(?:.|\n)*?    params:\n      params.yaml:)\n(?:        .*\n)+",
        "\\1 null\n", "stage fold@mini",
    ),
    "a stage without a command": ("dvc.yaml", r"    cmd: python stage.py report.*\n", "", "dvc.yaml: stage report"),
    "a command with an open quote": ("dvc.yaml", r"cmd: python stage.py report.*", "cmd: python -m pipeline 'x",
                                     "No closing quotation"),
    "a command that is empty": ("dvc.yaml", r"cmd: python stage.py report.*", "cmd: ''", "an empty command"),
    "a mapping as a parameter": (
        "dvc.yaml", r"params: \[evaluate\]", "params: [{params.yaml: [{}]}]", "stage evaluate",
    ),
    "a mapping as a key": ("plan.yaml", r"file: plan.yaml", "file: {a: 1}", "a key"),
    "a list as a space": (
        "reports/quick/tables/cells.json", r'\["mini", "first"', '[["mini"], "first"', "something else",
    ),
    "a list as a row": ("reports/quick/tables/cells.json", r'\[2, "mini"', '[2, ["mini"]', "something else"),
    "a list as a printed number": (
        "reports/quick/tables/cells.json", r'\{"first": "[0-9.]+"', '{"first": ["20.50"]', "something else",
    ),
    "a stage that is a word": ("dvc.yaml", r"(?s)  report:\n.*", "  report: soon\n", "dvc.yaml: stage report"),
    "a list of stages in dvc.yaml": ("dvc.yaml", r"(?s)stages:.*", "stages: [report]\n", "dvc.yaml: stages"),
    "a number as variables": ("dvc.yaml", r"vars: .*", "vars: 5", "dvc.yaml: vars"),
    "variables of a name with a NUL": ("dvc.yaml", r"vars: .*", 'vars: ["a\\\\0b"]', "dvc.yaml: vars"),
    "no mapping of stages": ("plan.yaml", r"fold: .*", "fold: 3", "foreach of stage fold"),
    "an index of another schema": ("reports/quick/tables/cells.json", '"schema": 1', '"schema": 7', "schema 7"),
    "an index that is cut off": ("reports/quick/tables/cells.json", r"(?s).{9}\Z", "", "cells.json"),
    "an index of brackets": ("reports/quick/tables/cells.json", r"(?s).*", "[" * 100_000, "cells.json"),
    "a cell too many": ("reports/quick/tables/sts.csv", r"mini,20.50", "mini,20.50,1.00", "row 2 has 4 cells"),
    "a cell too few": ("reports/quick/tables/sts.csv", r"mini,20.50,", "mini,", "row 2 has 2 cells"),
    "an empty line": ("reports/quick/tables/sts.csv", r"\Z", "\n", "row 4 has 0 cells"),
    "two columns of one name": ("reports/quick/tables/sts.csv", "second", "first", "two columns have one name"),
}  # fmt: skip


@pytest.mark.parametrize("what", EDITS)
def test_a_malformed_file_is_an_error_that_names_it(small: Small, what: str) -> None:
    file, old, new, named = EDITS[what]
    text, number = re.subn(old, new, (small.root / file).read_text(), count=1)
    assert number == 1
    (small.root / file).write_text(text)
    said = small.refusal("audit")
    assert said.startswith("error: ")
    assert named in said
    assert "to do" in said


def test_a_commit_with_a_lost_file_is_an_error_that_names_it(small: Small) -> None:
    lost = small.run("git", "rev-parse", "HEAD:code/rules.py").stdout.strip()
    (small.root / ".git/objects" / lost[:2] / lost[2:]).unlink()
    done = small.run("pipeline", "audit", "--rev", "HEAD", check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: git lacks a file of a commit")
    assert "code/rules.py" in done.stderr
    assert lost in done.stderr
