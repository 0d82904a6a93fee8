"""What `sentfold show` prints of a report: the table, texts that were cut or not known, and where the report is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.summary import summary_text

TABLE = "space  first\nminilm 50.0\n"


def report(root: Path, lineage: str) -> None:
    folder = root / "reports/mine"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.txt").write_text(TABLE)
    (folder / "lineage.json").write_text(lineage)


def spaces(**cut: int) -> str:
    """As the report of a suite is written: notes of an encoder on a corpus; other spaces have notes of other kinds."""
    notes = {f"minilm/{corpus}": {"notes": {"truncated": count, "batches": 3}} for corpus, count in cut.items()}
    return json.dumps({"spaces": {**notes, "minilm-pca/one": {"notes": {"rank": 4}}, "wl-x/one": {}}})


def test_texts_that_a_model_cut_are_counted_below_the_table(tmp_path: Path) -> None:
    report(tmp_path, spaces(one=240, two=0, three=1))
    printed = summary_text(tmp_path, "mine")
    assert printed.startswith(TABLE) and printed.splitlines()[-3:] == [
        "minilm/one: texts cut at the model's limit: 240",
        "minilm/three: texts cut at the model's limit: 1",
        "report: reports/mine/report.md",
    ]
    words = {"all words unknown": 2, "empty": 0, "unknown words (tokens)": 31}
    report(tmp_path, json.dumps({"spaces": {"wl-sif/one": {"notes": {"fallbacks": words}}}}))
    assert "wl-sif/one: all words unknown: 2, unknown words (tokens): 31\n" in summary_text(tmp_path, "mine")
    report(tmp_path, spaces(**{f"c{number}": 1 for number in range(20)}))
    assert "\n12 more such lines" in summary_text(tmp_path, "mine")


@pytest.mark.parametrize(
    "lineage",
    [
        "",
        "{",
        "[1]",
        "{}",
        '{"spaces": [1]}',
        '{"spaces": {"a": 1}}',
        '{"spaces": {"a": {"notes": [1]}}}',
        "[" * 100_000,
    ],
)
def test_an_unsound_lineage_leaves_the_table(tmp_path: Path, lineage: str) -> None:
    report(tmp_path, lineage)
    assert summary_text(tmp_path, "mine") == f"{TABLE}\nreport: reports/mine/report.md"


def test_control_characters_of_a_report_are_escaped(tmp_path: Path) -> None:
    report(tmp_path, json.dumps({"spaces": {"a\x1b[2J": {"notes": {"truncated": 1}}}}))
    assert "\x1b" not in summary_text(tmp_path, "mine") and "a\\x1b[2J: texts cut" in summary_text(tmp_path, "mine")
