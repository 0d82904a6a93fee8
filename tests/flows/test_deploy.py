"""Deployments at a real Prefect server, run by real workers when their schedule says so."""

import asyncio
import json
import os
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from flows.deploy import AUTOMATION, job_template
from flows.flow import _run_commands as run_commands
from flows.flow import append, arrived_files, fenced, private_copies
from flows.server import Server, asks_for_password
from sentfold.decision.spaces import LinearSpace, save_space
from sentfold.errors import RunError
from sentfold.locks import CHECKOUT_LOCK
from sentfold.manifold.base.linear import LinearMap
from sentfold.numeric_profile import SETTINGS
from tests.flows.checkout import SOURCE, Checkout, alive, plant, settings_of
from tests.flows.prefect_services import Services, prefect_services, wait_until

# From the death of a flow to the end of the next run. A slot of Prefect's would be free after 300 s at the earliest.
PROMPT_SECONDS = 240


@pytest.fixture
def environment(serverless: dict[str, str]) -> dict[str, str]:
    """That of `finished`: each test here has a server of its own, or is about having none."""
    return serverless


@pytest.fixture
def services(tmp_path: Path, serverless: dict[str, str]) -> Iterator[Services]:
    home = tmp_path / "prefect"
    home.mkdir()
    with prefect_services(home, serverless) as running:
        yield running


@pytest.fixture
def deployable(finished: Checkout, services: Services) -> Checkout:
    """`finished` with the project's own prefect.yaml in it."""
    shutil.copy(SOURCE / "prefect.yaml", finished.root)
    finished.environment = services.environment
    return finished


def deploy(checkout: Checkout, *, cron: str) -> str:
    """Register the deployments, the nightly one with another schedule."""
    path = checkout.root / "prefect.yaml"
    content = yaml.safe_load(path.read_text())
    nightly = next(deployment for deployment in content["deployments"] if deployment["name"] == "nightly")
    nightly["schedules"] = [{"cron": cron, "timezone": "UTC"}]
    path.write_text(yaml.safe_dump(content))
    code, printed = checkout.call("flows", "deploy")
    assert code == 0, printed
    return printed


def prefect(services: Services, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "prefect", *words],
        env={**services.environment, "COLUMNS": "300"},
        cwd=services.home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def names(services: Services) -> list[str]:
    """The states of all runs but those that a schedule has yet to begin."""
    return [run.state_name for run in services.runs() if run.state_name != "Scheduled"]


@pytest.mark.slow
def test_a_server_in_the_background_imports_no_folder_of_data_either(
    tmp_path: Path, serverless: dict[str, str]
) -> None:
    with prefect_services(tmp_path, serverless, "--background"):
        pass  # it answers, and has imported none


def test_a_launch_of_nothing_is_an_error_that_says_what_to_write() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "flows.launch"], cwd=SOURCE, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "") and "flows.launch prefect" in done.stderr


@pytest.mark.slow
def test_a_scheduled_run_fires_and_brings_the_suite_up_to_date(deployable: Checkout, services: Services) -> None:
    mark = plant(deployable.root)
    printed = deploy(deployable, cron="* * * * *")
    for name in ("sentfold/nightly", "sentfold/on-demand", "sentfold-audit/audit"):
        assert f"deployed {name}\n" in printed
    assert "deployed sentfold/nightly" in deploy(deployable, cron="* * * * *"), "it can be done again"
    assert len(services.automations(AUTOMATION)) == 1

    report = deployable.root / "reports/quick"
    report.mkdir()
    (report / "summary.txt").write_text("minilm 1.00\n")
    (report / "scores").mkdir()
    falling = {"corpora": {"a": {"scores": {"spearman.all.cosine": {"high": -5.0}}}}}
    (report / "scores/minilm.json").write_text(json.dumps(falling))

    evil = services.home / "evil"
    for variable in (f"command=touch {evil}", 'env={"LD_PRELOAD": "evil"}', f"working_dir={services.home}"):
        with pytest.raises(AssertionError, match=r"[Aa]dditional properties"):
            prefect(services, "deployment", "run", "sentfold/on-demand", "--job-variable", variable)

    deployable.change("rounding: 2", "rounding: 3")
    services.start_worker()
    wait_until(lambda: "Completed" in names(services), "a scheduled run to complete", seconds=1200)
    assert deployable.ran() == {"evaluate-quick", "report-quick"}
    run = next(run for run in services.runs() if run.state_name == "Completed")
    assert run.auto_scheduled, "the schedule, not a user, asked for it"
    artifacts = services.artifacts()
    stages = {row["stage"]: row for row in json.loads(artifacts["sentfold-quick-stages"])}
    assert {name for name, row in stages.items() if row["outcome"] == "ran"} == {"evaluate", "report"}
    results = artifacts["sentfold-quick-results"]
    assert "minilm 1.00" in results and "cosine falls as the scores rise, by minilm" in results

    assert not mark.exists(), f"{mark.read_text()} of the checkout took the place of a library"


@pytest.mark.slow
def test_the_schedule_appends_sentences_that_arrive_runs_what_is_stale_and_tells_of_a_failure(
    deployable: Checkout, services: Services
) -> None:
    from prefect.blocks.notifications import CustomWebhookNotificationBlock

    root, mark = deployable.root, plant(deployable.root)
    save_space(LinearSpace(LinearMap(np.zeros(256), np.eye(256)[:, :9], np.ones(9))), root / "space")
    (root / "arrived").mkdir()
    (root / "arrived/monday.txt").write_text("A dog sleeps.\nSnow falls on the harbour.\n")
    with listener() as (url, heard), services.client_settings():
        block = CustomWebhookNotificationBlock(name="team", url=url, json_data={"text": "{{body}}"})
        block.save("team")
        code, printed = deployable.call("flows", "deploy", "--notify", "custom-webhook/team")
        assert code == 0, printed
        code, printed = deployable.call("flows", "deploy", "--notify", "custom-webhook/nobody")
        assert code == 2 and "has no block 'custom-webhook/nobody'" in printed
        options = {"texts": "arrived", "target": "all.parquet", "encoder": "wordllama", "space": "space"}
        words = ["deploy", "flows.flow.append", "--name", "arrivals", "--pool", "sentfold", "--cron", "* * * * *"]
        command = [Path(sys.executable).with_name("prefect"), "--no-prompt", *words]  # as docs/running.md has it
        command += ["--params", json.dumps({**options, "suite": "quick"})]
        done = subprocess.run(
            command, cwd=root, env=deployable.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

        deployable.change("rounding: 2", "rounding: 3")
        services.start_worker()
        wait_until(lambda: "Completed" in names(services), "the suite after the append", seconds=1200)
        assert deployable.ran() == {"evaluate-quick", "report-quick"}
        artifacts = services.artifacts()
        assert "2 texts added, 2 in all" in artifacts["sentfold-append"]
        made = {row["output"]: row for row in json.loads(artifacts["sentfold-quick-lineage"])}
        entry = yaml.safe_load((root / "dvc.lock").read_text())["stages"]["evaluate"]["outs"][0]
        assert made[entry["path"]]["md5"] == entry["md5"] and made[entry["path"]]["host"] == socket.gethostname()

        # Sentences that are there already, as a firing that comes twice brings them, and a new one; a stage that fails.
        (root / "arrived/tuesday.txt").write_text("Snow falls on the harbour.\nPrices rose again.\n")
        deployable.ask("evaluate-quick", "fail")
        deployable.change("rounding: 3", "rounding: 4")
        wait_until(lambda: "Failed" in names(services), "the run that fails", seconds=1200)
        assert len(pq.read_table(root / "all.parquet")) == 3
        wait_until(
            lambda: any("the stage 'evaluate' failed" in text for text in heard), "the notification", seconds=300
        )
        (root / "arrived/a.parquet").write_bytes(b"no Parquet file")  # comes before all others, and stops none
        (root / "arrived/wednesday.txt").write_text("Rain stopped at noon.\n")
        wait_until(
            lambda: len(pq.read_table(root / "all.parquet")) == 4, "the files after a malformed one", seconds=600
        )
        assert not mark.exists(), f"{mark.read_text()} of the checkout took the place of a library"


def test_files_that_arrive_by_a_link_are_not_read(tmp_path: Path) -> None:
    """The flow's account may read more than who puts files into the folder."""
    (tmp_path / "secret").write_text("A token.\n")
    folder = tmp_path / "arrived"
    (folder / "within").mkdir(parents=True)
    for name in ("b.txt", "a.txt"):
        (folder / name).write_text("A sentence.\n")
    (folder / "c.txt").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / "d.txt")
    assert arrived_files(folder) == [str(folder / "a.txt"), str(folder / "b.txt")]


def test_a_link_that_takes_the_place_of_a_file_after_the_listing_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("A token.\n")
    for name in ("a.txt", "b.txt", "c.txt", "d.txt", "e.txt"):
        (tmp_path / name).write_text("A sentence.\n")
    copies = private_copies([str(tmp_path / f"{name}.txt") for name in "abcde"], unread := [])
    first = Path(next(copies))
    for name in "bcd":
        (tmp_path / f"{name}.txt").unlink()
    (tmp_path / "b.txt").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "c.txt")
    (tmp_path / "d.txt").mkdir()
    assert (first.name, first.read_text(), first.parent.stat().st_mode & 0o777) == ("a.txt", "A sentence.\n", 0o700)
    assert [Path(copy).name for copy in copies] == ["e.txt"] and unread == []
    assert not first.parent.exists()


def test_a_file_of_holes_among_those_that_arrive_is_not_copied_and_stops_no_other(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("A sentence.\n")
    os.truncate(tmp_path / "a.txt", 1 << 40)
    copies = private_copies([str(tmp_path / "a.txt"), str(tmp_path / "b.txt")], unread := [])
    assert [Path(copy).name for copy in copies] == ["b.txt"]
    (said,) = unread
    assert said.startswith(f"{tmp_path}/a.txt: most of a file was never written")


def test_a_file_that_grows_while_it_is_copied_fills_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("A sentence.\n" * 200_000)
    size = os.fstat

    def grow(handle: int) -> os.stat_result:
        found = size(handle)
        if stat.S_ISREG(found.st_mode) and found.st_size == 2_400_000:
            os.truncate(tmp_path / "a.txt", 1 << 40)  # another process, in the moment behind the look
        return found

    monkeypatch.setattr(os, "fstat", grow)
    assert list(private_copies([str(tmp_path / "a.txt")], unread := [])) == []
    assert len(unread) == 1


@pytest.mark.slow
def test_a_file_that_cannot_be_opened_stops_no_other_and_fails_the_run(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is too long for the system; a file that another account delivered may be closed to the flow's."""
    from prefect import flow
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

    (tmp_path / "a.txt").write_text("A sentence.\n")
    files, unread = [str(tmp_path / f"{'c' * 300}.txt"), str(tmp_path / "a.txt")], list[str]()
    commands = (["platform", copy] for copy in private_copies(files, unread))

    @flow
    def run() -> None:
        run_commands(commands, key="sentfold-append", unread=unread)

    with (
        temporary_settings({PREFECT_API_URL: server.url, PREFECT_API_AUTH_STRING: server.password}),
        pytest.raises(RunError, match=r"exit code 1, and 0 of 1 others failed") as caught,
    ):
        run()
    assert "ccc.txt: File name too long" in caught.value.got


def test_a_file_that_is_not_read_is_named_by_its_own_name_and_the_suite_runs_all_the_same(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error named the private copy, which is gone, and a bad file kept the suite stale as long as it lay there."""
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

    (tmp_path / "arrived").mkdir()
    (tmp_path / "arrived/b.bin").write_bytes(b"\xff\xfe\x00")
    (tmp_path / ".dvc").mkdir()
    monkeypatch.chdir(tmp_path)
    ran = list[str]()
    monkeypatch.setattr("flows.flow.sentfold", lambda suite, jobs: ran.append(suite))
    with (
        temporary_settings({PREFECT_API_URL: server.url, PREFECT_API_AUTH_STRING: server.password}),
        pytest.raises(RunError, match="and 0 of 0 others failed") as caught,
    ):
        append("arrived", "all.parquet", "wordllama", "space", suite="quick")
    assert ran == ["quick"]
    assert "sentfold-append-" not in str(caught.value) and "append b.bin all.parquet" in caught.value.where


def test_a_text_does_not_end_its_block_of_markdown() -> None:
    assert fenced("a\n```\n# b") == "````\na\n```\n# b\n````\n"
    assert fenced("a") == "```\na\n```\n"


@contextmanager
def listener() -> Iterator[tuple[str, list[str]]]:
    """An address on loopback that takes messages as a chat's webhook does, and the texts that arrived."""
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"])
            self.send_response(200)
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", heard
        server.shutdown()


@pytest.mark.slow
def test_a_killed_flow_and_worker_block_nothing_and_the_run_is_called_crashed(
    deployable: Checkout, services: Services
) -> None:
    deploy(deployable, cron="0 0 1 1 *")
    deployable.change("rounding: 2", "rounding: 3")
    deployable.ask("evaluate-quick", "linger", 3600)
    worker = services.start_worker()
    prefect(services, "deployment", "run", "sentfold/on-demand")
    stage = deployable.pid_of("evaluate-quick", seconds=1200)
    flow = json.loads((deployable.root / CHECKOUT_LOCK).read_text())["pid"]
    os.kill(worker.pid, signal.SIGKILL)
    os.kill(flow, signal.SIGKILL)
    wait_until(lambda: not alive(stage), "the stage to end with its flow", seconds=60)
    assert names(services) == ["Running"], "nobody is left to tell the server"

    deployable.mend("evaluate-quick")
    services.start_worker()
    prefect(services, "deployment", "run", "sentfold/on-demand")
    waited = wait_until(lambda: "Completed" in names(services), "the next run", seconds=1200)
    assert waited < PROMPT_SECONDS
    assert deployable.ran() == {"evaluate-quick", "report-quick"}
    wait_until(lambda: "Crashed" in names(services), "the dead run to be called so", seconds=900)


def test_nothing_that_comes_with_a_run_changes_what_a_worker_starts(tmp_path: Path) -> None:
    from prefect.settings import PREFECT_API_URL, temporary_settings
    from prefect.workers.process import ProcessJobConfiguration

    asked = {"command": "touch evil", "env": {"LD_PRELOAD": "evil"}, "env.PYTHONPATH": "evil", "working_dir": "/"}
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):  # nothing is to be asked there
        started = asyncio.run(ProcessJobConfiguration.from_template_and_values(job_template(tmp_path), asked))
    assert shlex.split(started.command)[2:] == [sys.executable, "-m", "flows.launch", "prefect.engine"]
    assert started.env == {} and started.working_dir == tmp_path


def test_a_server_answers_nobody_without_its_password_and_no_page_of_others(server: Server) -> None:
    request = urllib.request.Request(f"{server.url}/admin/version", headers={"Origin": "http://evil.example"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=60)
    assert refused.value.code == 401 and refused.value.headers["Access-Control-Allow-Origin"] is None
    assert asks_for_password(server.url)


def test_the_password_of_the_examples_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)  # as Prefect makes it; its database there holds secrets too
    first, second = (settings_of("prefect.sh", {"PATH": os.environ["PATH"], "PREFECT_HOME": str(home)}) for _ in "12")
    assert home.stat().st_mode & 0o077 == 0
    assert first == second and len(first["PREFECT_SERVER_API_AUTH_STRING"]) > 40
    assert first["PREFECT_SERVER_API_AUTH_STRING"] == first["PREFECT_API_AUTH_STRING"]
    assert (tmp_path / "home/sentfold-password").stat().st_mode & 0o077 == 0


def test_the_password_is_made_by_pythons_own_modules(tmp_path: Path) -> None:
    """And so are the settings of a worker, as docs/cluster.md gives them: both are read in the checkout."""
    for name in ("hashlib", "numpy", "platform", "random", "secrets"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w').close()")
    lines = (SOURCE / "docs/cluster.md").read_text().splitlines()
    settings = "\n".join(line for line in lines if line.startswith(("show=", 'eval "$(python')))
    command = f". {SOURCE}/flows/examples/prefect.sh\n{settings}\nenv"
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PREFECT_HOME": str(tmp_path / "home"),
    }
    done = subprocess.run(
        ["sh", "-ec", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert "PREFECT_API_AUTH_STRING=sentfold:" in done.stdout and f"{next(iter(SETTINGS))}=" in done.stdout
    assert not (tmp_path / "imported").exists()


def test_without_a_password_the_example_sets_up_no_server(tmp_path: Path) -> None:
    """The shell finds no Python, as before the environment is on the PATH."""
    for tool in ("sh", "env", "mkdir", "chmod", "dirname", "rm", "cat"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or "")
    done = subprocess.run(
        ["sh", "-c", f". {shlex.quote(str(SOURCE))}/flows/examples/prefect.sh && env"],
        env={"PATH": str(tmp_path), "PREFECT_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode and "error: no password could be written" in done.stderr and not done.stdout


@pytest.mark.slow
def test_an_empty_password_is_called_none() -> None:
    """Prefect takes an empty setting for a password, which everybody knows."""
    import uvicorn
    from prefect.server.api.server import create_api_app
    from prefect.settings import PREFECT_SERVER_API_AUTH_STRING, temporary_settings

    for password, asked in (("", False), ("me:secret", True)):
        with temporary_settings({PREFECT_SERVER_API_AUTH_STRING: password}), socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            server = uvicorn.Server(uvicorn.Config(create_api_app(), lifespan="off", log_level="error"))
            thread = Thread(target=server.run, args=([listening],))
            thread.start()
            try:
                # The function is called in this turn of the loop alone.
                wait_until(lambda: server.started, "the server", seconds=60)  # noqa: B023
                assert asks_for_password(f"http://127.0.0.1:{listening.getsockname()[1]}") == asked
            finally:
                server.should_exit = True
                thread.join()


def test_on_another_port_the_pages_of_the_server_call_that_port(tmp_path: Path) -> None:
    inherited = {"PREFECT_SERVER_API_PORT": "4300", "PREFECT_UI_API_URL": "http://127.0.0.1:4200/api"}
    set_to = settings_of("prefect.sh", {"PATH": os.environ["PATH"], "PREFECT_HOME": str(tmp_path), **inherited})
    assert set_to["PREFECT_UI_API_URL"] == set_to["PREFECT_API_URL"] == "http://127.0.0.1:4300/api"
    assert set_to["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false" and set_to["DO_NOT_TRACK"] == "1"


def test_a_document_that_names_another_port_names_the_address_for_the_pages_too() -> None:
    documents = [
        SOURCE / "README.md",
        SOURCE / "prefect.yaml",
        *SOURCE.glob("docs/*.md"),
        *SOURCE.glob("flows/examples/*"),
    ]
    texts = {path.name: path.read_text(encoding="utf-8") for path in documents}
    named = {
        name for name, text in texts.items() if "PREFECT_SERVER_API_PORT" in text or "prefect server start --" in text
    }
    assert named == {"prefect.sh", "running.md"}
    assert all("PREFECT_UI_API_URL" in texts[name] for name in named)


def test_nothing_in_the_project_listens_on_every_network() -> None:
    everywhere = ".".join("0000")
    listed = subprocess.run(
        ["git", "grep", "-lF", everywhere, "--", ":!tests"],
        cwd=SOURCE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert listed.stdout == ""


@pytest.mark.slow
def test_deploying_without_a_server_says_what_to_start(finished: Checkout, serverless: dict[str, str]) -> None:
    shutil.copy(SOURCE / "prefect.yaml", finished.root)
    finished.environment = serverless
    code, printed = finished.call("flows", "deploy")
    assert code == 2
    assert "no Prefect server is configured" in printed
    assert "prefect server start" in printed


def test_a_folder_without_deployments_is_refused(tmp_path: Path) -> None:
    from flows.deploy import deploy as register

    for text in (None, "name: sentfold\n", "deployments: []\n", "deployments: [{name: nightly}]\n"):
        if text is not None:
            (tmp_path / "prefect.yaml").write_text(text)
        with pytest.raises(RunError, match="no file of deployments"):
            register(tmp_path)


def test_every_committed_deployment_names_a_flow_and_parameters_that_it_takes() -> None:
    from prefect.flows import load_flow_from_entrypoint

    content = yaml.safe_load((SOURCE / "prefect.yaml").read_text())
    assert [deployment["name"] for deployment in content["deployments"]] == ["nightly", "on-demand", "audit"]
    for deployment in content["deployments"]:
        flow = load_flow_from_entrypoint(deployment["entrypoint"])
        assert set(deployment["parameters"]) <= set(flow.parameters.properties)
        assert "concurrency_limit" not in deployment, "its slots outlive a killed flow by minutes"
