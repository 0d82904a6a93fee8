import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

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

    def release() -> None:
        blocker.kill()
        blocker.wait()

    # The first attempt takes about a second; the next comes two seconds after its end.
    threading.Timer(2.0, release).start()
    result = run_stage("evaluate", dvcfile=DVCFILE, root=finished.root, resume="resume")
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


def test_a_stage_runs_with_this_interpreter_whatever_the_path_finds(finished: Checkout) -> None:
    (finished.root / "stage.py").write_text("import sys; open(sys.argv[3], 'w').write(sys.executable)")
    run_stage("evaluate", dvcfile=DVCFILE, root=finished.root, resume="resume")
    assert (finished.root / "data/quick/scores").read_text() == sys.executable


def test_stages_of_two_suites_have_two_logs(tmp_path: Path) -> None:
    names = {log_file(stage, root=tmp_path).name for stage in ("embed@x", "suites/other/dvc.yaml:embed@x")}
    assert names == {"embed@x.log", "suites-other-dvc.yaml-embed@x.log"}
