"""The page of retrieval, as the refresh script writes it from a report whose numbers are known by construction."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from pipeline.report.results import Results, find_baselines
from pipeline.report.retrieval import retrieval_table
from sentfold.files import write_json
from sentfold.report.render import tidy_csv
from tests.checkout import ROOT
from tests.report.made_up import make_evidence, make_results

PAGE = "docs/findings/retrieval.md"
POOLS = ("mrpc", "snli", "stsb", "cqa-b")
# Search -> points above the cosine on each pool. Intervals of the made-up results are about a point wide.
GAINS = {
    "minilm-query-pca": (1.5, 1.5, 1.5, 1.5),
    "minilm-csls": (2.0, -2.0, 0.0, 0.0),
    "minilm-binary": (-3.0, -3.0, -3.0, 0.0),
    "minilm-feedback": (0.0, 0.0, 0.0, 0.0),
    "minilm-diffusion-shuffled": (0.0, 0.0, 0.0, 0.0),
    "minilm-adapter": (5.0, 5.0, 5.0, 5.0),
    "minilm-mean-removal-cosine": (2.0, 0.0, 0.0, 0.0),
}
METHODS = {"query-pca": "query_pca", "diffusion-shuffled": "diffusion"}


def made_up_searches() -> Results:
    """These searches, on these pools, in the form in which the report reads them."""
    gains = {"minilm-cosine": (0.0,) * 4, **GAINS}
    scores = {
        (key, pool, "nDCG@10"): 70.0 + gain for key, own in gains.items() for pool, gain in zip(POOLS, own, strict=True)
    }
    results = make_results(scores, noise=0.2)
    searches, made = {}, {}
    for key in gains:
        space = "minilm-mean-removal" if "removal" in key else "minilm"
        search = key.removeprefix(f"{space}-")
        method = METHODS.get(search, search)
        searches[key] = {"space": space, "search": search, "method": method, "against": "minilm-cosine"}
        made[key] = {"source": "minilm-cosine", "maker": search}
    facts = {"documents": 9, "queries": 9, "judgements": 9, "queries_without_relevant": 0, "unjudged_of_top_10": 0.5}
    for corpora in results.scores.values():
        for own in corpora.values():
            own.update({**facts, "development": {"queries": 9}})
    stages = {**results.suite.stages, "evaluate": made, "encode": {}, "embed": {}, "search": searches}
    suite = results.suite.model_copy(update={"stages": stages})
    return replace(results, suite=suite, baselines=find_baselines(suite, []))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page that the script writes in a checkout with that report."""
    root = tmp_path_factory.mktemp("checkout")
    evidence = make_evidence(
        make_results({("minilm", "stsb", "spearman.all.cosine"): 70.0}),
        searches=made_up_searches(),
        search_costs={"processor": "a processor", "searches": {}, "sizes": {"documents": 9, "dimension": 9}},
    )
    table = retrieval_table(evidence)
    assert table is not None
    for name in ("README.md", "docs/findings.md", PAGE, "reports/paper-mirror/tables/scores.csv"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    shutil.copytree(ROOT / "reports/benchmarks", root / "reports/benchmarks")
    (root / "reports/paper-mirror/tables/retrieval.csv").write_text(tidy_csv(table), encoding="utf-8")
    (root / "reports/paper-mirror/figures").mkdir()
    (root / "reports/paper-mirror/figures/retrieval.svg").write_text("<svg/>", encoding="utf-8")
    write_json(root / "reports/paper-mirror/claims.json", {"counts": {}})
    subprocess.run([sys.executable, ROOT / ".ci/refresh_findings.py", root], capture_output=True, check=False)
    return (root / PAGE).read_text(encoding="utf-8")


def cells(page: str, name: str) -> list[list[str]]:
    """The cells of every row of this name."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    return [row[1:] for row in rows if row[0] == name]


def test_scores_and_differences_are_in_their_cells(page: str) -> None:
    assert cells(page, "minilm-cosine") == [["70.00"] * 4]
    (row,) = cells(page, "minilm-csls − minilm-cosine")
    values, bounds = zip(*[cell.split(" ", 1) for cell in row], strict=True)
    assert [float(value) for value in values] == [2.0, -2.0, 0.0, 0.0]
    low, high = (float(bound) for bound in bounds[0].strip("[]").split(", "))
    assert 1.0 < low < 2.0 < high < 3.0
    assert cells(page, "minilm-mean-removal-cosine − minilm-cosine")[0][0].startswith("+2.00 [")


def test_the_answer_sorts_the_changes_by_their_signs_and_names_controls_and_the_supervised_one_apart(page: str) -> None:
    answer = page.partition("<!-- answer -->")[2].partition("<!-- end of the answer -->")[0]
    assert "**Of 5 changes without training, 2 help on some pool and harm on none.**" in answer
    assert "- gains, and no loss: `query-pca`, `mean-removal`;" in answer
    assert "so the sign turns: `csls`;" in answer
    assert "- losses, and no gain: `binary`;" in answer
    assert "- no difference shown: `feedback`." in answer
    assert "The controls gain nowhere, as they must." in answer
    assert "The adapter, which learns from judged pairs, gains on 4 of 4 pools and loses on 0." in answer
    assert "earlier version" not in answer


def test_the_table_of_signs_counts_pools_and_the_figure_is_shown(page: str) -> None:
    signs = page.partition("<!-- signs -->")[2].partition("<!-- end of the signs -->")[0]
    counted = {name: cells(signs, name)[0][0] for name in ("minilm-csls", "minilm-binary", "minilm-mean-removal")}
    assert counted == {
        "minilm-csls": "+1 −1 of 4", "minilm-binary": "+0 −3 of 4", "minilm-mean-removal": "+1 −0 of 4",
    }  # fmt: skip
    assert cells(signs, "minilm-diffusion-shuffled (control)")[0][0] == "+0 −0 of 4"
    assert "](../../reports/paper-mirror/figures/retrieval.svg)" in page


def test_costs_are_those_of_the_benchmark() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    (row,) = cells(text, "binary-rescored")
    assert row[-1] == "48" and float(row[2]) > 1  # times the cosine, which rescores nothing
