import json
import subprocess
import sys
import time
from pathlib import Path
from threading import Event

import pytest

from flows.profile import Retries, Retry
from flows.run_stage import log_file, run_stage
from pipeline.errors import RunError
from tests.flows.checkout import Checkout

DVCFILE = Path("dvc.yaml")


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

    retries = Retries(contention=Retry(attempts=2, delay=0.1))
    result = run_stage("evaluate", dvcfile=DVCFILE, root=finished.root, resume="resume", retries=retries, say=release)
    assert told == [f"another dvc process is in its way (process {blocker.pid}: dvc checkout); attempt 2 of 2 in 0.1 s"]
    assert result.outcome == "ran"
    assert result.outputs_changed
    assert "is busy" in log_file("evaluate", root=finished.root).read_text(), "the first attempt was refused"


def test_a_stage_that_fails_by_itself_is_not_tried_again(finished: Checkout) -> None:
    finished.change("rounding: 2", "rounding: 3")
    finished.ask("evaluate-quick", "fail")
    with pytest.raises(RunError) as caught:
        run_stage("evaluate", dvcfile=DVCFILE, root=finished.root, resume="sentfold run")
    log = log_file("evaluate", root=finished.root)
    assert log.read_text().count("evaluate-quick was asked to fail") == 1
    assert caught.value.where == str(log.relative_to(finished.root))
    assert caught.value.remedy == "mend the cause, then: sentfold run"


def test_only_a_download_whose_server_does_not_answer_is_tried_again_as_often_as_the_profile_says(
    finished: Checkout,
) -> None:
    finished.change("a: 1", "a: 2")
    retries = Retries(download=Retry(attempts=3, delay=0.01))

    def attempts(printed: str) -> int:
        (finished.root / "stage.py").write_text(f"print('error: {printed}'); raise SystemExit(2)")
        with pytest.raises(RunError):
            run_stage("download@a", dvcfile=DVCFILE, root=finished.root, resume="resume", retries=retries)
        return log_file("download@a", root=finished.root).read_text().count("error: ")

    assert attempts("an archive cannot be downloaded") == 3
    assert attempts("the hub cannot be reached") == 3
    assert attempts("an archive has the wrong sha256") == 1


def test_a_run_that_is_stopped_does_not_wait_for_the_next_attempt(finished: Checkout) -> None:
    finished.change("a: 1", "a: 2")
    (finished.root / "stage.py").write_text("print('error: the hub cannot be reached'); raise SystemExit(2)")
    stop = Event()
    begin = time.monotonic()
    with pytest.raises(RunError):
        run_stage(
            "download@a",
            dvcfile=DVCFILE,
            root=finished.root,
            resume="resume",
            stop=stop,
            retries=Retries(download=Retry(attempts=2, delay=3600)),
            say=lambda _: stop.set(),
        )
    assert time.monotonic() - begin < 600


def test_a_stage_runs_with_this_interpreter_whatever_the_path_finds(finished: Checkout) -> None:
    (finished.root / "stage.py").write_text("import sys; open(sys.argv[3], 'w').write(sys.executable)")
    run_stage("evaluate", dvcfile=DVCFILE, root=finished.root, resume="resume")
    assert (finished.root / "data/quick/scores").read_text() == sys.executable


def test_stages_of_two_suites_have_two_logs(tmp_path: Path) -> None:
    names = {log_file(stage, root=tmp_path).name for stage in ("embed@x", "suites/other/dvc.yaml:embed@x")}
    assert names == {"embed@x.log", "suites-other-dvc.yaml-embed@x.log"}
