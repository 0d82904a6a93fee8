"""dvc.yaml, dvc.lock and hashes, held against DVC itself."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from dvc.repo import Repo
from dvc.repo.index import Index
from hypothesis import given
from hypothesis import strategies as st

from pipeline.base.params import parse_yaml
from pipeline.lineage.hashes import Digest, LineageError, md5_of_bytes
from pipeline.lineage.stages import dump_yaml, load_graph, read_yaml
from pipeline.lineage.templates import expand, fill
from pipeline.lineage.trees import Revision, WorkingTree
from tests.checkout import ROOT
from tests.lineage.small import Small


@pytest.mark.parametrize("suite", ["quick", "paper-mirror", "small"])
def test_the_stages_are_those_that_dvc_makes_of_dvc_yaml(finished: Small, suite: str) -> None:
    root, suite = (finished.root, "quick") if suite == "small" else (ROOT, suite)
    graph = load_graph(WorkingTree(root), suite)
    with Repo(str(root)) as repo:
        theirs = {stage.name: stage for stage in Index.from_file(repo, str(root / graph.dvcfile)).stages}
    assert set(graph.stages) == set(theirs)
    for name, stage in graph.stages.items():
        other = theirs[name]
        assert stage.command == " ".join(other.cmd.split())
        tracked = {dep.def_path for dep in other.deps if not hasattr(dep, "params")}
        assert set(stage.deps) == tracked
        assert set(stage.outs) == {out.def_path for out in other.outs}
        params = {dep.def_path: tuple(dep.params or ()) for dep in other.deps if hasattr(dep, "params")}
        assert {file: sorted(keys) for file, keys in stage.params.items()} == {
            file: sorted(keys) for file, keys in params.items()
        }


def test_hashes_of_files_and_folders_are_those_in_dvc_lock(finished: Small) -> None:
    graph, tree = load_graph(WorkingTree(finished.root), "quick"), WorkingTree(finished.root)
    entries = [entry for locked in graph.locked.values() for entry in (*locked.deps.values(), *locked.outs.values())]
    assert len({entry.path for entry in entries}) > 15
    assert {entry.md5.endswith(".dir") for entry in entries} == {True, False}
    for entry in entries:
        found = tree.digest(entry.path)
        assert found is not None
        assert found.md5 == entry.md5, entry.path


def test_a_commit_gives_the_hashes_of_the_checkout_it_was_made_from(finished: Small) -> None:
    here, there = WorkingTree(finished.root), Revision(finished.root, "HEAD")
    for path in ("stage.py", "code", "reports/quick/tables", "reports/quick/scores", "dvc.lock"):
        assert here.digest(path) == there.digest(path) is not None
    assert there.digest("data/quick/spaces") is None
    assert here.files_below("reports/quick") == there.files_below("reports/quick")
    assert "tables/sts.csv" in here.files_below("reports/quick")


@pytest.mark.slow
def test_a_linked_dvc_yaml_is_read_through_its_link_in_a_commit_too() -> None:
    wanted = load_graph(WorkingTree(ROOT), "paper-mirror").stages
    assert set(load_graph(Revision(ROOT, "HEAD"), "paper-mirror").stages) == set(wanted)


def test_what_differs_between_two_folders_is_named() -> None:
    one, other = Digest("x", {"a": "1", "b": "2", "c": "3"}), Digest("y", {"b": "2", "c": "4", "d": "5"})
    assert one.differing(other) == other.differing(one) == ["a", "c", "d"]


def test_the_inputs_of_a_stage_lead_to_all_that_it_rests_on(finished: Small) -> None:
    graph = load_graph(WorkingTree(finished.root), "quick")
    assert set(graph.ancestors("fold@mini")) == {
        "fold@mini", "embed@first-mini", "embed@second-mini", "download@first", "download@second",
    }  # fmt: skip
    assert graph.parents("evaluate@mini") == [
        "download@first",
        "download@second",
        "embed@first-mini",
        "embed@second-mini",
    ]
    order = graph.in_order()
    assert all(order.index(parent) < order.index(name) for name in order for parent in graph.parents(name))


def test_a_float_that_dvc_writes_is_read_as_one(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("a: 1e-10\nb: 4e1a859364d9114b36d4fae5c895bce3\nc: 1.5E+3\nd: '1e5'\n")
    assert read_yaml(WorkingTree(tmp_path), "lock") == {
        "a": 1e-10, "b": "4e1a859364d9114b36d4fae5c895bce3", "c": 1500.0, "d": "1e5",
    }  # fmt: skip


def test_templates_keep_types_where_they_stand_alone() -> None:
    context = {"a": {"b": [1, 2]}, "n": 3}
    assert fill({"x${n}": "${a.b}", "y": ["${n}", "k${n}"]}, context, where="here") == {"x3": [1, 2], "y": [3, "k3"]}
    with_items = {"foreach": "${m}", "do": {"cmd": "${key} ${item.x}"}}
    named = dict(expand("s", with_items, {"m": {"u": {"x": 1}, "v": {"x": 2}}}, where="h"))
    assert named == {"s@u": {"cmd": "u 1"}, "s@v": {"cmd": "v 2"}}
    assert dict(expand("s", with_items, {"m": {}}, where="h")) == {}


def test_a_reference_to_nothing_is_an_error_that_names_it() -> None:
    with pytest.raises(LineageError, match=r"a\.c") as caught:
        fill("${a.c}", {"a": {"b": 1}}, where="dvc.yaml")
    assert "dvc.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "what"),
    [("a: [", "not valid YAML"), ("- a\n", "no mapping"), ("stages: {x: {deps: 3}}\n", "malformed")],
)
def test_a_broken_lock_is_an_error_that_names_it(small: Small, content: str, what: str) -> None:
    (small.root / "dvc.lock").write_text(content)
    with pytest.raises(LineageError, match=r"dvc\.lock") as caught:
        load_graph(WorkingTree(small.root), "quick")
    assert what in str(caught.value)


def test_an_unknown_suite_or_commit_is_an_error_that_names_it(finished: Small) -> None:
    with pytest.raises(LineageError, match="no suite 'nowhere'"):
        load_graph(WorkingTree(finished.root), "nowhere")
    with pytest.raises(LineageError, match="no commit 'no-such'"):
        Revision(finished.root, "no-such")


def test_bytes_and_files_have_one_md5(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    digest = WorkingTree(tmp_path).digest("f")
    # The md5 of "abc" in RFC 1321.
    assert digest is not None
    assert digest.md5 == md5_of_bytes(b"abc") == "900150983cd24fb0d6963f7d28e17f72"


def test_what_editors_leave_in_a_folder_is_no_part_of_its_hash(tmp_path: Path) -> None:
    shutil.copy(ROOT / ".dvcignore", tmp_path)
    (tmp_path / "code/.ipynb_checkpoints").mkdir(parents=True)
    (tmp_path / "code/a.py").write_text("A = 1\n")
    before = WorkingTree(tmp_path).digest("code")
    for name in (".DS_Store", ".a.py.swp", ".a.py.swo", "a.py~", "._a.py", ".ipynb_checkpoints/a-checkpoint.py"):
        (tmp_path / "code" / name).write_text("left behind")
    (tmp_path / "code/.#a.py").symlink_to("someone@host.1234:1700000000")
    after = WorkingTree(tmp_path).digest("code")
    assert before is not None and after is not None
    assert (after, after.hidden) == (before, [])
    (tmp_path / "code/b.py").write_text("B = 1\n")
    assert WorkingTree(tmp_path).digest("code") != before


NAMES = st.from_regex(r"[-+.]{0,2}[0-9][0-9a-z_.+:-]{0,6}", fullmatch=True) | st.sampled_from(
    ["08", "0o7", "1e5", "no", "~"]
)


@given(st.dictionaries(NAMES, NAMES | st.integers() | st.booleans() | st.lists(NAMES, max_size=3), max_size=4))
def test_what_is_written_as_yaml_is_read_as_the_same_in_its_order(content: dict[str, Any]) -> None:
    again = parse_yaml(dump_yaml(content))
    assert (again or {}) == content and list(again or {}) == list(content)
    assert all(isinstance(key, str) for key in again or {})
