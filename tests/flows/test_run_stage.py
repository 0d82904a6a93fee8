"""One stage under `dvc repro`: what counts as a failure, and what is tried again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from threading import Event

import pytest
import yaml

from flows.profile import Retries, Retry
from flows.run_stage import Order, log_file, require_recorded, run_stage
from sentfold.errors import RunError
from tests.flows.checkout import Checkout


@pytest.fixture
def environment(serverless: dict[str, str]) -> dict[str, str]:
    """That of `finished`: nothing here runs a flow."""
    return serverless


@pytest.fixture(autouse=True)
def project_on_path(monkeypatch: pytest.MonkeyPatch, serverless: dict[str, str]) -> None:
    monkeypatch.setenv("PYTHONPATH", serverless["PYTHONPATH"])


def order(checkout: Checkout, **retries: Retry) -> Order:
    return Order("quick", Path("dvc.yaml"), checkout.root, "sentfold run", Retries(**retries))


def exit_with(checkout: Checkout, code: int) -> None:
    """Make every stage end with an exit code."""
    (checkout.root / "stage.py").write_text(f"print('attempt'); raise SystemExit({code})")


def attempts(checkout: Checkout, stage: str) -> int:
    return log_file(stage, root=checkout.root).read_text().splitlines().count("attempt")


@pytest.mark.slow
def test_a_stage_in_the_way_of_another_dvc_process_is_tried_again(finished: Checkout) -> None:
    finished.change("rounding: 2", "rounding: 3")
    blocker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    blocked = str(finished.root / "data/quick/scores")
    entry = {"write": {blocked: {"pid": blocker.pid, "cmd": "dvc checkout"}}}
    (finished.root / ".dvc/tmp/rwlock").write_text(json.dumps(entry))
    told: list[str] = []

    def release(text: str) -> None:
        told.append(text)
        blocker.kill()
        blocker.wait()

    result = run_stage("evaluate", order(finished, contention=Retry(attempts=2, delay=0.1)), say=release)
    assert told == ["dvc failed, the stage did not; attempt 2 of 2 in 0.1 s"]
    assert result.outcome == "ran"
    assert result.outputs_changed


@pytest.mark.slow
def test_a_stage_whose_output_dvc_could_not_take_is_tried_again(finished: Checkout) -> None:
    # DVC can lose a race with another process that puts equal content into the cache; here it finds no output.
    finished.change("rounding: 2", "rounding: 3")
    (finished.root / "stage.py").write_text("print('attempt')")
    with pytest.raises(RunError, match="failed with exit code 255, 3 times"):
        run_stage("evaluate", order(finished, contention=Retry(attempts=3, delay=0.01)))
    assert attempts(finished, "evaluate") == 3


@pytest.mark.slow
def test_a_stage_that_fails_by_itself_is_not_tried_again(finished: Checkout) -> None:
    finished.change("rounding: 2", "rounding: 3")
    exit_with(finished, 3)
    with pytest.raises(RunError) as caught:
        run_stage("evaluate", order(finished))
    assert attempts(finished, "evaluate") == 1
    assert caught.value.where == str(log_file("evaluate", root=finished.root).relative_to(finished.root))
    assert caught.value.remedy == "remove the cause, then: sentfold run"


@pytest.mark.slow
def test_a_stage_whose_server_does_not_answer_is_tried_as_often_as_the_profile_says(finished: Checkout) -> None:
    finished.change("a: 1", "a: 2")
    exit_with(finished, 75)
    with pytest.raises(RunError, match="3 times"):
        run_stage("download@a", order(finished, download=Retry(attempts=3, delay=0.01)))
    assert attempts(finished, "download@a") == 3


@pytest.mark.slow
def test_a_run_that_is_stopped_does_not_wait_for_the_next_attempt(finished: Checkout) -> None:
    finished.change("a: 1", "a: 2")
    exit_with(finished, 75)
    stop = Event()
    begin = time.monotonic()
    retries = order(finished, download=Retry(attempts=2, delay=3600))
    with pytest.raises(RunError):
        run_stage("download@a", retries, stop=stop, say=lambda _: stop.set())
    assert time.monotonic() - begin < 600


@pytest.mark.slow
def test_a_result_from_the_run_cache_is_called_restored(finished: Checkout) -> None:
    finished.change("rounding: 2", "rounding: 3")
    assert run_stage("evaluate", order(finished)).outcome == "ran"
    finished.change("rounding: 3", "rounding: 2")
    result = run_stage("evaluate", order(finished))
    assert (result.outcome, result.outputs_changed) == ("restored", True)
    result = run_stage("evaluate", order(finished))
    assert (result.outcome, result.outputs_changed) == ("unchanged", False)


def test_a_stage_runs_with_this_interpreter_whatever_the_path_finds(finished: Checkout) -> None:
    (finished.root / "stage.py").write_text("import sys; open(sys.argv[3], 'w').write(sys.executable)")
    run_stage("evaluate", order(finished))
    assert (finished.root / "data/quick/scores").read_text() == sys.executable


def test_stages_of_two_suites_have_two_logs(tmp_path: Path) -> None:
    names = {log_file(stage, root=tmp_path).name for stage in ("embed@x", "suites/other/dvc.yaml:embed@x")}
    assert names == {"embed@x.log", "suites-other-dvc.yaml-embed@x.log"}


def test_a_folder_that_a_lock_calls_an_output_of_a_stage_is_left_alone(finished: Checkout) -> None:
    """A commit of somebody else brings its dvc.lock, which can call any folder an output."""
    (finished.root / "mine").mkdir()
    (finished.root / "mine/notes").write_text("years of work")
    lock = finished.root / "dvc.lock"
    content = yaml.safe_load(lock.read_text())
    content["stages"]["evaluate"]["outs"].append({"path": "mine", "hash": "md5", "md5": f"{'ab' * 16}.dir"})
    lock.write_text(yaml.safe_dump(content, sort_keys=False))
    assert run_stage("evaluate", order(finished)).outcome == "unchanged"
    assert (finished.root / "mine/notes").read_text() == "years of work"


def test_a_damaged_output_behind_a_link_is_named_and_left(finished: Checkout, tmp_path: Path) -> None:
    (finished.root / "data/quick").rename(tmp_path / "elsewhere")
    (finished.root / "data/quick").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere/scores").chmod(0o644)
    (tmp_path / "elsewhere/scores").write_text("another file of this name")
    with pytest.raises(RunError, match="damaged output") as caught:
        require_recorded("evaluate", order(finished))
    assert str(tmp_path / "elsewhere/scores") in caught.value.remedy
    assert (tmp_path / "elsewhere/scores").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_half_a_file_that_dvc_s_cache_has_is_not_called_restored_and_the_advice_helps(
    finished: Checkout, kind: str
) -> None:
    """A power cut leaves such a file, and DVC believes what is read-only."""
    out = finished.root / "data/quick/scores"
    if kind == "folder":
        writes = "Path(out).write_text(text)"
        within = f"if verb == 'evaluate':\n    Path(out).mkdir()\n    out = Path(out, 'x')\n{writes}"
        finished.edit("stage.py", writes, within)
        finished.repro()
        out /= "x"
    whole = out.read_bytes()
    (cached,) = (
        file for file in (finished.root / ".dvc/cache").rglob("*") if file.is_file() and file.read_bytes() == whole
    )
    cached.chmod(0o644)
    cached.write_bytes(whole[:-9])
    cached.chmod(0o444)
    for _ in "12":
        shutil.rmtree(out.parent) if kind == "folder" else out.unlink(missing_ok=True)
        with pytest.raises(RunError, match="damaged output of the stage 'evaluate'") as caught:
            run_stage("evaluate", order(finished))
        assert not out.exists()
        out.parent.mkdir(exist_ok=True)
    subprocess.run(["chmod", "-R", "u+w", finished.root / ".dvc/cache"], check=True)
    assert "chmod -R u+w" in caught.value.remedy
    run_stage("evaluate", order(finished))
    assert out.read_bytes() == whole
