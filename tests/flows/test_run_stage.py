import json
import subprocess
import sys
import time
from pathlib import Path
from threading import Event

import huggingface_hub
import pytest
from dvc.exceptions import ConfirmRemoveError

from flows.profile import Retries, Retry
from flows.run_stage import INTERRUPTIONS, log_file, run_stage
from pipeline.encoders.embed import EncoderParameters, locate_model
from pipeline.errors import EncoderError, RunError
from tests.flows.checkout import Checkout

DVCFILE = Path("dvc.yaml")


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

    retries = Retries(contention=Retry(attempts=2, delay=0.1))
    result = run_stage("evaluate", dvcfile=DVCFILE, root=finished.root, resume="resume", retries=retries, say=release)
    assert told == [f"another dvc process is in its way (process {blocker.pid}: dvc checkout); attempt 2 of 2 in 0.1 s"]
    assert result.outcome == "ran"
    assert result.outputs_changed
    assert "is busy" in log_file("evaluate", root=finished.root).read_text(), "the first attempt was refused"


def test_a_stage_is_tried_again_whose_content_another_process_put_into_the_cache_at_that_moment(
    finished: Checkout,
) -> None:
    # Two processes that commit equal outputs to one cache at the same instant bring DVC to this error in a few cases
    # of a hundred, too few to wait for; so the stage prints it, in DVC's words.
    finished.change("rounding: 2", "rounding: 3")
    error = f"ERROR: failed to reproduce 'evaluate': {ConfirmRemoveError('data/quick/scores')}"
    script = finished.root / "stage.py"
    refusal = f"if not os.path.exists('met'):\n    open('met', 'w').close()\n    sys.exit({error!r})\n"
    script.write_text(script.read_text() + refusal)
    told: list[str] = []
    result = run_stage("evaluate", dvcfile=DVCFILE, root=finished.root, resume="resume", say=told.append)
    assert told == ["another dvc process wrote the same content to the cache; attempt 2 of 3 in 0.5 s"]
    assert result.outcome == "ran"


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


# First lines of the errors of the hub's client, most of them seen from servers that were made to behave so.
NO_ANSWER = (
    "Got: ConnectError: [Errno 111] Connection refused",
    "Got: ConnectError: [Errno -2] Name or service not known",
    "Got: HfHubHTTPError: Server error '503 Service Unavailable' for url 'http://127.0.0.1:42129/api/models/a/b'",
    "Got: HfHubHTTPError: 429 Too Many Requests for url: http://127.0.0.1:45313/api/models/a/b.",
    "Server disconnected without sending a response.",
    "[Errno 104] Connection reset by peer",
    "The read operation timed out",
    "An error happened while trying to locate the file. Please check your connection and try again.",
)
WRONG_ANSWER = (
    "Got: HfHubHTTPError: Client error '404 Not Found' for url 'http://127.0.0.1:42900/api/models/a/b'",
    "404 Client Error.",
    "Client error '401 Unauthorized' for url 'http://127.0.0.1:42900/api/models/a/b'",
    "Got: HfHubHTTPError: 403 Forbidden: None.",
    "[Errno 28] No space left on device",
)


def is_interruption(got: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a stage is to be tried again when the hub's client fails with `got`, told in embed's own words."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(got)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(EncoderError) as caught:
        locate_model("mini", EncoderParameters(hub="a/b", revision="0" * 40))
    printed = f"Running stage\nerror: {caught.value}\nERROR: failed to reproduce 'embed@a-mini'\n"
    return INTERRUPTIONS["embed"].search(printed) is not None


@pytest.mark.parametrize("got", NO_ANSWER)
def test_an_encoder_whose_hub_does_not_answer_is_worth_another_attempt(
    got: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_interruption(got, monkeypatch)


@pytest.mark.parametrize("got", WRONG_ANSWER)
def test_an_encoder_that_the_hub_refuses_is_not(got: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_interruption(got, monkeypatch)


def test_an_encoder_whose_hub_does_not_answer_is_tried_again_as_a_download_is(finished: Checkout) -> None:
    finished.change("dimension: 4", "dimension: 5")
    retries = Retries(download=Retry(attempts=3, delay=0.01))

    def attempts(got: str) -> int:
        error = EncoderError("encoder 'mini' cannot be fetched", where="a/b", got=got, remedy="wait")
        (finished.root / "stage.py").write_text(f"print({f'error: {error}'!r}); raise SystemExit(2)")
        with pytest.raises(RunError):
            run_stage("embed@a", dvcfile=DVCFILE, root=finished.root, resume="resume", retries=retries)
        return log_file("embed@a", root=finished.root).read_text().count("error: ")

    assert attempts("The read operation timed out") == 3
    assert attempts("404 Client Error.") == 1


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
