"""Fetching word vectors from a real server on loopback, which may stall, break off, lie or lack them."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from pipeline.errors import SourceError
from pipeline.words.fetch import Patience, fetch_vectors
from pipeline.words.locations import describe_locations
from tests.corpora.hub_server import Page, PageServer, serving

DATA = bytes(range(256)) * 400
SHA = hashlib.sha256(DATA).hexdigest()
QUICK = Patience(silence=0.3, tries=3, delay=0.01)


@pytest.fixture
def server() -> Iterator[PageServer]:
    server = PageServer()
    with serving(server):
        yield server


def listing(tmp_path: Path, url: str, *, sha256: str | None = SHA) -> dict[str, Any]:
    """Arguments of fetch_vectors for one location that leads to `url`."""
    path = tmp_path / "locations.yaml"
    entry = {
        "title": "small", "citation": "ours", "licence": "ours", "url": url, "file": "small.vec", "sha256": sha256,
        "dimension": 3,
    }  # fmt: skip
    path.write_text(yaml.safe_dump({"small": entry}))
    return {"locations": path, "folder": tmp_path / "vectors", "patience": QUICK}


def failure(arguments: dict[str, Any]) -> str:
    with pytest.raises(SourceError) as caught:
        fetch_vectors("small", **arguments)
    assert not (arguments["folder"] / "small.vec").exists()
    return str(caught.value)


def test_the_known_file_is_fetched_once(server: PageServer, tmp_path: Path) -> None:
    page = server.pages["/v"] = Page(DATA)
    arguments = listing(tmp_path, f"{server.url}/v")
    assert "the known sha256" in fetch_vectors("small", **arguments)
    assert (tmp_path / "vectors/small.vec").read_bytes() == DATA
    assert "there already" in fetch_vectors("small", **arguments)
    assert page.asked == 1
    assert [path.name for path in (tmp_path / "vectors").iterdir()] == ["small.vec"]


def test_a_file_that_nobody_knows_is_not_asked_for(server: PageServer, tmp_path: Path) -> None:
    page = server.pages["/v"] = Page(DATA)
    said = failure(listing(tmp_path, f"{server.url}/v", sha256=None))
    assert "--record-hash" in said and "small" in said
    assert page.asked == 0


def test_a_hash_is_recorded_when_asked_for_and_holds_from_then_on(server: PageServer, tmp_path: Path) -> None:
    page = server.pages["/v"] = Page(DATA)
    arguments = listing(tmp_path, f"{server.url}/v", sha256=None)
    before = arguments["locations"].read_text()
    said = fetch_vectors("small", **arguments, record=True)
    assert SHA in said and "locations.yaml" in said
    assert (tmp_path / "vectors/small.vec").read_bytes() == DATA
    assert arguments["locations"].read_text() == before.replace("sha256: null", f"sha256: {SHA}")
    assert "there already" in fetch_vectors("small", **arguments)
    page.body = DATA[:-1] + b"x"
    (tmp_path / "vectors/small.vec").unlink()
    assert "not the known ones" in failure(arguments)


def test_a_recorded_hash_leaves_comments_and_other_blocks_alone(server: PageServer, tmp_path: Path) -> None:
    server.pages["/v"] = Page(DATA)
    arguments = listing(tmp_path, f"{server.url}/v", sha256=None)
    block = arguments["locations"].read_text()
    other = block.replace("small:", "another:")
    arguments["locations"].write_text(f"# a comment\n{other}\n{block}")
    fetch_vectors("small", **arguments, record=True)
    recorded = block.replace("sha256: null", f"sha256: {SHA}")
    assert arguments["locations"].read_text() == f"# a comment\n{other}\n{recorded}"


def test_a_file_that_was_put_there_by_hand_is_recorded_without_a_download(server: PageServer, tmp_path: Path) -> None:
    page = server.pages["/v"] = Page(DATA)
    (tmp_path / "vectors").mkdir()
    (tmp_path / "vectors/small.vec").write_bytes(DATA)
    assert SHA in fetch_vectors("small", **listing(tmp_path, f"{server.url}/v", sha256=None), record=True)
    assert page.asked == 0


def run_command(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`sentfold fetch-vectors` with the list and the folder of the test."""
    return subprocess.run(
        [sys.executable, "-m", "pipeline", "fetch-vectors", *arguments],
        env={**os.environ, "SENTFOLD_VECTORS": str(tmp_path / "vectors")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_command_says_size_licence_and_hash_and_then_fetches(server: PageServer, tmp_path: Path) -> None:
    server.pages["/v"] = Page(DATA)
    arguments = listing(tmp_path, f"{server.url}/v")
    done = run_command(tmp_path, "small", "--locations", str(arguments["locations"]))
    assert (done.returncode, done.stderr) == (0, "")
    before, _, after = done.stdout.partition("goes to")
    assert all(part in before for part in (f"{len(DATA):,} bytes", "licence   ours", SHA, f"{server.url}/v"))
    assert "the known sha256" in after
    assert (tmp_path / "vectors/small.vec").read_bytes() == DATA


def test_the_command_refuses_an_unknown_hash_unless_told_to_record_it(server: PageServer, tmp_path: Path) -> None:
    server.pages["/v"] = Page(DATA)
    place = str(listing(tmp_path, f"{server.url}/v", sha256=None)["locations"])
    refused = run_command(tmp_path, "small", "--locations", place)
    assert refused.returncode == 2
    assert "not recorded yet" in refused.stdout and "--record-hash" in refused.stderr
    assert not (tmp_path / "vectors").exists()
    done = run_command(tmp_path, "small", "--locations", place, "--record-hash")
    assert done.returncode == 0 and SHA in done.stdout


def test_the_command_without_a_name_lists_what_there_is_and_asks_no_server(tmp_path: Path) -> None:
    done = run_command(tmp_path)
    assert done.returncode == 0
    assert all(name in done.stdout for name in ("glove-840b", "fasttext-crawl", "lexvec", "psl", "word2vec"))
    assert not (tmp_path / "vectors").exists()


def test_other_bytes_are_refused_and_not_kept(server: PageServer, tmp_path: Path) -> None:
    server.pages["/v"] = Page(DATA[:-1] + b"x")
    said = failure(listing(tmp_path, f"{server.url}/v"))
    assert SHA in said
    assert not list((tmp_path / "vectors").iterdir())


def test_a_damaged_file_that_is_there_is_fetched_again(server: PageServer, tmp_path: Path) -> None:
    server.pages["/v"] = Page(DATA)
    (tmp_path / "vectors").mkdir()
    (tmp_path / "vectors/small.vec").write_bytes(b"damaged")
    fetch_vectors("small", **listing(tmp_path, f"{server.url}/v"))
    assert (tmp_path / "vectors/small.vec").read_bytes() == DATA


def test_a_server_that_is_busy_twice_is_asked_again(server: PageServer, tmp_path: Path) -> None:
    page = server.pages["/v"] = Page(DATA, failures=2)
    fetch_vectors("small", **listing(tmp_path, f"{server.url}/v"))
    assert page.asked == 3


@pytest.mark.parametrize(
    ("page", "part"),
    [
        (Page(b"", status=404), "HTTP status 404"),
        (Page(b"<html>consent</html>", headers={"Content-Type": "text/html; charset=utf-8"}), "a file"),
        (Page(DATA, failures=99), "HTTP status 503 (3 tries)"),
        (Page(DATA, stall=5), "stalled"),
        (Page(DATA, promised=len(DATA) + 5), "tries"),
    ],
)
def test_what_a_server_does_wrong_is_one_clear_error(server: PageServer, tmp_path: Path, page: Page, part: str) -> None:
    server.pages["/v"] = page
    said = failure(listing(tmp_path, f"{server.url}/v"))
    assert part in said
    assert "SENTFOLD_VECTORS" in said


def test_no_server_at_all_is_one_clear_error(tmp_path: Path) -> None:
    assert "cannot be downloaded" in failure(listing(tmp_path, "http://127.0.0.1:9/v"))


def test_a_folder_that_cannot_be_made_is_one_clear_error(server: PageServer, tmp_path: Path) -> None:
    server.pages["/v"] = Page(DATA)
    (tmp_path / "vectors").write_text("a file")
    with pytest.raises(SourceError, match="cannot be stored"):
        fetch_vectors("small", **listing(tmp_path, f"{server.url}/v"))


class Breaking(BaseHTTPRequestHandler):
    """Sends at most 30,000 bytes an answer, then hangs up; knows ranges if its server says so."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        asked = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(asked[1]) if asked and self.server.ranges else 0  # type: ignore[attr-defined]
        self.server.starts.append(start)  # type: ignore[attr-defined]
        if start >= len(DATA):
            self.send_response(416)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(DATA) - start))
        self.end_headers()
        self.wfile.write(DATA[start : start + 30_000])
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class names it so)
        """Keep the test output clean."""


@pytest.fixture(params=[True, False])
def breaking(request: pytest.FixtureRequest) -> Iterator[Any]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Breaking)
    server.ranges, server.starts = request.param, []  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_download_that_breaks_off_goes_on_where_it_stopped_if_the_server_can(breaking: Any, tmp_path: Path) -> None:
    arguments = listing(tmp_path, f"http://127.0.0.1:{breaking.server_port}/v")
    if breaking.ranges:
        fetch_vectors("small", **arguments)
        assert breaking.starts == [0, 30_000, 60_000, 90_000]
        assert (tmp_path / "vectors/small.vec").read_bytes() == DATA
    else:
        # It always begins anew and never ends: given up, with what came kept.
        assert "tries" in failure(arguments)
        assert (tmp_path / "vectors/small.vec.part").stat().st_size == 30_000


def test_what_an_earlier_call_left_is_gone_on_with(breaking: Any, tmp_path: Path) -> None:
    arguments = listing(tmp_path, f"http://127.0.0.1:{breaking.server_port}/v")
    (tmp_path / "vectors").mkdir()
    (tmp_path / "vectors/small.vec.part").write_bytes(DATA)
    if breaking.ranges:
        fetch_vectors("small", **arguments)
        assert breaking.starts == [len(DATA)]
        assert (tmp_path / "vectors/small.vec").read_bytes() == DATA


def test_the_list_says_what_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENTFOLD_VECTORS", str(tmp_path))
    (tmp_path / "glove.840B.300d.zip").write_bytes(b"")
    said = describe_locations()
    assert "glove.840B.300d.zip (here)" in said
    assert "crawl-300d-2M.vec.zip (not here)" in said
    assert "Public Domain" in said
