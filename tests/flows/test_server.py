"""When a run takes its Prefect server for gone."""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from flows import server as module
from flows.server import Server, unanswered


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


def test_a_temporary_server_is_gone_when_its_process_has_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read(); sys.exit(3)"], stdin=-1)
    server = Server("http://127.0.0.1:9", process)
    assert not server.is_gone()
    process.communicate()
    assert server.is_gone()
    assert "exit code 3" in str(server.error("sentfold run"))


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
