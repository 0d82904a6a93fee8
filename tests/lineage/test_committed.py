"""The reports in git: every number that a table prints is that of its score file."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.lineage.numbers import Scores, read_numbers, tables_folder
from pipeline.lineage.trees import head_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("suite", "at_least"), [("quick", 3000), ("paper-mirror", 20_000)])
def test_every_committed_cell_is_the_number_of_its_score_file(suite: str, at_least: int) -> None:
    # Of the last commit, for a report in the making may be ahead of its scores.
    tree = head_of(ROOT)
    if tree is None:
        pytest.skip("no git history here")
    if tree.read(f"{tables_folder(suite)}/cells.json") is None:
        pytest.skip("the committed report is older than the index of cells")
    scores = Scores(tree, suite)
    resting = [number for number in read_numbers(tree, suite) if number.origin in {"score", "difference"}]
    assert len(resting) >= at_least
    wrong = [number for number in resting if scores.text_of(number) != number.text]
    assert wrong == []
