"""Real HTTP servers on loopback: a plain one that can misbehave, and one that speaks the hub's protocol."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

ID = "acme/pairs"
REVISION = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Page:
    """One answer: its bytes and headers, and how the server misbehaves while sending them.

    promised   the Content-Length to claim instead of the true one (None: no such header)
    stall      seconds of silence in the middle of the body
    drip       seconds between any two bytes of the second half
    failures   how many times to answer 503 before this page
    """

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    promised: int | None = -1
    stall: float = 0.0
    drip: float = 0.0
    failures: int = 0
    asked: int = 0


class PageServer(ThreadingHTTPServer):
    """Serves `pages` by path; everything else is a 404."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages: dict[str, Page] = {}
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def find(self, path: str) -> Page:
        return self.pages.get(path, Page(b"not found", status=404))


class HubServer(PageServer):
    """One dataset repository at one revision, with the answers that huggingface_hub asks for."""

    def add(self, path: str, data: bytes, *, lfs: bool = False) -> Page:
        """Put a file into the repository and into its listing; returns the page to misbehave with."""
        git_hash = hashlib.sha1(b"blob %d\0%b" % (len(data), data)).hexdigest()
        entry: dict[str, object] = {"type": "file", "path": path, "size": len(data), "oid": git_hash}
        if lfs:
            digest = hashlib.sha256(data).hexdigest()
            entry["lfs"] = {"oid": digest, "size": len(data), "pointerSize": 130}
        page = Page(data, headers={"ETag": f'"{git_hash}"', "X-Repo-Commit": REVISION})
        self.pages[f"/datasets/{ID}/resolve/{REVISION}/{path}"] = page
        listing = self.pages.setdefault(self.listing_path, Page(b"[]"))
        listing.body = json.dumps([*json.loads(listing.body), entry]).encode()
        return page

    @property
    def listing_path(self) -> str:
        return f"/api/datasets/{ID}/tree/{REVISION}"

    def find(self, path: str) -> Page:
        if path in self.pages:
            return self.pages[path]
        code = "RevisionNotFound" if f"/{ID}/tree/" in path else "RepoNotFound" if "/tree/" in path else "EntryNotFound"
        return Page(b"{}", status=404, headers={"X-Error-Code": code})


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        page = self.server.find(unquote(urlsplit(self.path).path))
        page.asked += 1
        if page.failures:
            page.failures -= 1
            page = Page(b"busy", status=503)
        self.send_response(page.status)
        # A HEAD tells the truth even where the body will not keep it.
        promised = len(page.body) if page.promised == -1 or not with_body else page.promised
        if promised is not None:
            self.send_header("Content-Length", str(promised))
        for name, value in page.headers.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        if with_body:
            self._send(page)

    def _send(self, page: Page) -> None:
        half = len(page.body) // 2
        try:
            self.wfile.write(page.body[:half])
            self.wfile.flush()
            if page.stall:
                self.server.closing.wait(page.stall)
            for byte in page.body[half:] if page.drip else b"":
                self.wfile.write(bytes([byte]))
                self.server.closing.wait(page.drip)
            self.wfile.write(b"" if page.drip else page.body[half:])
        except OSError:
            pass  # the client gave up, as it should

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class names it so)
        """Keep the test output clean."""


@contextmanager
def serving(server: PageServer) -> Iterator[None]:
    """Run a server in a thread for the length of the context."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
