"""The Hugging Face hub: pinned revisions, data files only, no loading script ever run."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2
import polars as pl

from pipeline.artifacts import sha256_of
from pipeline.corpora.archive import PATIENCE, Patience
from pipeline.corpora.catalogue import Dataset, HubSplit
from pipeline.corpora.sources import Reading
from pipeline.errors import SourceError

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

ENDPOINT_VARIABLE = "HF_ENDPOINT"
OFFICIAL_ENDPOINT = "https://huggingface.co"

# File kind -> the parser of the `datasets` library. Nothing else in a repository is ever opened.
PARSERS = {
    ".parquet": "parquet",
    ".jsonl": "json",
    ".jsonl.gz": "json",
    ".json": "json",
    ".json.gz": "json",
    ".csv": "csv",
    ".csv.gz": "csv",
}

_RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})

Result = TypeVar("Result")


class _InterruptionError(Exception):
    """A failure that another attempt may not meet. Of no type that huggingface_hub retries itself."""


def read_split(name: str, dataset: Dataset, split: str, *, patience: Patience = PATIENCE) -> Reading:
    """Read one split from the hub at its pinned revision, honouring HF_ENDPOINT.

    Every file is checked against the size and hash that the hub's own listing gives for that
    revision. Raises SourceError if the repository, revision or file does not exist, the network
    fails `patience.tries` times, or the content lacks a mapped column. Rows are counted by the
    caller. Cost: the split in memory.
    """
    place = dataset.hub[split]
    frames: list[pl.DataFrame] = []
    hashes: dict[str, str] = {}
    with _patient_sessions(patience):
        api = _open_api(place)
        listing = {file.path: file for file in _persist(lambda: _list_files(api, place), place, "", patience)}
        for part in place.files:
            for path in _choose_files(list(listing), part, place):
                local = _download(api, place, listing[path], patience)
                frames.append(_map_columns(_parse(local, path, place), place, path))
                hashes[_name(place, path)] = sha256_of(local)
    frame = pl.concat(frames, how="vertical_relaxed")
    return Reading(frame=_name_subsets(frame, dataset, place), source="hub", files=hashes)


# --- network -----------------------------------------------------------------------------------


class _PatientClient(httpx2.Client):
    """A client with timeouts that leaves every retry to `_persist`.

    huggingface_hub asks for listings without any timeout, and repeats interrupted transfers for as
    long as some bytes arrive; a server that misbehaves would hold a stage for ever.
    """

    def __init__(self, patience: Patience) -> None:
        super().__init__(follow_redirects=True)
        self._patience = patience

    def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        limits = httpx2.Timeout(self._patience.read, connect=self._patience.connect)
        request.extensions = {**request.extensions, "timeout": limits.as_dict()}
        try:
            # Always as a stream, so that the time of the whole body is watched too.
            response = super().send(request, stream=True, **options)
        except httpx2.TransportError as error:
            raise _InterruptionError(_describe(error)) from None
        if response.status_code in _RETRY_STATUS:
            response.close()
            raise _InterruptionError(f"HTTP status {response.status_code}")
        if isinstance(response.stream, httpx2.SyncByteStream):
            response.stream = _Body(response.stream, self._patience)
        if not stream:
            with closing(response):
                response.read()
        return response


class _Body(httpx2.SyncByteStream):
    """The body of an answer; if it breaks off or takes too long, that is reported as `_InterruptionError`."""

    def __init__(self, stream: httpx2.SyncByteStream, patience: Patience) -> None:
        self._stream = stream
        self._patience = patience

    def __iter__(self) -> Iterator[bytes]:
        deadline = time.monotonic() + self._patience.total
        try:
            for chunk in self._stream:
                yield chunk
                if time.monotonic() > deadline:
                    raise _InterruptionError(f"not complete after {self._patience.total:g} s")
        except httpx2.TransportError as error:
            raise _InterruptionError(_describe(error)) from None

    def close(self) -> None:
        self._stream.close()


@contextmanager
def _patient_sessions(patience: Patience) -> Iterator[None]:
    """Within this context huggingface_hub uses patient clients; afterwards its own again."""
    # The files are below 25 MB: plain HTTP is enough, and unlike Xet it is timed and checked here.
    # huggingface_hub reads this at its import, which therefore comes after.
    os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
    from huggingface_hub import set_client_factory
    from huggingface_hub.utils._http import default_client_factory

    set_client_factory(lambda: _PatientClient(patience))
    try:
        yield
    finally:
        set_client_factory(default_client_factory)


def _open_api(place: HubSplit) -> HfApi:
    from huggingface_hub import HfApi, is_offline_mode

    if is_offline_mode():
        raise SourceError(
            "the hub is switched off",
            where=_name(place),
            expected="HF_HUB_OFFLINE unset",
            got="HF_HUB_OFFLINE is set",
            remedy="unset it, or use a mirror (`source: mirror`)",
        )
    # Public data at a public revision: no credential is looked for and none is sent.
    return HfApi(endpoint=_endpoint(), token=False, library_name="sentfold")


def _endpoint() -> str:
    return (os.environ.get(ENDPOINT_VARIABLE) or OFFICIAL_ENDPOINT).rstrip("/")


def _cache_folder() -> Path | None:
    """The hub cache as the environment says now; huggingface_hub looks only at its import."""
    if place := os.environ.get("HF_HUB_CACHE"):
        return Path(place)
    home = os.environ.get("HF_HOME")
    return Path(home) / "hub" if home else None


def _list_files(api: HfApi, place: HubSplit) -> list[RepoFile]:
    from huggingface_hub.hf_api import RepoFile

    tree = api.list_repo_tree(place.id, recursive=True, revision=place.revision, repo_type="dataset")
    return [entry for entry in tree if isinstance(entry, RepoFile)]


def _download(api: HfApi, place: HubSplit, file: RepoFile, patience: Patience) -> Path:
    """The file in the local cache, checked against the listing. Raises SourceError.

    What fails the check is deleted from the cache, which would serve it for ever, and fetched once more.
    """

    def fetch() -> Path:
        path = api.hf_hub_download(
            place.id,
            file.path,
            repo_type="dataset",
            revision=place.revision,
            cache_dir=_cache_folder(),
            etag_timeout=patience.read,
        )
        return Path(path)

    expected = file.lfs.sha256 if file.lfs else file.blob_id
    wrong = []
    for _ in range(2):
        path = _persist(fetch, place, file.path, patience)
        got = sha256_of(path) if file.lfs else _git_hash(path)
        if expected == got:
            return path
        wrong.append(f"{path.stat().st_size} bytes, hash {got}")
        _discard(path)
    raise SourceError(
        "a file from the hub is not the one at the pinned revision",
        where=_name(place, file.path),
        expected=f"{file.size} bytes, hash {expected}",
        got=", then ".join(dict.fromkeys(wrong)),
        remedy="try again later: nothing of it was kept in the Hugging Face cache",
    )


def _discard(path: Path) -> None:
    """Delete a file of the hub's cache, and the bytes under their hash that it is a link to."""
    content = path.resolve()
    path.unlink(missing_ok=True)
    content.unlink(missing_ok=True)


def _git_hash(path: Path) -> str:
    """The name git gives a file's content; the hub lists it for files outside LFS."""
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


def _persist(action: Callable[[], Result], place: HubSplit, path: str, patience: Patience) -> Result:
    """Do `action`, again while it is interrupted. Every failure becomes a SourceError."""
    reason = ""
    for attempt in range(patience.tries):
        if attempt:
            time.sleep(patience.delay * 2 ** (attempt - 1))
        try:
            return action()
        except _InterruptionError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001  (huggingface_hub raises its own kinds, OSError, ValueError and KeyError alike)
            raise _explain(error, place, path) from None
    raise SourceError(
        "the hub cannot be reached",
        where=_name(place, path),
        expected=f"an answer of {_endpoint()} within {patience.read:g} s",
        got=f"{reason} ({patience.tries} tries)",
        remedy=f"check the network, the proxy and {ENDPOINT_VARIABLE}, try later, or use a mirror (`source: mirror`)",
    )


def _explain(error: Exception, place: HubSplit, path: str) -> SourceError:
    from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError

    where, got = _name(place, path), _describe(error)
    if isinstance(error, RevisionNotFoundError):
        what, expected = "the hub does not know the pinned revision", f"revision {place.revision}"
    elif isinstance(error, RepositoryNotFoundError):
        what, expected = "the hub has no such dataset, or it is private", f"dataset {place.id}"
    elif isinstance(error, EntryNotFoundError):
        what, expected = "the hub lists a file that it does not have", path
    else:
        what, expected = "the hub's answer cannot be used", "a dataset repository as the hub serves it"
    return SourceError(
        what,
        where=where,
        expected=expected,
        got=got,
        remedy=f"check {ENDPOINT_VARIABLE}; if the dataset moved, pin its new place in the catalogue; "
        "or use a mirror (`source: mirror`)",
    )


# --- files and columns -------------------------------------------------------------------------


def _choose_files(paths: list[str], part: tuple[str, ...], place: HubSplit) -> list[str]:
    """The files of one part: all matches, by name, of the first pattern that has any."""
    for pattern in part:
        matches = sorted(path for path in paths if fnmatch.fnmatchcase(path, pattern) and _parser(path))
        if matches:
            return matches
    scripts = [path for path in paths if path.endswith(".py")]
    raise SourceError(
        "no data file of the repository matches",
        where=_name(place),
        expected=" or ".join(part),
        got=", ".join(sorted(paths)[:12]) or "an empty repository",
        remedy="correct `files` in the catalogue"
        + ("; a loading script is never run: pin a revision that holds data files" if scripts else ""),
    )


def _parser(path: str) -> str | None:
    return next((parser for suffix, parser in PARSERS.items() if path.endswith(suffix)), None)


def _parse(local: Path, path: str, place: HubSplit) -> pl.DataFrame:
    """A data file as a table, by the `datasets` library. Raises SourceError."""
    import datasets

    datasets.disable_progress_bars()
    try:
        with tempfile.TemporaryDirectory(prefix="sentfold-") as scratch:
            table = datasets.load_dataset(
                _parser(path), data_files=[str(local)], split="train", cache_dir=scratch, keep_in_memory=True
            )
            frame = table.to_polars()
    except Exception as error:  # noqa: BLE001  (pyarrow and pandas underneath raise a dozen unrelated kinds)
        raise SourceError(
            "a file from the hub cannot be parsed",
            where=_name(place, path),
            expected=f"a {_parser(path)} file",
            got=_describe(error),
            remedy="correct `files` in the catalogue, or pin a revision whose files are whole",
        ) from None
    return frame if isinstance(frame, pl.DataFrame) else pl.concat(list(frame))


def _map_columns(frame: pl.DataFrame, place: HubSplit, path: str) -> pl.DataFrame:
    """The canonical columns of the rows to keep. Raises SourceError on a column or label unknown."""
    for canonical, column in [*place.columns.items(), *((column, column) for column in place.keep)]:
        if column not in frame.columns:
            raise SourceError(
                f"column '{column}' (for '{canonical}') is missing",
                where=_name(place, path),
                expected=", ".join(place.columns.values()),
                got=", ".join(frame.columns),
                remedy="correct `columns` in the catalogue, or pin the revision that has them",
            )
    for column, values in place.keep.items():
        frame = frame.filter(pl.col(column).is_in(list(values)))
    frame = frame.select(pl.col(column).alias(canonical) for canonical, column in place.columns.items())
    return _map_labels(frame, place, path) if place.labels else frame


def _map_labels(frame: pl.DataFrame, place: HubSplit, path: str) -> pl.DataFrame:
    labels = frame["label"].cast(pl.String)
    unknown = sorted(set(labels.drop_nulls()) - set(place.labels))
    if unknown:
        raise SourceError(
            "a label is not in the catalogue",
            where=_name(place, path),
            expected=f"one of: {', '.join(place.labels)}",
            got=", ".join(unknown[:5]),
            remedy="correct `labels` in the catalogue",
        )
    return frame.with_columns(labels.replace_strict(place.labels, return_dtype=pl.Int64).alias("label"))


def _name_subsets(frame: pl.DataFrame, dataset: Dataset, place: HubSplit) -> pl.DataFrame:
    """A `subset` column for a similarity task: the given counts in order, else one nameless subset."""
    if dataset.task != "similarity" or "subset" in frame.columns:
        return frame
    if not place.subsets:
        return frame.with_columns(pl.lit("").alias("subset"))
    names = [name for name, count in place.subsets.items() for _ in range(count)]
    if len(names) != len(frame):
        raise SourceError(
            "the rows do not fill the subsets", where=_name(place), expected=str(len(names)), got=str(len(frame))
        )
    return frame.with_columns(pl.Series("subset", names))


def _name(place: HubSplit, path: str = "") -> str:
    return f"hub:{place.id}@{place.revision}" + (f"/{path}" if path else "")


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200].rstrip(": ")
