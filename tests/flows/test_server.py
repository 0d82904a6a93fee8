"""When a run takes its Prefect server for gone."""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows import server as module
from flows.server import Server, unanswered
from pipeline.environment import flow_environment
from sentfold.errors import RunError


class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(404 if "refuse" in self.path else 200)
        self.end_headers()

    def log_message(self, *_: object) -> None:  # type: ignore[override]
        pass


@pytest.fixture
def answering() -> Iterator[http.server.HTTPServer]:
    server = http.server.HTTPServer(("127.0.0.1", 0), Health)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_any_answer_is_one_and_none_is_told_with_its_reason(answering: http.server.HTTPServer) -> None:
    place = f"http://127.0.0.1:{answering.server_port}"
    assert unanswered(place) == unanswered(f"{place}/refuse") == ""
    assert "http://127.0.0.1:9/health" in unanswered("http://127.0.0.1:9")


@pytest.mark.parametrize("known", ["", "example.org", "127.0.0.11,localhost:8080"])
def test_no_proxy_is_asked_for_a_server_of_this_machine(
    known: str, answering: http.server.HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy would get the password of the server, and would answer in its place."""
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, known)
    place = f"http://127.0.0.1:{answering.server_port}"
    for prepare, said in ((lambda: None, "refused"), (module.prepare_prefect, "")):
        prepare()
        monkeypatch.setattr(urllib.request, "_opener", None)  # it keeps the proxies of its first call
        assert said in unanswered(place) and bool(unanswered(place)) == bool(said)
    assert flow_environment()["NO_PROXY"].startswith(known)


def test_an_answer_of_another_process_on_the_port_is_not_taken_for_the_server_that_was_started(
    answering: http.server.HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The port is free for a moment before the server takes it, and every user of the machine can read its number."""
    asked: list[str] = []
    monkeypatch.setattr(Health, "do_GET", lambda handler: asked.append(handler.path))
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1); raise SystemExit(3)"])
    with pytest.raises(RunError, match=r"(?s)did not start.*exit code 3.*rm \.dvc/tmp/sentfold-prefect\.db\*"):
        module._wait_until_healthy(Server(f"http://127.0.0.1:{answering.server_port}/api", process), process)
    assert asked == []
    assert module.listens(os.getpid(), answering.server_port)
    assert not module.listens(process.pid, answering.server_port)


def test_a_temporary_server_is_gone_when_its_process_has_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read(); sys.exit(3)"], stdin=-1)
    server = Server("http://127.0.0.1:9", process)
    assert not server.is_gone()
    process.communicate()
    assert server.is_gone()
    assert "exit code 3" in str(server.error("sentfold run"))


@pytest.mark.slow
def test_a_configured_server_is_gone_only_after_a_long_silence(
    answering: http.server.HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEALTH_SECONDS", 0.05)
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 2.0)
    server = Server(f"http://127.0.0.1:{answering.server_port}")
    end = time.monotonic() + 3.0
    while time.monotonic() < end:
        assert not server.is_gone()
        time.sleep(0.1)
    answering.shutdown()
    answering.server_close()
    silent = time.monotonic()
    while not server.is_gone():
        assert time.monotonic() - silent < 60
        time.sleep(0.1)
    assert time.monotonic() - silent > 1.5
    assert "went away" in str(server.error("sentfold run"))


@pytest.mark.slow
def test_the_database_of_a_run_is_in_its_checkout_whatever_the_name_of_the_folder(
    tmp_path: Path, prefect_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another test of this process may have told Prefect of a server.
    monkeypatch.setattr(module, "configured_url", lambda: None)
    for name in ("PREFECT_API_DATABASE_CONNECTION_URL", "PREFECT_SERVER_DATABASE_CONNECTION_URL"):
        monkeypatch.setenv(name, f"sqlite+aiosqlite:///{tmp_path}/another.db")
    root = tmp_path / "a question? #1"
    root.mkdir()
    with module.prefect_server(root):
        assert (root / module.DATABASE).is_file()
    assert list(tmp_path.iterdir()) == [root]
