"""The download of public files with pooch, with limits on the wait for a server that does not answer."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, BinaryIO

from sentfold.errors import SourceError, UnansweredError, first_line
from sentfold.files import require_regular, sha256_of, write_bytes_atomically


@dataclass(frozen=True)
class Patience:
    """Limits on the wait for a server.

    connect  maximum seconds until a connection is made
    read     maximum seconds without data
    tries    attempts before giving up; pooch waits 1, 2, 3, ... seconds between them
    window   seconds in which at least `rate` bytes a second come on average: a byte a minute is no silence either
    """

    connect: float = 15.0
    read: float = 60.0
    tries: int = 3
    window: float = 300.0
    rate: float = 1000.0


PATIENCE = Patience()
MOST = 16 * 2**30  # bytes of a download; the largest published word vectors have 6 GB


def fetch(url: str, target: Path, *, sha256: str | None, most: int = MOST, patience: Patience = PATIENCE) -> Path:
    """The file of a URL, stored as `target`; an existing file with the right sha256 is not downloaded again.

    sha256  of the file; None accepts any file except a web page
    most    maximum number of bytes: a server can send for ever
    Raises UnansweredError if the server does not answer, stops sending or sends too slowly, SourceError if the server
    has no such file, the file has another sha256 or more bytes, or the file cannot be written. After an error nothing
    is stored.
    """
    import pooch
    from requests.exceptions import RequestException

    pooch.get_logger().setLevel("WARNING")
    shelf = pooch.create(
        path=target.parent,
        base_url="",
        registry={target.name: None if sha256 is None else f"sha256:{sha256}"},
        urls={target.name: url},
        retry_if_failed=patience.tries - 1,
    )
    try:
        require_regular(target)  # pooch hashes what is there
        shelf.fetch(target.name, downloader=_Downloader(patience, most))
    except RequestException as error:
        raise _unanswered(url, error, patience) from None
    except ValueError:
        raise _wrong_file(url, f"sha256 {sha256}", "a file with another sha256") from None
    except OSError as error:
        raise SourceError(
            "a download cannot be stored",
            where=str(target.parent),
            got=error.strerror or first_line(error),
            remedy="free space there, or choose a folder that can be written to",
        ) from None
    if sha256 is None:
        _refuse_web_page(url, target)
    return target


class _Downloader:
    """pooch's downloader; it makes no further attempt after an answer that another attempt cannot change."""

    def __init__(self, patience: Patience, most: int) -> None:
        self._patience, self._most = patience, most

    def __call__(self, url: str, output_file: Any, pooch: Any) -> None:
        """Download `url` into a file.

        Raises SourceError if the server does not have it, or sends too many bytes or too slowly.
        """
        from pooch import HTTPDownloader
        from requests.exceptions import HTTPError, InvalidSchema, InvalidURL, MissingSchema

        # Without `identity` a server may compress the file, and then the bytes are not the bytes of the file.
        headers = {"Accept-Encoding": "identity", "User-Agent": "sentfold"}
        limits = (self._patience.connect, self._patience.read)
        client = HTTPDownloader(progressbar=sys.stderr.isatty(), chunk_size=2**16, timeout=limits, headers=headers)
        try:
            with Path(output_file).open("wb") as stream:
                capped = _Capped(stream, url, self._most)
                refuse_drip(partial(client, url, capped, pooch), stream.tell, self._patience, where=url)
        except (InvalidSchema, InvalidURL, MissingSchema) as error:
            raise _wrong_file(url, "an http or https URL", first_line(error)) from None
        except HTTPError as error:
            status = getattr(error.response, "status_code", 0)
            if status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS):
                raise
            if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise _wrong_file(url, "HTTP status 200", f"HTTP status {status}") from None
            raise


class _Capped:
    """A file that raises SourceError when more than `most` bytes are written to it."""

    def __init__(self, stream: BinaryIO, url: str, most: int) -> None:
        self._stream, self._url, self._most = stream, url, most
        self.flush = stream.flush

    def write(self, data: bytes) -> None:
        if self._stream.tell() + len(data) > self._most:
            raise _wrong_file(self._url, f"at most {self._most} bytes", "more")
        self._stream.write(data)


def refuse_drip(work: Callable[[], object], received: Callable[[], int], patience: Patience, *, where: str) -> None:
    """Run `work`, which waits for a server, as long as enough bytes come.

    received  the number of bytes so far
    Raises UnansweredError if fewer come in a window than `patience` asks for, and what `work` raises.
    """
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  (it is raised in the other thread)
            ended.put(error)
        else:
            ended.put(None)

    # The libraries return from a read only when a whole line or piece is there, so that only another thread can stop
    # the wait. A given up thread ends with the process, or when it writes to the file, which is closed then.
    Thread(target=run, daemon=True).start()
    before, least = 0, round(patience.window * patience.rate)
    while True:
        try:
            error = ended.get(timeout=patience.window)
        except Empty:
            now = received()
            if now - before < least:
                raise UnansweredError(
                    "a server sends too slowly",
                    where=where,
                    expected=f"at least {least:,} bytes in {patience.window:g} s",
                    got=f"{now - before:,} bytes",
                    remedy="check the network and the proxy, and try again later",
                ) from None
            before = now
        else:
            if error is not None:
                raise error
            return


def _unanswered(url: str, error: Exception, patience: Patience) -> UnansweredError:
    return UnansweredError(
        "a server does not deliver a file",
        where=url,
        expected=f"an answer within {patience.connect:g} s and no silence over {patience.read:g} s",
        got=f"{first_line(error)} ({patience.tries} tries)",
        remedy="check the network and the proxy, and try again later",
    )


def _wrong_file(url: str, expected: str, got: str) -> SourceError:
    return SourceError(
        "a server does not have the known file",
        where=url,
        expected=expected,
        got=got,
        remedy="try again; if the same happens, the publisher moved or changed the file: find out why, then correct "
        "the URL or the sha256",
    )


def _refuse_web_page(url: str, path: Path) -> None:
    with path.open("rb") as stream:
        start = stream.read(256).lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        with suppress(OSError):
            path.unlink()
        raise _wrong_file(url, "a data file", "a web page; open the URL in a browser: it may ask for consent")


def matches(path: Path, sha256: str | None) -> bool:
    """Whether a file exists and has this sha256."""
    return path.is_file() and sha256_of(path) == sha256


def record_digest(path: Path, pattern: str, digest: str) -> None:
    """Replace each `null` after group 1 of `pattern` by a digest; the rest of the YAML file is unchanged."""
    text, places = re.subn(pattern, rf'\g<1> "{digest}"', path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if not places:
        raise SourceError(
            "a sha256 cannot be recorded",
            where=path.name,
            expected="a line that ends in null",
            got="none",
            remedy=f"write this sha256 into the file by hand: {digest}",
        )
    write_bytes_atomically(path, text.encode())
