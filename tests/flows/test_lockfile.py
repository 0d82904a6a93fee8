from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from flows.lockfile import read_outputs, sort_lock
from pipeline.errors import RunError

HEAD = "schema: '2.0'\nstages:\n"
BLOCKS = {
    "embed@x": "  embed@x:\n    cmd: python embed.py\n    outs:\n    - path: data/x\n      md5: 0a\n",
    "evaluate": "  evaluate:\n    cmd: \"one\n\n      two: 'three'\"\n    outs:\n    - path: data/s\n      md5: 0b\n",
    "a": "  a:\n    cmd:\n    - echo 1\n    - |\n      stages:\n        z: 1\n",
    "embed": "  embed:\n    cmd: echo\n",
}
TAIL = "datasets:\n- name: d\n  type: url\n"


@given(st.permutations(sorted(BLOCKS)), st.sampled_from(["", TAIL]))
def test_any_order_of_stages_becomes_the_alphabetical_one_block_for_block(
    tmp_path_factory: pytest.TempPathFactory, order: list[str], tail: str
) -> None:
    path = tmp_path_factory.mktemp("lock") / "dvc.lock"
    path.write_text(HEAD + "".join(BLOCKS[name] for name in order) + tail)
    assert sort_lock(path) == (order != sorted(order))
    assert path.read_text() == HEAD + "".join(BLOCKS[name] for name in ("a", "embed", "embed@x", "evaluate")) + tail
    assert not sort_lock(path), "a sorted lock is left alone"
    assert [file.name for file in path.parent.iterdir()] == ["dvc.lock"], "no temporary file stays"


def test_a_name_so_long_that_yaml_marks_its_key_is_sorted_too(tmp_path: Path) -> None:
    path = tmp_path / "dvc.lock"
    stages = {"z": {"cmd": "echo"}, "m" * 140: {"cmd": "echo"}, "a": {"cmd": "echo"}}
    path.write_text(yaml.safe_dump({"schema": "2.0", "stages": stages}, sort_keys=False))
    assert "? mmm" in path.read_text()
    assert sort_lock(path)
    assert list(yaml.safe_load(path.read_text())["stages"]) == sorted(stages)


def test_a_missing_lock_stays_missing(tmp_path: Path) -> None:
    assert not sort_lock(tmp_path / "dvc.lock")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["stages: [", "a: 1\n", "", "- 1\n"])
def test_a_file_that_is_no_lock_is_refused_and_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "dvc.lock"
    path.write_text(text)
    with pytest.raises(RunError, match=r"dvc\.lock is not as DVC writes it"):
        sort_lock(path)
    assert path.read_text() == text


def test_a_half_written_lock_never_reads_as_equal_to_the_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "dvc.lock"
    text = HEAD + BLOCKS["embed@x"] + BLOCKS["evaluate"]
    path.write_text(text)
    whole = read_outputs(path)
    assert whole["embed@x"] == [{"path": "data/x", "md5": "0a"}]
    for cut in range(len(text) - 1):
        path.write_text(text[:cut])
        half = read_outputs(path)
        complete = cut >= text.rindex("0b") + 2
        assert complete or half.get("evaluate") != whole["evaluate"]
