"""Official archives by URL, used only if their sha256 is the sha256 in the catalogue."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pipeline.corpora.archive_readers import READERS, Member
from pipeline.corpora.catalogue import CATALOGUE_FILE, ArchiveSplit, Dataset
from pipeline.corpora.fetch import PATIENCE, Patience, fetch, matches, record_digest
from pipeline.corpora.reading import Reading, UnrecordedError, check_columns, check_count
from pipeline.corpora.unpack import MAX_TOTAL, read_members
from sentfold.errors import SourceError, first_line, located
from sentfold.files import require_regular, sha256_of

CACHE_VARIABLE = "SENTFOLD_CACHE"
NOT_AS_DESCRIBED = "the archive is not what the catalogue describes: check the URL and its sha256"


def read_split(name: str, dataset: Dataset, split: str, *, patience: Patience = PATIENCE) -> Reading:
    """Read one split from its official archives, and download the archives that the cache lacks.

    Raises UnrecordedError if the catalogue has no sha256 yet, SourceError if an archive has another sha256, the
    server fails, an archive is unsafe, or the reader does not know its format. Cost: the archives in memory.
    """
    place = dataset.archive[split]
    unknown = [url for url, sha256 in place.urls.items() if sha256 is None]
    if unknown:
        slug = next((slug for slug, splits in dataset.corpora.items() if split in splits), name)
        record = f"`python -m pipeline download --record-hash {slug}`"
        raise UnrecordedError(
            f"the catalogue has no sha256 of this archive yet; {record} records the sha256",
            where=f"{name}: {unknown[0]}",
            expected=f"64 hexadecimal digits in {CATALOGUE_FILE.name}",
            got="null",
            remedy=f"run {record}, look at what it recorded, and commit it",
        )
    paths = {url: locate(url, sha256=sha256, patience=patience) for url, sha256 in place.urls.items()}
    return _read(place, paths, place.urls)


def record_hashes(
    dataset: Dataset, *, catalogue: Path = CATALOGUE_FILE, patience: Patience = PATIENCE
) -> dict[str, str]:
    """Download the archives of a data set whose sha256 is null, and write the sha256 into the catalogue.

    A sha256 is recorded only if all archives can be read and each split has the published number of rows. Returns
    url -> sha256 of all archives. If an archive cannot be downloaded or read, raises SourceError and leaves the
    catalogue unchanged.
    """
    known = {url: sha256 for place in dataset.archive.values() for url, sha256 in place.urls.items()}
    paths = {url: locate(url, sha256=sha256, patience=patience) for url, sha256 in known.items()}
    digests: dict[str, str] = {}
    for split, place in dataset.archive.items():
        reading = _read(place, {url: paths[url] for url in place.urls}, known | digests)
        digests |= reading.files
        where = next(iter(place.urls))
        check_count(check_columns(reading.frame, dataset, where=where), dataset, split, where=where)
    for url, digest in digests.items():
        if known[url] is None:
            record_digest(catalogue, rf'(^.*"?{re.escape(url)}"?:) null\b', digest)
    return digests


def _read(place: ArchiveSplit, paths: Mapping[str, Path], known: Mapping[str, str | None]) -> Reading:
    """The split in the files of `paths`. Raises SourceError, also if a file has another sha256 than `known` says."""
    if place.reader not in READERS:
        raise SourceError(
            f"there is no reader '{place.reader}'",
            where="pipeline/catalogue.yaml",
            expected=f"one of: {', '.join(sorted(READERS))}",
            got=place.reader,
        )
    members: list[Member] = []
    files: dict[str, str] = {}
    for url, path in paths.items():
        with located(url, remedy=NOT_AS_DESCRIBED):
            # The bytes that are hashed are unpacked: others may be able to change the file.
            data = _content(path)
            files[url] = hashlib.sha256(data).hexdigest()
            if known[url] not in (None, files[url]):
                raise SourceError(
                    "an archive was changed while it was read", expected=f"sha256 {known[url]}", got=files[url]
                )
            members.extend(read_members(data, _file_name(url), place.members))
    with located(next(iter(place.urls)), remedy=NOT_AS_DESCRIBED):
        table = READERS[place.reader](members)
    return Reading(frame=table.frame, source="archive", files=files, replaced=table.replaced)


def _content(path: Path) -> bytes:
    try:
        require_regular(path)
        with path.open("rb") as stream:
            data = stream.read(MAX_TOTAL + 1)
    except OSError as error:
        raise SourceError("an archive cannot be read", got=first_line(error)) from None
    if len(data) > MAX_TOTAL:
        raise SourceError("an archive is too large", expected=f"at most {MAX_TOTAL} bytes", got="more")
    return data


def cache_folder() -> Path:
    """The folder of downloads: $SENTFOLD_CACHE, else a folder below the user's cache folder."""
    place = os.environ.get(CACHE_VARIABLE, "")
    return Path(place) if place else Path.home() / ".cache" / "sentfold" / "archives"


def locate(url: str, *, sha256: str | None, patience: Patience) -> Path:
    """The file of a URL, checked against `sha256`; without a sha256 it is downloaded again. Raises SourceError."""
    if urlsplit(url).scheme == "file":
        path = _local_file(url)
        if sha256 is not None and not matches(path, sha256):
            raise SourceError(
                "a local file has another sha256",
                where=url,
                expected=sha256,
                got=sha256_of(path),
                remedy="correct the file or the catalogue",
            )
        return path
    path = locate_in_cache(url)
    if sha256 is None:
        path.unlink(missing_ok=True)
    return fetch(url, path, sha256=sha256, most=MAX_TOTAL, patience=patience)


def locate_in_cache(url: str) -> Path:
    """The path in the cache for the file of a URL, whether the file exists or not."""
    return cache_folder() / f"{hashlib.sha256(url.encode()).hexdigest()[:16]}-{_file_name(url)}"


def _local_file(url: str) -> Path:
    parts = urlsplit(url)
    path = Path(url2pathname(parts.path))
    if parts.netloc not in ("", "localhost") or not path.is_file():
        raise SourceError("a file URL names no file on this machine", where=url, remedy="correct the URL")
    return path


def _file_name(url: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", PurePosixPath(urlsplit(url).path).name) or "archive"
