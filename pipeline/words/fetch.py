"""Download a published file of word vectors, because somebody asked for it: no stage calls this."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
from tqdm import tqdm

from pipeline.artifacts import sha256_of, write_bytes_atomically
from pipeline.errors import SourceError, first_line
from pipeline.words.locations import FOLDER_VARIABLE, LOCATIONS_FILE, Location, find_location, vectors_folder

_RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_MIRRORED = f"get the file elsewhere and put it into {FOLDER_VARIABLE}: its sha256 is what counts"


@dataclass(frozen=True)
class Patience:
    """How long a server is waited for.

    silence  seconds without a byte after which it has stalled
    tries    attempts in a row that bring nothing new before giving up
    delay    seconds before the second attempt, doubled for each further one
    """

    silence: float = 60.0
    tries: int = 5
    delay: float = 2.0


class _InterruptionError(Exception):
    """A failure that another attempt may not meet."""


def describe_download(name: str, *, locations: Path = LOCATIONS_FILE, patience: Patience = Patience()) -> str:
    """What `fetch_vectors` would get: size by the server's word, terms, hash, and where it would lie.

    Raises SourceError for an unknown name; a server that does not tell the size is no error.
    """
    location = find_location(name, locations)
    size = _promised_size(location.url, patience)
    return "\n".join(
        [
            f"{name}: {location.title}",
            f"  place     {location.url}",
            f"  size      {'not told by the server' if size is None else f'{size:,} bytes'}",
            f"  licence   {location.licence}",
            f"  sha256    {location.sha256 or 'not recorded yet'}",
            f"  goes to   {vectors_folder() / location.file}",
        ]
    )


def fetch_vectors(
    name: str,
    *,
    locations: Path = LOCATIONS_FILE,
    folder: Path | None = None,
    patience: Patience = Patience(),
    record: bool = False,
) -> str:
    """Download the word vectors `name` into the folder of word vectors; say what was got.

    record  where no sha256 is known yet, write that of the file into `locations`; else it is not downloaded
    A download that breaks off goes on where it stopped, also in a later call. Returns a line for the user.
    Raises SourceError if the hash is not known, the server fails, or the file is not the known one, which is then
    not kept.
    """
    location = find_location(name, locations)
    if location.sha256 is None and not record:
        raise SourceError(
            f"no sha256 is recorded for the word vectors '{name}'",
            where=f"{locations.name}: {name}",
            expected="64 hexadecimal digits to hold the file against",
            got="null",
            state="nothing was downloaded",
            remedy=f"run `sentfold fetch-vectors {name} --record-hash`, look at what it recorded, and commit it",
        )
    target = (folder or vectors_folder()) / location.file
    if target.is_file():
        there = sha256_of(target)
        if location.sha256 is None:
            return _record_hash(name, there, target, locations)
        if location.sha256 == there:
            return f"{target} is there already, with the known sha256"
    partial = target.with_name(f"{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _download(location, partial, patience)
        digest = sha256_of(partial)
        if location.sha256 not in (None, digest):
            partial.unlink()
            raise SourceError(
                f"the word vectors '{name}' are not the known ones",
                where=location.url,
                expected=location.sha256 or "",
                got=digest,
                remedy=f"try again; if it stays so, {_MIRRORED}",
            )
        partial.replace(target)
    except OSError as error:
        raise SourceError(
            "word vectors cannot be stored",
            where=str(target.parent),
            got=str(error.strerror),
            state="what came so far was kept, and is gone on with",
            remedy=f"free space there, or set {FOLDER_VARIABLE} to another folder",
        ) from None
    return _record_hash(name, digest, target, locations) if location.sha256 is None else f"{target}: the known sha256"


def _record_hash(name: str, digest: str, target: Path, locations: Path) -> str:
    """Put the digest in the place of the null, the rest of the file left as it is."""
    text = locations.read_text(encoding="utf-8")
    line = re.compile(rf"(^{re.escape(name)}:\n(?:[ ].*\n)*?[ ]+sha256:) null$", re.MULTILINE)
    recorded, places = line.subn(rf"\g<1> {digest}", text)
    if places != 1:
        raise SourceError(
            "the sha256 cannot be recorded",
            where=f"{locations.name}: {name}",
            expected="a line `sha256: null` in the block",
            got=f"{places} of them",
            state=f"{target} was kept",
            remedy=f"put this there by hand: {digest}",
        )
    write_bytes_atomically(locations, recorded.encode())
    return f"{target}: sha256 {digest}, now recorded in {locations.name}; commit it if you trust it"


def _promised_size(url: str, patience: Patience) -> int | None:
    try:
        answer = httpx.head(url, timeout=patience.silence, headers={"User-Agent": "sentfold"}, follow_redirects=True)
    except (httpx.HTTPError, httpx.InvalidURL):
        return None
    length = answer.headers.get("content-length", "")
    return int(length) if answer.status_code == httpx.codes.OK and length.isdecimal() else None


def _download(location: Location, partial: Path, patience: Patience) -> None:
    """Stream the URL into `partial`, going on where an earlier attempt stopped. Raises SourceError."""
    failures, reason = 0, ""
    while failures < patience.tries:
        if failures:
            time.sleep(patience.delay * 2 ** (failures - 1))
        before = partial.stat().st_size if partial.exists() else 0
        try:
            return _download_rest(location.url, partial, before, patience)
        except _InterruptionError as error:
            reason = str(error)
            came = partial.stat().st_size if partial.exists() else 0
            failures = 1 if came > before else failures + 1
    raise SourceError(
        "word vectors cannot be downloaded",
        where=location.url,
        expected=f"an answer, and no silence over {patience.silence:g} s",
        got=f"{reason} ({patience.tries} tries)",
        state="what came so far was kept, and is gone on with",
        remedy=f"try again later, or {_MIRRORED}",
    )


def _download_rest(url: str, partial: Path, have: int, patience: Patience) -> None:
    headers = {"Accept-Encoding": "identity", "User-Agent": "sentfold"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        with httpx.stream("GET", url, timeout=patience.silence, headers=headers, follow_redirects=True) as response:
            if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                # Nothing is left to send, or the file is a shorter one now: its hash will tell.
                return
            goes_on = response.status_code == httpx.codes.PARTIAL_CONTENT
            _check_answer(url, response)
            _write_body(response, partial, have if goes_on else 0)
    except httpx.TimeoutException:
        raise _InterruptionError("the server stalled") from None
    except httpx.TransportError as error:
        raise _InterruptionError(first_line(error)) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise SourceError("word vectors cannot be asked for", where=url, got=first_line(error)) from None


def _write_body(response: httpx.Response, partial: Path, have: int) -> None:
    promised = response.headers.get("content-length", "")
    total = have + int(promised) if promised.isdecimal() else None
    with (
        partial.open("ab" if have else "wb") as stream,
        tqdm(total=total, initial=have, desc=partial.stem, unit="B", unit_scale=True, disable=None) as bar,
    ):
        for chunk in response.iter_bytes():
            stream.write(chunk)
            bar.update(len(chunk))
    size = partial.stat().st_size
    if total is not None and size != total:
        if size > total:
            partial.unlink()
        raise _InterruptionError(f"{size} of {total} bytes")


def _check_answer(url: str, response: httpx.Response) -> None:
    if response.status_code in _RETRY_STATUS:
        raise _InterruptionError(f"HTTP status {response.status_code}")
    said = {
        "HTTP status 200": response.status_code not in (httpx.codes.OK, httpx.codes.PARTIAL_CONTENT),
        "a file": "text/html" in response.headers.get("content-type", "").lower(),
        "a secure server all the way": url.startswith("https:") and response.url.scheme != "https",
    }
    for expected, failed in said.items():
        if failed:
            with suppress(httpx.HTTPError):
                response.read()
            raise SourceError(
                "the server does not give these word vectors",
                where=url,
                expected=expected,
                got=f"HTTP status {response.status_code} from {response.url}",
                remedy=f"open the URL in a browser; or {_MIRRORED}",
            )
