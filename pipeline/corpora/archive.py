"""Official archives by URL, believed only when their sha256 is the one recorded in hashes.yaml."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx

from pipeline.artifacts import sha256_of, write_bytes_atomically
from pipeline.corpora.archive_readers import READERS, Member
from pipeline.corpora.catalogue import ArchiveSplit, Dataset
from pipeline.corpora.sources import Reading, check_columns, check_count
from pipeline.corpora.unpack import read_members
from pipeline.errors import SourceError, first_line, located
from pipeline.params import read_yaml

HASHES_FILE = Path(__file__).with_name("hashes.yaml")
CACHE_VARIABLE = "SENTFOLD_CACHE"
NOT_AS_DESCRIBED = "the archive is not what the catalogue describes: check the URL and its hash"

# The largest official archive is 14 MB.
MAX_DOWNLOAD = 256 * 2**20

_RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Patience:
    """How long a server is waited for.

    connect  seconds until a connection stands
    read     seconds of silence after which a server has stalled
    total    seconds that one file may take altogether
    tries    attempts before giving up
    delay    seconds before the second attempt, doubled for each further one
    """

    connect: float = 15.0
    read: float = 60.0
    total: float = 1800.0
    tries: int = 3
    delay: float = 1.0


PATIENCE = Patience()


class _InterruptionError(Exception):
    """A failure that another attempt may not meet."""


def read_split(
    name: str, dataset: Dataset, split: str, *, hashes_file: Path = HASHES_FILE, patience: Patience = PATIENCE
) -> Reading:
    """Read one split out of its official archives, downloading what the cache lacks.

    Raises SourceError if a hash is not recorded or differs, the server fails, the archive is
    unsafe, or its content is not what the reader knows. Cost: the archive in memory.
    """
    place = dataset.archive[split]
    hashes = load_hashes(hashes_file)
    unknown = [url for url in place.urls if hashes.get(url) is None]
    if unknown:
        slug = next((slug for slug, splits in dataset.corpora.items() if split in splits), name)
        raise SourceError(
            f"no sha256 is recorded for an archive of '{name}'",
            where=unknown[0],
            expected=f"64 hexadecimal digits in {hashes_file.name}",
            got="null" if unknown[0] in hashes else "no line",
            remedy=f"run `sentfold download --record-hash {slug}`, look at what it recorded, and commit it",
        )
    paths = {url: _fetch(url, sha256=hashes[url], patience=patience) for url in place.urls}
    return _read(place, paths)


def load_hashes(path: Path = HASHES_FILE) -> dict[str, str | None]:
    """URL -> recorded sha256, or None. Raises SourceError if a value is neither."""
    hashes: dict[str, str | None] = {}
    for url, value in read_yaml(path).items():
        if value is not None and not (isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value)):
            raise SourceError(
                "a recorded hash is malformed",
                where=f"{path.name}: {url}",
                expected="64 lower-case hexadecimal digits, or null",
                got=repr(value),
                remedy="correct the line, or set it to null and record it again",
            )
        hashes[url] = value
    return hashes


def record_hashes(
    dataset: Dataset, *, hashes_file: Path = HASHES_FILE, patience: Patience = PATIENCE
) -> dict[str, str]:
    """Download every archive of a data set and write their sha256 into hashes.yaml.

    A hash is recorded only for files that read as the catalogue says, with the published number
    of rows. Returns url -> sha256. Raises SourceError, and leaves hashes.yaml as it was, if a
    download or a reading fails, or if a hash recorded earlier would change.
    """
    known = load_hashes(hashes_file)
    urls = dict.fromkeys(url for place in dataset.archive.values() for url in place.urls)
    paths = {url: _fetch(url, sha256=None, patience=patience) for url in urls}
    found = {url: sha256_of(path) for url, path in paths.items()}
    for url, sha256 in found.items():
        _expect_hash(known.get(url), sha256, url)
    for split, place in dataset.archive.items():
        reading = _read(place, {url: paths[url] for url in place.urls})
        frame = check_columns(reading.frame, dataset, where=place.urls[0])
        check_count(frame, dataset, split, where=place.urls[0])
    _write_hashes(hashes_file, known | found)
    return found


def _write_hashes(path: Path, hashes: Mapping[str, str | None]) -> None:
    # The comment at the head of the file is for its readers and has to survive.
    head = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    body = [f'{url}: "{sha256}"' if sha256 else f"{url}: null" for url, sha256 in sorted(hashes.items())]
    write_bytes_atomically(path, "\n".join([*head, *body, ""]).encode())


def _read(place: ArchiveSplit, paths: Mapping[str, Path]) -> Reading:
    if place.reader not in READERS:
        raise SourceError(
            f"there is no reader '{place.reader}'",
            where="pipeline/corpora/catalogue.yaml",
            expected=f"one of: {', '.join(sorted(READERS))}",
            got=place.reader,
        )
    members: list[Member] = []
    for url, path in paths.items():
        with located(url, remedy=NOT_AS_DESCRIBED):
            members.extend(read_members(path, _file_name(url), place.members))
    with located(place.urls[0], remedy=NOT_AS_DESCRIBED):
        table = READERS[place.reader](members)
    files = {url: sha256_of(path) for url, path in paths.items()}
    return Reading(frame=table.frame, source="archive", files=files, replaced=table.replaced)


# --- download ----------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Where archives are kept between runs: $SENTFOLD_CACHE, else below the user's cache folder."""
    place = os.environ.get(CACHE_VARIABLE, "")
    return Path(place) if place else Path.home() / ".cache" / "sentfold" / "archives"


def _fetch(url: str, *, sha256: str | None, patience: Patience) -> Path:
    """The file behind a URL, checked against `sha256` unless that is None (a fresh download)."""
    scheme = urlsplit(url).scheme
    if scheme == "file":
        path = _local_file(url)
        _expect_hash(sha256, sha256_of(path), url)
        return path
    if scheme not in ("http", "https"):
        raise SourceError(
            "an archive has an unknown kind of URL",
            where=url,
            expected="https, http or file",
            got=scheme,
            remedy="correct the URL in the catalogue",
        )
    path = cache_folder() / f"{hashlib.sha256(url.encode()).hexdigest()[:16]}-{_file_name(url)}"
    # A cached file with another hash is of no use: it is downloaded again, and then judged.
    if sha256 is not None and path.is_file() and sha256_of(path) == sha256:
        return path
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _download(url, temporary, patience)
        _expect_hash(sha256, sha256_of(temporary), url)
        temporary.replace(path)
    except OSError as error:
        raise SourceError(
            "an archive cannot be stored",
            where=str(path.parent),
            got=str(error.strerror),
            remedy=f"free space there, or set {CACHE_VARIABLE} to a writable folder",
        ) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return path


def _local_file(url: str) -> Path:
    parts = urlsplit(url)
    path = Path(url2pathname(parts.path))
    if parts.netloc not in ("", "localhost") or not path.is_file():
        raise SourceError("a file URL names no file of this machine", where=url, remedy="correct the URL")
    return path


def _expect_hash(expected: str | None, got: str, url: str) -> None:
    if expected is not None and expected != got:
        raise SourceError(
            "an archive has the wrong sha256",
            where=url,
            expected=expected,
            got=got,
            remedy="try again; if it stays so the publisher changed the file: find out why, and only then "
            "set its line in hashes.yaml to null and record it anew",
        )


def _download(url: str, target: Path, patience: Patience) -> None:
    """Stream `url` into `target`, up to `patience.tries` times. Raises SourceError."""
    reason = ""
    for attempt in range(patience.tries):
        if attempt:
            time.sleep(patience.delay * 2 ** (attempt - 1))
        try:
            return _download_once(url, target, patience)
        except _InterruptionError as error:
            reason = str(error)
    raise SourceError(
        "an archive cannot be downloaded",
        where=url,
        expected=f"an answer within {patience.connect:g} s and no silence over {patience.read:g} s",
        got=f"{reason} ({patience.tries} tries)",
        remedy="check the network and the proxy, try again later, or use a mirror (`source: mirror`)",
    )


def _download_once(url: str, target: Path, patience: Patience) -> None:
    timeout = httpx.Timeout(patience.read, connect=patience.connect)
    # Without `identity` a server may compress, and Content-Length is not the length of the file.
    headers = {"Accept-Encoding": "identity", "User-Agent": "sentfold"}
    deadline = time.monotonic() + patience.total
    try:
        with httpx.stream("GET", url, timeout=timeout, headers=headers, follow_redirects=True) as response:
            _check_answer(url, response)
            written = 0
            with target.open("wb") as stream:
                # Chunks as they arrive: gathering them to a size would hide how slowly they come.
                for chunk in response.iter_bytes():
                    written += stream.write(chunk)
                    _check_progress(url, written, deadline, patience)
                stream.flush()
                os.fsync(stream.fileno())
            _refuse_html(url, response, target)
            _check_length(response, written)
    except httpx.TimeoutException:
        raise _InterruptionError("the server stalled") from None
    except httpx.TransportError as error:
        raise _InterruptionError(first_line(error)) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise SourceError(
            "an archive cannot be asked for", where=url, got=first_line(error), remedy="correct the URL"
        ) from None


def _check_answer(url: str, response: httpx.Response) -> None:
    if response.status_code in _RETRY_STATUS:
        raise _InterruptionError(f"HTTP status {response.status_code}")
    if response.status_code != httpx.codes.OK:
        raise SourceError(
            "the server has no such archive",
            where=url,
            expected="HTTP status 200",
            got=f"HTTP status {response.status_code}",
            remedy="the file moved: correct the URL in the catalogue, or use a mirror (`source: mirror`)",
        )
    if url.startswith("https:") and response.url.scheme != "https":
        raise SourceError(
            "a secure download was redirected to an insecure one",
            where=url,
            got=str(response.url),
            remedy="correct the URL in the catalogue, or use a mirror (`source: mirror`)",
        )


def _refuse_html(url: str, response: httpx.Response, path: Path) -> None:
    with path.open("rb") as stream:
        start = stream.read(256).lstrip().lower()
    claimed = "text/html" in response.headers.get("content-type", "").lower()
    if claimed or start.startswith((b"<!doctype html", b"<html")):
        raise SourceError(
            "the server answered with a web page",
            where=url,
            expected="an archive",
            got="HTML",
            remedy="open the URL in a browser: it may ask for consent or say where the file went",
        )


def _check_progress(url: str, written: int, deadline: float, patience: Patience) -> None:
    if written > MAX_DOWNLOAD:
        raise SourceError(
            "an archive is too large",
            where=url,
            expected=f"at most {MAX_DOWNLOAD} bytes",
            got="more",
            remedy="this is not the published file: check the URL",
        )
    if time.monotonic() > deadline:
        raise _InterruptionError(f"not complete after {patience.total:g} s ({written} bytes)")


def _check_length(response: httpx.Response, written: int) -> None:
    promised = response.headers.get("content-length", "")
    if promised.isdecimal() and int(promised) != written and "content-encoding" not in response.headers:
        raise _InterruptionError(f"{written} of {promised} bytes")


def _file_name(url: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", PurePosixPath(urlsplit(url).path).name) or "archive"
