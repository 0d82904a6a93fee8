import io
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from flows.progress import Progress, Summary, picture, unfinished, usual_seconds
from flows.run_stage import StageResult
from pipeline.lineage.runs import NEEDED, append_line, runs_path
from sentfold.errors import RunError
from tests.flows.checkout import SOURCE

PROGRAM = """
import time
from flows.progress import Progress, shown
from flows.run_stage import StageResult
progress = Progress(("embed@a", "report"))
with shown(progress):
    progress.started("embed@a")
    time.sleep(1.5)
    progress.ended(StageResult("embed@a", "ran", 1.5, True))
print("after")
"""


def stages(number: int) -> tuple[str, ...]:
    return ("embed@a", "embed@b", "report", *(f"evaluate@{i}" for i in range(3, number)))


def draw(progress: Progress) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(picture(progress))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_every_event_is_one_line_that_counts_the_stages_that_are_done() -> None:
    lines: list[str] = []
    progress = Progress(stages(12), say=lines.append)
    progress.begin -= 2.04
    progress.started("embed@a")
    progress.note("embed@a", "its server does not answer; attempt 2 of 3 in 20 s")
    progress.ended(StageResult("embed@a", "ran", 2.04, outputs_changed=True))
    progress.ended(StageResult("report", "skipped", 0.0, outputs_changed=True))
    assert lines == [
        "[ 0/12] embed@a: started",
        "[ 0/12] embed@a: its server does not answer; attempt 2 of 3 in 20 s",
        "[ 1/12] embed@a: ran after 2.0 s, about 00:22 left",
        "[ 2/12] report: skipped, about 00:20 left",
    ]


def test_the_picture_shows_what_is_done_and_how_long_each_stage_has_been_running() -> None:
    progress = Progress(stages(4), {"embed@b": 7600.0}, say=lambda _: None)
    progress.started("embed@a")
    progress.started("embed@b")
    progress.running["embed@b"] = time.monotonic() - 7500
    progress.begin -= 7500
    progress.ended(StageResult("embed@a", "restored", 1.0, outputs_changed=True))
    drawn = draw(progress)
    assert "1/4, about" in drawn and "1 restored" in drawn
    assert re.search(r" 75\d\d s +embed@b", drawn)
    assert "embed@a" not in drawn


@given(
    usual=st.lists(st.floats(50.0, 500.0), min_size=2, max_size=8),
    more=st.floats(0.0, 5.0),
    at_once=st.integers(1, 4),
    data=st.data(),
)
def test_the_time_left_is_exact_where_every_stage_takes_its_usual_time_and_as_much_more_as_the_others(
    usual: list[float], more: float, at_once: int, data: st.DataObject
) -> None:
    names = tuple(f"evaluate@{i}" for i in range(len(usual)))
    ended = data.draw(st.integers(1, len(usual) - 1))
    progress = Progress(names, dict(zip(names, usual, strict=True)), say=lambda _: None)
    took = [seconds + more for seconds in usual]
    for name, seconds in zip(names[:ended], took[:ended], strict=True):
        progress.results[name] = StageResult(name, "ran", seconds, outputs_changed=True)
    progress.begin = time.monotonic() - sum(took[:ended]) / at_once
    expected = sum(took[ended:]) / at_once
    assert progress.seconds_left() == pytest.approx(expected, rel=0.05)  # at least 12 s passed, and the clock goes on


def test_without_records_the_stages_that_ran_tell_the_time_left() -> None:
    progress = Progress(stages(5), say=lambda _: None)
    assert progress.seconds_left() is None
    progress.results["embed@a"] = StageResult("embed@a", "unchanged", 0.0, outputs_changed=False)
    assert progress.seconds_left() is None, "no stage ran"
    progress.results["embed@b"] = StageResult("embed@b", "ran", 10.0, outputs_changed=True)
    progress.begin -= 10
    assert progress.seconds_left() == pytest.approx(30, abs=0.5)
    progress.running["report"] = time.monotonic() - 4
    progress.begin -= 4
    assert progress.seconds_left() == pytest.approx(26, abs=0.5)


def test_the_usual_time_of_a_stage_is_that_of_its_last_success(tmp_path: Path) -> None:
    blocks = {"code": {"commit": None, "dirty": False}, "machine": {"host": "one"}, "packages": {}, "parameters": {}}
    base = dict.fromkeys(NEEDED) | blocks | {"event": "ended", "outputs": {}}
    for stage, seconds, code in (("a@x", 4, 0), ("a@x", 5.5, 0), ("a@x", 9, 2), ("b", 1, 1), ("c", "long", 0)):
        append_line(runs_path(tmp_path, "other"), base | {"stage": stage, "seconds": seconds, "exit": code})
    names = [f"suites/other/dvc.yaml:{stage}" for stage in ("a@x", "b", "c", "d")]
    assert usual_seconds(tmp_path, "other", names) == {names[0]: 5.5}
    assert usual_seconds(tmp_path, "quick", ["a@x"]) == {}


@pytest.mark.slow
def test_in_a_terminal_the_picture_moves_below_the_lines_and_is_gone_afterwards() -> None:
    master, slave = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=slave, stdout=slave, stderr=slave, env=environment, close_fds=True
    )
    os.close(slave)
    seen = b""
    while True:
        try:
            part = os.read(master, 4096)
        except OSError:  # how Linux says that the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(master)
    text = seen.decode()
    assert process.wait(60) == 0, text
    assert "[0/2] embed@a: started" in text and "[1/2] embed@a: ran after 1.5 s" in text
    assert "0/2" in text.replace("[0/2]", "") and "0 s" in text, "the picture itself"
    assert "\x1b[2K" in text, "its lines were erased again"
    assert text.rstrip().endswith("after")


def test_what_failed_is_told_with_cause_log_and_the_command_that_resumes() -> None:
    errors = {
        name: RunError(f"the stage '{name}' failed with exit code 2", where=f"logs/{name}.log", got=f"{name} is broken")
        for name in ("embed@a", "embed@b")
    }
    results = (
        StageResult("embed@a", "failed", 1.0, outputs_changed=True),
        StageResult("embed@b", "failed", 1.0, outputs_changed=True),
        StageResult("evaluate", "skipped", 0.0, outputs_changed=True),
    )
    one = unfinished({"embed@a": errors["embed@a"]}, Summary(results[:1], 1.0), resume="sentfold run")
    assert one.what == "the stage 'embed@a' failed with exit code 2"
    assert one.where == "logs/embed@a.log"
    both = unfinished(errors, Summary(results, 2.0), resume="sentfold run --suite quick")
    message = str(both)
    for part in ("2 stages failed: embed@a, embed@b", "logs/embed@b.log", "embed@a is broken", "embed@b is broken"):
        assert part in message
    assert both.state.startswith("skipped, because they need it: evaluate;")
    assert both.remedy == "remove the cause, then: sentfold run --suite quick"
