import re
import signal

import pytest
import yaml
from prefect.context import refresh_global_settings_context

from flows.repro import plain_repro
from flows.reproduce import reproduce
from pipeline.errors import RunError
from tests.flows.checkout import Checkout, alive, processes_in, until

EVERYTHING = {
    "download-quick-a",
    "download-quick-b",
    "embed-quick-a",
    "embed-quick-b",
    "evaluate-quick",
    "report-quick",
}


def test_nothing_stale_starts_no_flow_and_does_not_import_prefect(finished: Checkout) -> None:
    printed = finished.run("""
        import sys
        for _ in range(2):
            summary = reproduce("quick", 2, root)
            print(len(summary.results), "prefect" in sys.modules, end="; ")
            sys.modules.pop("dvc.repo", None)
        print("dvc.repo" in sys.modules)
    """)
    assert printed.count("everything is up to date") == 2
    assert "0 False; False" in printed, "the second time nothing was touched, so DVC was not even asked"
    assert finished.ran() == set()


def test_a_changed_parameter_runs_exactly_its_stages_and_their_descendants(finished: Checkout) -> None:
    finished.change("a: 1", "a: 2")
    summary = reproduce("quick", 2, finished.root)
    assert finished.ran() == {"download-quick-a", "embed-quick-a", "evaluate-quick", "report-quick"}
    assert {result.outcome for result in summary.results} == {"ran"}
    assert reproduce("quick", 2, finished.root).results == ()


def test_a_stage_that_comes_out_the_same_does_not_run_its_descendants(finished: Checkout) -> None:
    finished.change("comment: none", "comment: some")
    summary = reproduce("quick", 2, finished.root)
    assert finished.ran() == {"evaluate-quick"}
    assert {result.stage: result.outcome for result in summary.results} == {"evaluate": "ran", "report": "unchanged"}
    assert reproduce("quick", 2, finished.root).results == (), "DVC itself finds the rest up to date too"


def test_a_parameter_put_back_is_restored_from_the_run_cache(finished: Checkout) -> None:
    finished.change("rounding: 2", "rounding: 3")
    reproduce("quick", 2, finished.root)
    finished.change("rounding: 3", "rounding: 2")
    finished.forget()
    summary = reproduce("quick", 2, finished.root)
    assert "evaluate-quick" not in finished.ran()
    assert next(result.outcome for result in summary.results if result.stage == "evaluate") == "restored"


def test_a_parallel_run_overlaps_independent_stages_and_leaves_the_lock_of_a_plain_run(
    fresh: Checkout, finished: Checkout
) -> None:
    # The later names end first, so DVC appends them to dvc.lock first.
    fresh.ask("download-quick-a", "linger", 8)  # long enough for a busy machine to start a process
    fresh.ask("download-quick-b", "linger", 1)
    reproduce("quick", 2, fresh.root)
    times = fresh.times()
    assert set(times) == EVERYTHING
    assert times["download-quick-b"][0] < times["download-quick-a"][1]
    assert times["download-quick-a"][0] < times["download-quick-b"][1]
    # b's embedding does not wait for a's download.
    assert times["embed-quick-b"][0] < times["download-quick-a"][1]
    assert (fresh.root / "dvc.lock").read_bytes() == (finished.root / "dvc.lock").read_bytes()


def test_a_failing_stage_skips_its_descendants_and_the_run_resumes_once_it_is_mended(
    finished: Checkout, capfd: pytest.CaptureFixture[str]
) -> None:
    finished.change("dimension: 4", "dimension: 5")
    finished.ask("embed-quick-a", "fail")
    with pytest.raises(RunError) as caught:
        reproduce("quick", 2, finished.root)
    message = str(caught.value)
    assert "the stage 'embed@a' failed" in message
    assert "no such thing" in message, "the stage's own last words"
    assert "sentfold run --suite quick --jobs 2" in message
    assert "skipped, because they need it: evaluate, report" in message
    log = finished.root / ".dvc/tmp/sentfold-logs/embed@a.log"
    assert str(log.relative_to(finished.root)) in message
    assert "embed-quick-a was asked to fail" in log.read_text()
    assert finished.ran() == {"embed-quick-b"}
    printed = capfd.readouterr()
    assert "2 skipped" in printed.out and "1 failed" in printed.out and "1 ran" in printed.out
    assert "Traceback" not in printed.out + printed.err

    finished.mend("embed-quick-a")
    finished.forget()
    reproduce("quick", 2, finished.root)
    assert finished.ran() == {"embed-quick-a", "evaluate-quick", "report-quick"}


def test_a_second_run_waits_for_the_first_or_is_refused_with_its_number(finished: Checkout) -> None:
    finished.change("rounding: 2", "rounding: 3")
    finished.ask("evaluate-quick", "linger", 4)
    first = finished.start('plain_repro("quick", root)')
    finished.pid_of("evaluate-quick")
    with pytest.raises(RunError, match="another run holds this checkout") as caught:
        reproduce("quick", 2, finished.root, wait=False)
    assert f"process {first.pid}" in caught.value.got
    assert "sentfold repro --suite quick" in caught.value.got
    assert reproduce("quick", 2, finished.root).results == (), "the first did it all"
    assert first.wait(30) == 0
    assert finished.ran() == {"evaluate-quick", "report-quick"}


def test_a_users_own_dvc_repro_is_waited_for_and_what_it_made_is_not_made_again(
    finished: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    finished.change("rounding: 2", "rounding: 3")
    finished.ask("evaluate-quick", "linger", 4)
    users = finished.start('import subprocess, sys; sys.exit(subprocess.call([sys.executable, "-m", "dvc", "repro"]))')
    finished.pid_of("evaluate-quick")
    assert reproduce("quick", 2, finished.root).results == (), "the user's run did it all"
    assert "another dvc process is in its way (process " in capsys.readouterr().out
    assert users.wait(60) == 0
    assert finished.ran() == {"evaluate-quick", "report-quick"}


@pytest.mark.slow
def test_a_users_own_dvc_repro_is_refused_by_dvc_while_a_run_writes_and_harms_nothing(finished: Checkout) -> None:
    finished.change("rounding: 2", "rounding: 3")
    finished.ask("evaluate-quick", "linger", 20)  # longer than dvc takes to start on a busy machine
    run = finished.start('reproduce("quick", 2, root)')
    finished.pid_of("evaluate-quick")
    users = finished.start('import subprocess, sys; sys.exit(subprocess.call([sys.executable, "-m", "dvc", "repro"]))')
    printed, _ = users.communicate(timeout=120)
    assert users.returncode == 255
    assert "is busy, it is being blocked by" in printed
    assert run.wait(120) == 0
    assert finished.ran() == {"evaluate-quick", "report-quick"}
    assert reproduce("quick", 2, finished.root).results == ()


def test_a_target_brings_itself_and_what_it_needs_up_to_date_and_nothing_else(finished: Checkout) -> None:
    finished.change("dimension: 4", "dimension: 5")
    finished.change("b: 1", "b: 2")
    summary = reproduce("quick", 2, finished.root, targets=("data/quick/spaces/a",))
    assert {result.stage for result in summary.results} == {"embed@a"}
    reproduce("quick", 2, finished.root, targets=("embed",))
    assert finished.ran() == {"embed-quick-a", "download-quick-b", "embed-quick-b"}
    finished.forget()
    reproduce("quick", 2, finished.root)
    assert finished.ran() == {"evaluate-quick", "report-quick"}


def test_a_limit_on_a_kind_keeps_its_stages_apart_though_jobs_would_allow_both(finished: Checkout) -> None:
    (finished.root / "run.yaml").write_text("kinds: {memory: {stages: [embed], at_once: 1}}\n")
    finished.change("dimension: 4", "dimension: 5")
    finished.ask("embed-quick-a", "linger", 1)
    finished.ask("embed-quick-b", "linger", 1)
    reproduce("quick", 4, finished.root)
    first, second = sorted(time for label, time in finished.times().items() if label.startswith("embed"))
    assert first[1] <= second[0]


def test_the_other_suite_runs_by_itself_and_leaves_the_first_alone(finished: Checkout) -> None:
    lock = finished.root / "dvc.lock"
    before = lock.read_bytes()
    summary = reproduce("other", 2, finished.root)
    assert finished.ran() == {label.replace("quick", "other") for label in EVERYTHING}
    assert "suites/other/dvc.yaml:embed@a" in {result.stage for result in summary.results}
    assert lock.read_bytes() == before
    other = yaml.safe_load((finished.root / "suites/other/dvc.lock").read_text())
    assert other["stages"].keys() == yaml.safe_load(before)["stages"].keys()
    assert reproduce("quick", 2, finished.root).results == ()


@pytest.mark.slow
def test_a_run_without_a_server_brings_its_own_and_takes_it_along(serverless_finished: Checkout) -> None:
    checkout = serverless_finished
    checkout.change("rounding: 2", "rounding: 3")
    printed = checkout.run('reproduce("quick", 2, root)')
    assert re.search(r"2 stages in [\d.]+ s: 2 ran", printed)
    assert len(printed.splitlines()) == 6, "one line to begin, two per stage, one to end"
    assert checkout.ran() == {"evaluate-quick", "report-quick"}
    assert processes_in(checkout.root) == []


def test_a_configured_server_that_does_not_answer_is_named(finished: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    finished.change("rounding: 2", "rounding: 3")
    with monkeypatch.context() as patch:
        patch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
        refresh_global_settings_context()
        with pytest.raises(RunError, match="the configured Prefect server does not answer") as caught:
            reproduce("quick", 2, finished.root)
    refresh_global_settings_context()
    assert "http://127.0.0.1:9/api/health" in caught.value.got
    assert finished.ran() == set()


@pytest.mark.parametrize("code", ['reproduce("quick", 2, root)', 'plain_repro("quick", root)'])
def test_a_killed_runner_leaves_no_process_and_the_next_run_starts_at_once(finished: Checkout, code: str) -> None:
    kill_during_evaluate(finished, code)
    finished.mend("evaluate-quick")
    plain_repro("quick", finished.root, wait=False)
    assert finished.ran() == {"evaluate-quick", "report-quick"}


@pytest.mark.slow
def test_a_killed_runner_takes_its_own_prefect_server_along(serverless_finished: Checkout) -> None:
    kill_during_evaluate(serverless_finished, 'reproduce("quick", 2, root)')


def kill_during_evaluate(checkout: Checkout, code: str) -> None:
    """Kill a run while its stage would go on for a minute; every process of it must end."""
    checkout.change("rounding: 2", "rounding: 3")
    checkout.ask("evaluate-quick", "linger", 60)
    runner = checkout.start(code)
    stage = checkout.pid_of("evaluate-quick")
    assert len(processes_in(checkout.root)) >= 4, "the runner, a guard, dvc and the stage"
    runner.send_signal(signal.SIGKILL)
    until(lambda: not processes_in(checkout.root), "every process of the run to end", seconds=15)
    assert not alive(stage)
    assert checkout.ran() == set(), "the stage did not finish by itself"


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_interrupted_run_ends_its_stages_and_does_not_wait_for_them(
    finished: Checkout, number: signal.Signals
) -> None:
    finished.change("rounding: 2", "rounding: 3")
    # A run that waited for its stage would take 300 s; to end may take a busy machine a while.
    finished.ask("evaluate-quick", "linger", 300)
    runner = finished.start('reproduce("quick", 2, root)')
    finished.pid_of("evaluate-quick")
    runner.send_signal(number)
    assert runner.wait(120) != 0
    until(lambda: not processes_in(finished.root), "every process of the run to end", seconds=60)


def test_a_failing_plain_run_raises_and_keeps_the_lock_in_order(finished: Checkout) -> None:
    finished.change("rounding: 2", "rounding: 3")
    finished.ask("report-quick", "fail")
    with pytest.raises(RunError, match="dvc repro of suite 'quick' failed with exit code"):
        plain_repro("quick", finished.root)
    assert finished.ran() == {"evaluate-quick"}
