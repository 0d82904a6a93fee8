import os
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.footprint import footprint
from flows.graph import dvcfile_of, read_graph
from flows.uptodate import remember, surely_up_to_date
from tests.flows.checkout import Checkout

Touch = Callable[[Path], object]


def rewrite_with_the_old_times(path: Path) -> None:
    """Another byte of the same length, and the time of before: what DVC itself would not notice."""
    stat = path.stat()
    with path.open("r+b") as file:
        file.write(b"#")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


TOUCHES: dict[str, Touch] = {
    "a parameter changed": lambda root: (root / "params.yaml").write_text("embed: 1"),
    "code changed": lambda root: (root / "stage.py").open("a").write("\n"),
    "an output is gone": lambda root: (root / "data/quick/spaces/a").unlink(),
    "an output is new": lambda root: (root / "data/quick/spaces/c").write_text("c"),
    "an output changed, its times put back": lambda root: rewrite_with_the_old_times(root / "data/quick/scores"),
    "an output's times changed": lambda root: os.utime(root / "data/quick/scores", (0, 0)),
    "the suite changed": lambda root: (root / "suite.yaml").open("a").write("\n"),
    "dvc.lock is gone": lambda root: (root / "dvc.lock").unlink(),
    "what git keeps changed": lambda root: (root / "reports/quick.txt").write_text("better"),
    "a setting of DVC appeared": lambda root: (root / ".dvc/config.local").write_text("[core]\n"),
}


@pytest.fixture
def remembered(finished: Checkout) -> Path:
    remember("quick", read_graph(dvcfile_of("quick"), root=finished.root), finished.root)
    return finished.root


@pytest.mark.parametrize("what", TOUCHES)
def test_whatever_is_touched_dvc_is_asked_again(remembered: Path, what: str) -> None:
    assert surely_up_to_date("quick", remembered)
    TOUCHES[what](remembered)
    assert not surely_up_to_date("quick", remembered)


def test_what_is_no_part_of_the_suite_may_change(remembered: Path) -> None:
    (remembered / "notes.txt").write_text("anything")
    (remembered / "suites/other/suite.yaml").write_text("other: suite")
    assert surely_up_to_date("quick", remembered)
    assert not surely_up_to_date("other", remembered), "nobody ever looked"


def test_a_damaged_memory_is_no_memory(remembered: Path) -> None:
    path = next((remembered / ".dvc/tmp").glob("sentfold-uptodate-*"))
    for text in ("", "{", "[]", '{"paths": 3, "footprint": ""}'):
        path.write_text(text)
        assert not surely_up_to_date("quick", remembered)


def test_a_footprint_is_of_every_file_below_a_path_once(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_text("1")
    (tmp_path / "a-c").write_text("2")
    whole = footprint(["a", "a-c", "a/b", "a/b/file", "absent"], root=tmp_path)
    assert whole == footprint(["absent", "a-c", "a"], root=tmp_path)
    assert whole != footprint(["absent", "a-c", "a/b"], root=tmp_path)
    (tmp_path / "absent").mkdir()
    assert whole != footprint(["absent", "a-c", "a"], root=tmp_path)
