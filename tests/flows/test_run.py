"""`sentfold run` on a real checkout with real DVC and a real Prefect server."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
import yaml

from tests.flows.checkout import Checkout, alive, plant, processes_in, until

EVERYTHING = {
    "download-quick-a",
    "download-quick-b",
    "embed-quick-a",
    "embed-quick-b",
    "evaluate-quick",
    "report-quick",
}
UP_TO_DATE = "everything is up to date"


@pytest.mark.slow
def test_nothing_stale_starts_no_flow_and_does_not_import_prefect(finished: Checkout, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "first/prefect.py").write_text("raise SystemExit('prefect was imported')")
    path = f"{tmp_path}/first{os.pathsep}{finished.environment['PYTHONPATH']}"
    finished.environment = {**finished.environment, "PYTHONPATH": path}
    summary = finished.root / "reports/quick/summary.txt"
    summary.parent.mkdir()
    summary.write_text("a row\n" * 100)
    first, second, third = finished.run().splitlines()
    assert first == "suite quick: looking for stages that are stale"
    assert UP_TO_DATE in second
    assert third == "table: sentfold show --suite quick; report: reports/quick/report.md"
    assert finished.ran() == set()


@pytest.mark.slow
def test_a_changed_parameter_runs_exactly_its_stages_and_their_descendants(finished: Checkout) -> None:
    finished.change("a: 1", "a: 2")
    summary = finished.root / "reports/quick/summary.txt"
    summary.parent.mkdir()
    summary.write_text("the table\n")
    (finished.root / "reports/quick.txt").write_text("mine")  # of which DVC makes another file
    printed = finished.run()
    assert "4 stages in" in printed and "copied reports/quick.txt to .sentfold/kept" in printed
    assert [file.read_text() for file in (finished.root / ".sentfold/kept").rglob("quick.txt")] == ["mine"]
    assert re.search(r"\[1/4\] download@a: ran after .* s, about \d\d:\d\d left", printed)
    assert printed.endswith("the table\n\nreport: reports/quick/report.md\n")
    assert finished.ran() == {"download-quick-a", "embed-quick-a", "evaluate-quick", "report-quick"}
    assert UP_TO_DATE in finished.run()


@pytest.mark.slow
def test_a_stage_that_comes_out_the_same_does_not_run_its_descendants(finished: Checkout) -> None:
    finished.change("comment: none", "comment: some")
    printed = finished.run()
    assert finished.ran() == {"evaluate-quick"}
    assert "evaluate: ran" in printed and "report: unchanged" in printed
    assert UP_TO_DATE in finished.run(), "DVC itself finds the rest up to date too"


@pytest.mark.slow
def test_a_parallel_run_overlaps_independent_stages_and_records_what_dvc_repro_records(
    fresh: Checkout, finished: Checkout
) -> None:
    fresh.ask("download-quick-a", "linger", 12)  # long enough for a busy machine to start a process
    fresh.ask("download-quick-b", "linger", 1)
    fresh.run()
    times = fresh.times()
    assert set(times) == EVERYTHING
    assert times["download-quick-b"][0] < times["download-quick-a"][1]
    assert times["download-quick-a"][0] < times["download-quick-b"][1]
    # b's embedding does not wait for a's download.
    assert times["embed-quick-b"][0] < times["download-quick-a"][1]
    locks = [yaml.safe_load((checkout.root / "dvc.lock").read_text()) for checkout in (fresh, finished)]
    assert locks[0] == locks[1]


@pytest.mark.slow
def test_a_failing_stage_skips_its_descendants_and_the_run_resumes_once_it_is_mended(finished: Checkout) -> None:
    finished.change("dimension: 4", "dimension: 5")
    finished.ask("embed-quick-a", "fail")
    code, printed = finished.call("flows", "run")
    assert code == 2
    assert "the stage 'embed@a' failed" in printed
    assert "no such thing" in printed, "the stage's own last words"
    assert "sentfold run --suite quick --jobs 2" in printed
    assert "skipped, because they need it: evaluate, report" in printed
    log = finished.root / ".dvc/tmp/sentfold-logs/embed@a.log"
    assert str(log.relative_to(finished.root)) in printed
    assert "embed-quick-a was asked to fail" in log.read_text()
    assert finished.ran() == {"embed-quick-b"}
    assert "2 skipped" in printed and "1 failed" in printed and "1 ran" in printed
    assert "Traceback" not in printed

    finished.mend("embed-quick-a")
    finished.forget()
    finished.run()
    assert finished.ran() == {"embed-quick-a", "evaluate-quick", "report-quick"}


@pytest.mark.slow
def test_a_second_run_waits_for_the_first_or_is_refused_with_its_number(finished: Checkout) -> None:
    finished.change("rounding: 2", "rounding: 3")
    finished.ask("evaluate-quick", "linger", 6)
    first = finished.start("flows", "run")
    finished.pid_of("evaluate-quick")
    code, printed = finished.call("flows", "run", "--no-wait")
    assert code == 2
    assert "another run holds this checkout" in printed
    assert f"process {first.pid}" in printed
    assert "sentfold run --suite quick" in printed
    assert UP_TO_DATE in finished.run(), "the first did it all"
    assert first.wait(30) == 0
    assert finished.ran() == {"evaluate-quick", "report-quick"}


@pytest.mark.slow
def test_a_users_own_dvc_repro_is_waited_for_and_what_it_made_is_not_made_again(finished: Checkout) -> None:
    finished.change("rounding: 2", "rounding: 3")
    finished.ask("evaluate-quick", "linger", 6)
    users = finished.start("dvc", "repro", "dvc.yaml")
    finished.pid_of("evaluate-quick")
    printed = finished.run()
    assert UP_TO_DATE in printed, "the user's run did it all"
    assert "attempt 2 of 6" in printed
    assert users.wait(60) == 0
    assert finished.ran() == {"evaluate-quick", "report-quick"}


@pytest.mark.slow
def test_a_suite_that_its_own_check_refuses_is_not_run(finished: Checkout) -> None:
    finished.change("rounding: 2", "rounding: 3")
    (finished.root / "pipeline/__main__.py").write_text(
        "import sys\nsys.exit('rounding is odd' if 'check' in sys.argv else 0)"
    )
    code, printed = finished.call("flows", "run")
    assert code == 2
    assert "rounding is odd" in printed and "sentfold check --suite quick" in printed
    assert finished.ran() == set()


@pytest.mark.slow
def test_an_error_of_the_suite_is_the_only_one(finished: Checkout) -> None:
    finished.change("rounding: 2", "rounding: 3")
    says = "error: there is no corpus 'leee'\n  to do     did you mean lee?"
    (finished.root / "pipeline/__main__.py").write_text(f"import sys\nsys.exit({says!r})")
    code, printed = finished.call("flows", "run")
    assert (code, printed.partition("\n")[2]) == (2, f"{says}\n")
    assert finished.ran() == set()


@pytest.mark.slow
def test_a_missing_mirror_is_one_error_before_any_download_begins(finished: Checkout) -> None:
    finished.edit("plan.yaml", "suite: quick", "suite: quick\nsource: mirror")
    finished.change("a: 1", "a: 2")
    code, printed = finished.call("flows", "run")
    assert code == 2
    assert printed.count("error:") == 1 and "there is no mirror" in printed
    assert "set SENTFOLD_MIRROR=FOLDER" in printed
    assert "stale, 2 at a time" not in printed
    assert finished.ran() == set()


@pytest.mark.slow
def test_a_mirror_is_not_asked_for_where_no_download_is_stale(finished: Checkout) -> None:
    finished.edit("plan.yaml", "suite: quick", "suite: quick\nsource: mirror")
    finished.run()
    assert finished.ran() == {"report-quick"}


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [("--profile", "runn.yaml", "there is no run profile 'runn.yaml'"), ("--target", "evalaute", "mean evaluate?")],
)
def test_a_wrong_option_is_one_error_at_once(finished: Checkout, option: str, value: str, named: str) -> None:
    finished.change("a: 1", "a: 2")
    code, printed = finished.call("flows", "run", option, value)
    assert code == 2
    assert printed.count("error:") == 1 and named in printed
    assert finished.ran() == set()


@pytest.mark.slow
def test_a_target_brings_itself_and_what_it_needs_up_to_date_and_nothing_else(finished: Checkout) -> None:
    finished.change("dimension: 4", "dimension: 5")
    finished.change("b: 1", "b: 2")
    finished.run("--target", "data/quick/spaces/a")
    assert finished.ran() == {"embed-quick-a"}
    finished.forget()
    finished.run("--target", "embed")
    assert finished.ran() == {"download-quick-b", "embed-quick-b"}


@pytest.mark.slow
def test_another_suite_has_its_own_stages_and_its_own_lock(finished: Checkout) -> None:
    lock = finished.root / "dvc.lock"
    before = lock.read_bytes()
    printed = finished.run("--suite", "other")
    assert finished.ran() == {label.replace("quick", "other") for label in EVERYTHING}
    assert "suites/other/dvc.yaml:embed@a: ran" in printed
    assert lock.read_bytes() == before
    other = yaml.safe_load((finished.root / "suites/other/dvc.lock").read_text())
    assert other["stages"].keys() == yaml.safe_load(before)["stages"].keys()
    assert UP_TO_DATE in finished.run()


@pytest.mark.slow
def test_a_run_without_a_server_brings_its_own_and_takes_it_along(serverless_finished: Checkout) -> None:
    checkout = serverless_finished
    mark = plant(checkout.root)
    checkout.change("rounding: 2", "rounding: 3")
    printed = checkout.run()
    assert not mark.exists(), f"{mark.read_text()} of the checkout took the place of a library"
    assert re.search(r"2 stages in [\d.]+ s: 2 ran", printed)
    assert checkout.ran() == {"evaluate-quick", "report-quick"}
    assert processes_in(checkout.root) == []


@pytest.mark.slow
def test_a_configured_server_that_does_not_answer_is_named(finished: Checkout) -> None:
    finished.change("rounding: 2", "rounding: 3")
    finished.environment = {**finished.environment, "PREFECT_API_URL": "http://127.0.0.1:9/api"}
    code, printed = finished.call("flows", "run")
    assert code == 2
    assert "the configured Prefect server does not answer" in printed
    assert "http://127.0.0.1:9/api/health" in printed


@pytest.mark.slow
def test_a_killed_runner_leaves_no_process_and_the_next_run_starts_at_once(finished: Checkout) -> None:
    kill_during_evaluate(finished)
    finished.mend("evaluate-quick")
    finished.run("--no-wait")
    assert finished.ran() == {"evaluate-quick", "report-quick"}


@pytest.mark.slow
def test_a_killed_runner_takes_its_own_prefect_server_along(serverless_finished: Checkout) -> None:
    kill_during_evaluate(serverless_finished)


def kill_during_evaluate(checkout: Checkout) -> None:
    """Kill a run while its stage would go on for a minute; every process of it must end."""
    checkout.change("rounding: 2", "rounding: 3")
    checkout.ask("evaluate-quick", "linger", 60)
    runner = checkout.start("flows", "run")
    stage = checkout.pid_of("evaluate-quick")
    assert len(processes_in(checkout.root)) >= 5, "the runner, the flow, a guard, dvc and the stage"
    runner.send_signal(signal.SIGKILL)
    until(lambda: not processes_in(checkout.root), "every process of the run to end", seconds=15)
    assert not alive(stage)
    assert checkout.ran() == set(), "the stage did not finish by itself"


@pytest.mark.slow
def test_a_killed_dvc_repro_takes_its_stage_along(finished: Checkout) -> None:
    finished.change("rounding: 2", "rounding: 3")
    finished.ask("evaluate-quick", "linger", 60)
    runner = finished.start("dvc", "repro", "dvc.yaml")
    finished.pid_of("evaluate-quick")
    runner.send_signal(signal.SIGKILL)
    until(lambda: not processes_in(finished.root), "every process of the run to end", seconds=15)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_interrupted_run_ends_its_stages_and_does_not_wait_for_them(
    finished: Checkout, number: signal.Signals
) -> None:
    finished.change("rounding: 2", "rounding: 3")
    # A run that waited for its stage would take 300 s; to end may take a busy machine a while.
    finished.ask("evaluate-quick", "linger", 300)
    runner = finished.start("flows", "run")
    finished.pid_of("evaluate-quick")
    runner.send_signal(number)
    assert runner.wait(120) != 0
    until(lambda: not processes_in(finished.root), "every process of the run to end", seconds=60)
