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
    report(tmp_path, spaces(one=1240, two=0, three=1))
    printed = summary_text(tmp_path, "mine")
    assert printed.startswith(TABLE) and printed.splitlines()[-2:] == [
        "texts cut at the model's limit: 1,240 in minilm/one; also in 1 others (lineage.json)",
        "report: reports/mine/report.md",
    ]
    words = {"all words unknown": 2, "empty": 0, "unknown words (tokens)": 31}
    report(tmp_path, json.dumps({"spaces": {"wl-sif/one": {"notes": {"fallbacks": words}}}}))
    printed = summary_text(tmp_path, "mine")
    assert "\nall words unknown: 2 in wl-sif/one (lineage.json)\nunknown words (tokens): 31 in wl-sif/one" in printed


def test_a_corpus_whose_scores_fall_as_texts_are_more_alike_is_named_once(tmp_path: Path) -> None:
    """Of distances, a fold that took the cosines apart was "+46.50▲"."""
    report(tmp_path, spaces(one=0))
    (tmp_path / "reports/mine/scores").mkdir()
    for name, bounds in (("a", (-60, -50)), ("b", (-70, -1)), ("c", (-9, 3)), ("d", (None, None)), ("d-pca", (-9, -2))):
        score = {"low": bounds[0], "high": bounds[1], "value": -5}
        corpora = {"far": {"scores": {"spearman.all.cosine": score}}, "other": {"scores": {}}, "near": {}}
        if name == "d-pca":  # a changed space can turn cosines round by itself
            corpora = {"other": corpora["far"]}
        (tmp_path / f"reports/mine/scores/{name}.json").write_text(json.dumps({"corpora": corpora}))
    (line,) = (line for line in summary_text(tmp_path, "mine").splitlines() if "falls" in line)
    assert line.startswith("far: cosine falls as the scores rise, by a. If these are distances")


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
    assert "\x1b" not in summary_text(tmp_path, "mine") and "in a\\x1b[2J" in summary_text(tmp_path, "mine")
