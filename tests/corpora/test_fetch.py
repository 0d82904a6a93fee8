"""The one download, against a real server on loopback, which may stall, break off, lie or lack the file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.corpora.fetch import Patience, fetch
from sentfold.errors import SourceError, UnansweredError
from tests.corpora.hub_server import Page, PageServer, serving

DATA = bytes(range(256)) * 400
SHA = hashlib.sha256(DATA).hexdigest()
ONE_TRY = Patience(connect=10, read=20, tries=1)  # long enough for a busy machine


@pytest.fixture
def server() -> Iterator[PageServer]:
    server = PageServer()
    with serving(server):
        yield server


def failure(url: str, folder: Path, *, sha256: str | None = SHA, patience: Patience = ONE_TRY) -> SourceError:
    """The error of a download, after which nothing may be stored."""
    with pytest.raises(SourceError) as caught:
        fetch(url, folder / "file", sha256=sha256, patience=patience)
    assert not list(folder.glob("*"))
    assert url in str(caught.value)
    return caught.value


def test_a_file_is_fetched_once(server: PageServer, tmp_path: Path) -> None:
    page = server.pages["/v"] = Page(DATA)
    for _ in range(2):
        assert fetch(f"{server.url}/v", tmp_path / "new/file", sha256=SHA).read_bytes() == DATA
    assert page.asked == 1
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file"]


def test_a_damaged_file_that_is_there_is_fetched_again(server: PageServer, tmp_path: Path) -> None:
    server.pages["/v"] = Page(DATA)
    (tmp_path / "file").write_bytes(b"damaged")
    assert fetch(f"{server.url}/v", tmp_path / "file", sha256=SHA).read_bytes() == DATA


def test_a_server_that_is_busy_once_is_asked_again(server: PageServer, tmp_path: Path) -> None:
    page = server.pages["/v"] = Page(DATA, failures=1)
    fetch(f"{server.url}/v", tmp_path / "file", sha256=SHA, patience=Patience(tries=2))
    assert page.asked == 2


def test_a_file_that_a_server_lacks_is_asked_for_once(server: PageServer, tmp_path: Path) -> None:
    page = server.pages["/v"] = Page(b"", status=404)
    with pytest.raises(SourceError, match="HTTP status 404"):
        fetch(f"{server.url}/v", tmp_path / "file", sha256=SHA, patience=Patience(tries=5))
    assert page.asked == 1


def test_other_bytes_are_refused_and_not_kept(server: PageServer, tmp_path: Path) -> None:
    server.pages["/v"] = Page(DATA[:-1] + b"x")
    error = failure(f"{server.url}/v", tmp_path)
    assert SHA in error.expected and not isinstance(error, UnansweredError)


def test_a_server_that_sends_more_than_the_file_is_not_listened_to(server: PageServer, tmp_path: Path) -> None:
    server.pages["/v"] = Page(DATA, promised=None)
    for sha256 in (SHA, None):
        with pytest.raises(SourceError, match="at most 1000 bytes"):
            fetch(f"{server.url}/v", tmp_path / "file", sha256=sha256, most=1000, patience=Patience(tries=1))
        assert not list(tmp_path.iterdir())
    assert fetch(f"{server.url}/v", tmp_path / "file", sha256=SHA, most=len(DATA)).read_bytes() == DATA


def test_an_empty_sha256_is_the_hash_of_no_file(server: PageServer, tmp_path: Path) -> None:
    server.pages["/v"] = Page(DATA)
    failure(f"{server.url}/v", tmp_path, sha256="")


def test_a_pipe_in_place_of_a_stored_file_is_refused_and_not_waited_for(server: PageServer, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "file")
    with pytest.raises(SourceError, match="not a regular file"):
        fetch(f"{server.url}/v", tmp_path / "file", sha256=SHA)


def test_a_web_page_is_no_file(server: PageServer, tmp_path: Path) -> None:
    server.pages["/v"] = Page(b"<html>consent</html>")
    assert "web page" in failure(f"{server.url}/v", tmp_path, sha256=None).got


@pytest.mark.parametrize(
    "page",
    [Page(DATA, failures=99), Page(DATA, stall=5), Page(DATA, promised=len(DATA) + 5)],
    ids=["busy", "stalls", "truncated"],
)
def test_a_server_that_does_not_deliver_may_be_tried_later(server: PageServer, tmp_path: Path, page: Page) -> None:
    server.pages["/v"] = page
    patience = Patience(connect=0.3, read=0.3, tries=1)
    for sha256 in (SHA, None):
        error = failure(f"{server.url}/v", tmp_path, sha256=sha256, patience=patience)
        assert isinstance(error, UnansweredError)


def test_a_server_that_sends_a_byte_now_and_then_is_not_listened_to_for_ever(
    server: PageServer, tmp_path: Path
) -> None:
    server.pages["/v"] = Page(DATA, drip=0.05)
    patience = Patience(read=20, tries=3, window=0.4)
    with pytest.raises(UnansweredError, match="sends too slowly"):
        fetch(f"{server.url}/v", tmp_path / "file", sha256=SHA, patience=patience)
    assert not list(tmp_path.iterdir())
    assert server.pages["/v"].asked == 1


def test_a_slow_server_is_waited_for_over_many_windows(server: PageServer, tmp_path: Path) -> None:
    server.pages["/v"] = Page(DATA * 4, stall=0.6)
    patience = Patience(read=20, tries=1, window=0.4)
    assert fetch(f"{server.url}/v", tmp_path / "file", sha256=None, patience=patience).read_bytes() == DATA * 4


def test_no_server_at_all_may_be_tried_later(tmp_path: Path) -> None:
    assert isinstance(failure("http://127.0.0.1:9/v", tmp_path), UnansweredError)


@pytest.mark.parametrize("url", ["nonsense", "gopher://somewhere/v", "http://"])
def test_what_is_no_address_of_the_web_is_refused(tmp_path: Path, url: str) -> None:
    assert "http" in failure(url, tmp_path).expected


def test_a_folder_that_cannot_be_made_is_one_clear_error(server: PageServer, tmp_path: Path) -> None:
    server.pages["/v"] = Page(DATA)
    (tmp_path / "folder").write_text("a file")
    with pytest.raises(SourceError, match="cannot be stored"):
        fetch(f"{server.url}/v", tmp_path / "folder/file", sha256=SHA)
