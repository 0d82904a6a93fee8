"""From a printed cell down to the code, every step with a hash that can be checked by hand."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from pipeline.lineage.audit import audit
from pipeline.lineage.hashes import LineageError
from pipeline.lineage.text import trace_text
from pipeline.lineage.trace import NO_RUN, Edge, Node, Trace, models_in, trace
from pipeline.lineage.trace_picture import WIDTH, draw_trace
from tests.browser import CHROMIUM, needs_chromium, open_browser
from tests.lineage.small import Small
from tests.lineage.tamper import record_run

STS = "reports/quick/tables/sts.csv"


@pytest.fixture(scope="module")
def found(finished: Small) -> Trace:
    return trace(finished.root, STS, row="mini-lp", column="second")


def test_a_cell_leads_to_everything_it_rests_on_and_to_nothing_else(found: Trace) -> None:
    stages = {node.title for node in found.nodes.values() if node.kind == "stage"}
    assert stages == {"evaluate@mini-lp", "fold@mini", "embed@second-mini", "download@second"}
    files = {node.title for node in found.nodes.values() if node.kind == "file"}
    assert files == {
        "reports/quick/scores/mini-lp.json", "data/quick/spaces/mini-lp/second.txt",
        "data/quick/spaces/mini/second.txt", "data/quick/corpora/second/sentences.txt",
        "data/quick/corpora/second/items.txt",
    }  # fmt: skip
    assert [node.title for node in found.nodes.values() if node.kind == "model"] == ["encoders.mini"]


def test_every_edge_to_a_file_carries_its_md5_and_every_one_to_a_stage_what_dvc_recorded(
    finished: Small, found: Trace
) -> None:
    lock = yaml.safe_load((finished.root / "dvc.lock").read_text())["stages"]
    assert all(edge.hash for edge in found.edges)
    for edge in found.edges:
        node = found.nodes[edge.below]
        if node.kind == "stage":
            assert edge.hash.removeprefix("md5 ") in {out["md5"] for out in lock[node.title]["outs"]}
        elif node.kind == "file" and (finished.root / node.title).is_file():
            content = (finished.root / node.title).read_bytes()
            assert edge.hash == f"md5 {hashlib.md5(content).hexdigest()}"


def test_a_stage_tells_its_parameters_its_command_and_the_commit_of_its_code(finished: Small, found: Trace) -> None:
    fold = found.nodes["stage fold@mini"]
    assert fold.facts["params.yaml: fold.step"] == 0.1
    assert fold.facts["command"] == "python stage.py fold mini quick"
    (code,) = (found.nodes[edge.below] for edge in found.below("stage fold@mini") if edge.below.startswith("code "))
    assert set(code.facts["files"]) == {"stage.py", "code/rules.py"}
    assert code.facts["commit"] == finished.run("git", "rev-parse", "HEAD").stdout.strip()


def test_the_tree_tells_each_thing_once(found: Trace) -> None:
    text = trace_text(found)
    assert text.startswith("41.90   mini-lp × second")
    assert text.count("command: python stage.py download second quick") == 1
    for edge in found.edges:
        assert edge.hash in text


def test_the_json_holds_the_whole_graph(found: Trace) -> None:
    content = json.loads(json.dumps(asdict(found)))
    keys = set(content["nodes"])
    assert {edge["above"] for edge in content["edges"]} | {edge["below"] for edge in content["edges"]} <= keys
    assert len(content["edges"]) == len(found.edges)
    assert content["number"]["text"] == "41.90"


def test_what_is_altered_or_absent_is_said_where_it_stands(small: Small) -> None:
    path = small.root / "data/quick/spaces/mini/second.txt"
    path.chmod(0o644)
    path.write_text("1.0\n")
    (small.root / "data/quick/corpora/second/sentences.txt").unlink()
    again = trace(small.root, STS, row="mini-lp", column="second")
    assert again.nodes["data/quick/spaces/mini/second.txt"].state == "not as recorded"
    assert again.nodes["data/quick/corpora/second/sentences.txt"].state == "absent here"
    assert "data/quick/spaces/mini/second.txt: not as recorded" in trace_text(again)


def test_a_tampered_cell_is_told_beside_what_its_score_file_has(small: Small) -> None:
    small.edit(STS, "mini,20.50", "mini,99.16")
    again = trace(small.root, STS, row="mini", column="first")
    assert again.nodes["number"].state == "not as recorded"
    assert trace_text(again).splitlines()[1].strip() == ("not as recorded: reports/quick/scores/mini.json gives 20.50")
    table = "reports/quick/tables/scores.csv"
    small.edit(table, "-0.40,", "+0.40,")
    gap = trace(small.root, table, row="mini-lp", column="first", field="difference")
    assert gap.nodes["number"].state == "not as recorded"
    (small.root / "reports/quick/scores/mini.json").unlink()
    assert trace(small.root, STS, row="mini", column="first").nodes["number"].state == "absent here"


def run_of(small: Small, stage: str) -> str:
    found = trace(small.root, STS, row="mini-lp", column="second")
    assert f"run: {found.nodes[f'stage {stage}'].facts['run']}" in trace_text(found)
    return str(found.nodes[f"stage {stage}"].facts["run"])


@pytest.mark.slow
def test_a_run_is_named_only_if_it_wrote_the_bytes_that_are_here(small: Small) -> None:
    assert run_of(small, "fold@mini") == "no record of the run that wrote these bytes is here"
    small.edit("params.yaml", "step: 1.0e-1", "step: 0.2")
    small.run("dvc", "repro", "-q")
    record_run(small)  # of every stage, as it wrote what is here with step = 0.2
    assert "commit" in run_of(small, "fold@mini")
    small.run("git", "checkout", "-q", "--", "params.yaml", "dvc.lock", "reports")
    small.run("dvc", "checkout", "-q", "--force")
    assert run_of(small, "fold@mini") == run_of(small, "evaluate@mini-lp") == NO_RUN, "step = 0.1 made these"
    assert "commit" in run_of(small, "embed@second-mini"), "the step has no part in it"
    assert not audit(small.root, "quick").failed(strict=True)


def test_a_number_that_a_worker_made_names_its_machine_and_container_and_is_verified(small: Small) -> None:
    record_run(small)
    runs = small.root / ".sentfold/runs/quick.jsonl"
    worker = {"host": "node7", "cpu": "EPYC", "container": "image@sha256:1", "profile": "avx2"}
    lines = [json.loads(line) for line in runs.read_text().splitlines()]
    runs.write_text("".join(json.dumps({**line, "machine": worker}) + "\n" for line in lines))
    text = run_of(small, "fold@mini")
    assert all(
        part in text for part in (" on node7,", "cpu EPYC", "container image@sha256:1", "profile avx2", "commit ")
    )
    assert not audit(small.root, "quick").failed(strict=True)


def test_a_run_of_edited_code_is_not_told_as_one_of_the_commit(small: Small) -> None:
    record_run(small)
    runs = small.root / ".sentfold/runs/quick.jsonl"
    lines = [json.loads(line) for line in runs.read_text().splitlines()]
    code = {**lines[-1]["code"], "edited": {"pipeline/__main__.py": "0" * 40}}
    runs.write_text("".join(json.dumps({**line, "code": code}) + "\n" for line in lines))
    found = trace(small.root, STS, row="mini-lp", column="second").nodes["stage fold@mini"].facts["run"]
    assert f"commit {code['commit'][:10]} with edits of pipeline/__main__.py" in str(found)


def test_a_run_with_other_parameters_is_not_named_though_it_wrote_the_same_bytes(small: Small) -> None:
    small.edit("params.yaml", "rounding: 2", "rounding: 3")
    record_run(small, "evaluate@mini-lp")
    assert "commit" not in run_of(small, "evaluate@mini-lp")
    small.edit("params.yaml", "rounding: 3", "rounding: 2")
    record_run(small, "evaluate@mini-lp")
    assert "commit" in run_of(small, "evaluate@mini-lp")


def test_a_stage_whose_output_is_absent_or_altered_names_no_run(small: Small) -> None:
    record_run(small)
    (small.root / "data/quick/spaces/mini-lp/first.txt").unlink()
    said = "not looked for, as data/quick/spaces/mini-lp is not here as dvc.lock records it"
    assert run_of(small, "fold@mini") == said


def test_what_an_output_remembers_of_its_inputs_takes_none_of_the_recorded_ones_away(choosing: Small) -> None:
    path = "data/quick/spaces/mini/second.txt"
    sha256 = hashlib.sha256((choosing.root / path).read_bytes()).hexdigest()
    lineage = {"spaces": {"mini-lp/second": {"inputs": {path: sha256}}}}
    (choosing.root / "reports/quick/lineage.json").write_text(json.dumps(lineage))
    again = trace(choosing.root, STS, row="mini-lp", column="second")
    below = {edge.below: edge.hash for edge in again.below("stage fold@mini")}
    assert below[path] == f"sha256 {sha256}"
    assert "reports/quick/sweeps/chosen.txt" in below
    assert "stage choose" in again.nodes
    assert "data/quick/spaces/mini/first.txt" not in again.nodes


def test_a_difference_leads_to_both_scores_and_a_mean_to_the_report(finished: Small) -> None:
    table = "reports/quick/tables/scores.csv"
    both = trace(finished.root, table, row="mini-lp", column="first", field="difference")
    assert [edge.below for edge in both.below("number")] == [
        "reports/quick/scores/mini-lp.json", "reports/quick/scores/mini.json",
    ]  # fmt: skip
    mean = trace(finished.root, "reports/quick/tables/small.csv", row="mini", column="average")
    assert "stage report" in mean.nodes
    assert {"stage evaluate@mini", "stage evaluate@mini-lp"} <= set(mean.nodes)


@pytest.mark.parametrize(
    ("table", "row", "column", "what", "near"),
    [
        ("reports/quick/tables/stss.csv", "mini", "first", "no table", "tables/sts.csv"),
        (STS, "mini-lq", "first", "no row 'mini-lq'", "mini-lp"),
        (STS, "mini", "secnd", "no column 'secnd'", "second"),
        ("/etc/passwd", "mini", "first", "no table", "there are"),
        ("reports/quick/tables/scores.csv", "mini", "spearman.all.cosine", "2 cells", "second spearman.all.cosine"),
    ],
)
def test_an_unknown_table_row_or_column_is_an_error_that_names_the_nearest(
    finished: Small, table: str, row: str, column: str, what: str, near: str
) -> None:
    with pytest.raises(LineageError, match=what) as caught:
        trace(finished.root, table, row=row, column=column)
    assert near in caught.value.got


def test_models_are_the_blocks_that_pin_bytes() -> None:
    params = {"params.yaml": {"encoders.m": {"sha256": {"a": "b"}}, "knn": {"k": 3}, "v": {"w": {"revision": "c0"}}}}
    assert dict(models_in(params)) == {"encoders.m": {"sha256": {"a": "b"}}, "v.w": {"revision": "c0"}}


@pytest.mark.slow
def test_the_command_prints_the_tree_or_all_of_it_as_json(finished: Small) -> None:
    cell = ("pipeline", "trace", STS, "--row", "mini", "--column", "first")
    assert finished.run(*cell).stdout.startswith("20.50   mini × first")
    assert json.loads(finished.run(*cell, "--json").stdout)["number"]["space"] == "mini"
    wrong = finished.run("pipeline", "trace", STS, "--row", "nobody", "--column", "first", check=False)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "error: there is no row 'nobody'" in wrong.stderr


# --- the picture --------------------------------------------------------------------------------------


def crowd(found: Trace) -> Trace:
    """The same graph with long texts, texts that would be markup or a control, and a way of 30 steps."""
    nodes = dict(found.nodes)
    evil = {"command": "python " + "a-very-long-word" * 40, "run": "<script>alert(1)</script> & \x1b[2J\n" + "M" * 300}
    for key, node in found.nodes.items():
        nodes[key] = replace(node, facts={**node.facts, **evil}) if node.kind == "stage" else node
    deep = [Node(f"deep {step}", "file", f"data/{'W' * 150}-{step}", state="not as recorded") for step in range(30)]
    nodes |= {node.key: node for node in deep}
    steps = [Edge(above, below, "md5 " + "0" * 32) for above, below in pairwise(["number", *(n.key for n in deep)])]
    return Trace(found.number, nodes, [*found.edges, *steps])


def test_the_picture_has_every_thing_once_and_its_boxes_and_lines_are_on_the_page(found: Trace) -> None:
    for graph in (found, crowd(found)):
        root = ElementTree.fromstring(draw_trace(graph))
        page_width, page_height = (float(root.attrib[side]) for side in ("width", "height"))
        assert page_width == WIDTH
        groups = [group for group in root if group.tag.endswith("}g")]
        texts = ["".join(text.text or "" for text in group[1:]) for group in groups]
        described = [text for text in texts if ", see above" not in text]
        assert len(described) == len(graph.nodes) and len(texts) == 1 + len(graph.edges)
        bottom = 0.0
        for box, *lines in groups:
            x, y, width, height = (float(box.attrib[side]) for side in ("x", "y", "width", "height"))
            assert y >= bottom and x >= 0 and x + width <= page_width and y + height <= page_height
            bottom = y + height
            for line in lines:
                start, base = float(line.attrib["x"]), float(line.attrib["y"])
                assert x < start and start + float(line.attrib["textLength"]) <= x + width and y < base < y + height
        assert "<script" not in draw_trace(graph) and "\x1b" not in draw_trace(graph)


@needs_chromium
def test_a_browser_draws_each_line_inside_of_its_box(found: Trace, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    file = tmp_path / "trace.svg"
    file.write_text(draw_trace(crowd(found)), encoding="utf-8")
    inside = """[...document.querySelectorAll('g')].every((group) => {
      const box = group.querySelector('rect').getBBox();
      return [...group.querySelectorAll('text')].every((line) => { const own = line.getBBox();
        return own.x >= box.x && own.x + own.width <= box.x + box.width && own.y >= box.y &&
          own.y + own.height <= box.y + box.height; }); })"""
    with open_browser(CHROMIUM, tmp_path / "profile") as page:
        page.open(file.as_uri())
        assert page.evaluate("document.querySelectorAll('text').length") > 100
        assert page.evaluate(inside) is True and page.complaints == []


@pytest.mark.slow
def test_the_command_writes_the_picture_and_finds_a_table_from_a_subfolder(finished: Small) -> None:
    cell = ("--row", "mini", "--column", "first")
    assert finished.run(
        "pipeline", "trace", "tables/sts.csv", *cell, SENTFOLD_FOLDER="reports/quick"
    ).stdout.startswith("20.50   mini × first")
    said = finished.run(
        "pipeline", "trace", STS, *cell, "--svg", "../trace.svg", SENTFOLD_FOLDER="reports/quick"
    ).stdout
    file = finished.root / "reports/trace.svg"
    file.chmod(0o600)
    finished.run("pipeline", "trace", STS, *cell, "--svg", "../trace.svg", SENTFOLD_FOLDER="reports/quick")
    assert file.stat().st_mode & 0o777 == 0o600
    assert said.startswith("reports/quick/../trace.svg: what 20.50 rests on") and file.read_text().startswith("<svg ")
    file.unlink()


@pytest.mark.slow
def test_the_picture_replaces_neither_the_traced_table_nor_a_pipe(small: Small, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    before = (small.root / STS).read_bytes()
    for svg in (STS, str(tmp_path / "pipe")):
        done = small.run("pipeline", "trace", STS, "--row", "mini", "--column", "first", "--svg", svg, check=False)
        assert done.returncode == 2 and "the target is" in done.stderr
    assert (small.root / STS).read_bytes() == before
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.slow
def test_the_picture_replaces_no_other_file_of_the_user(small: Small, tmp_path: Path) -> None:
    cell = ("--row", "mini", "--column", "first")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "drawing.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><title>mine</title></svg>')
    for name, said in (("notes.txt", "a name that ends in .svg"), ("drawing.svg", "a file that this command wrote")):
        before = (tmp_path / name).read_bytes()
        done = small.run("pipeline", "trace", STS, *cell, "--svg", str(tmp_path / name), check=False)
        assert done.returncode == 2 and said in done.stderr
        assert (tmp_path / name).read_bytes() == before
    for _ in range(2):  # its own picture is drawn again
        small.run("pipeline", "trace", STS, *cell, "--svg", str(tmp_path / "trace.svg"))
