"""Data sets on the Hugging Face hub, at pinned revisions; only data files are read, loading scripts are not run."""

from __future__ import annotations

import csv
import fnmatch
import hashlib
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.corpora.archive import locate_in_cache
from pipeline.corpora.catalogue import Dataset, HubSplit
from pipeline.corpora.fetch import PATIENCE, Patience, fetch, refuse_drip
from pipeline.corpora.reading import Reading, check_cells, frame_of_parquet
from pipeline.corpora.unpack import unpack_gzip
from sentfold.errors import SourceError, UnansweredError, located

if TYPE_CHECKING:
    from huggingface_hub.hf_api import RepoFile

ENDPOINT_VARIABLE = "HF_ENDPOINT"
OFFICIAL_ENDPOINT = "https://huggingface.co"
MAX_FILE = 4 * 2**30  # bytes; the largest file of the catalogue has 100 MB
USE_MIRROR = "or use a mirror (`source: mirror`)"

# File suffix -> the format; the `datasets` library parses json and csv. Files with other suffixes are never opened.
PARSERS = {
    ".parquet": "parquet",
    ".jsonl": "json",
    ".jsonl.gz": "json",
    ".json": "json",
    ".json.gz": "json",
    ".csv": "csv",
    ".csv.gz": "csv",
}


def read_split(name: str, dataset: Dataset, split: str, *, patience: Patience = PATIENCE) -> Reading:
    """Read one split from the hub at its pinned revision; the variable HF_ENDPOINT can name another hub.

    Every file is checked against the hash in the hub's listing of that revision. The caller checks the number of
    rows. Raises SourceError if the repository, revision or file does not exist, or a mapped column is missing,
    UnansweredError if the hub does not answer. Cost: the split in memory.
    """
    place = dataset.hub[split]
    listing = {file.path: file for file in _list_files(place, patience)}
    frames: list[pl.DataFrame] = []
    hashes: dict[str, str] = {}
    for part in place.files:
        for path in _choose_files(list(listing), part, place):
            data = _download(place, listing[path], patience)
            frames.append(_map_columns(_parse(data, path, place), place, path))
            hashes[_name(place, path)] = hashlib.sha256(data).hexdigest()
    frame, further = pl.concat(frames, how="vertical_relaxed"), tuple[str, ...]()
    if place.texts is not None:
        queries, documents = (
            {path: _download(place, listing[path], patience) for path in _choose_files(list(listing), patterns, place)}
            for patterns in (place.texts.queries, place.texts.documents)
        )
        frame, further = _join_texts(frame, place, _read_texts(queries, place), _read_texts(documents, place))
        texts = {**queries, **documents}
        hashes |= {_name(place, path): hashlib.sha256(data).hexdigest() for path, data in texts.items()}
    return Reading(_name_subsets(frame, dataset, place), source="hub", files=hashes, further=further)


# --- network -----------------------------------------------------------------------------------


def _list_files(place: HubSplit, patience: Patience) -> list[RepoFile]:
    """The files of the repository at the pinned revision, with their hashes."""
    import httpx2
    from huggingface_hub import HfApi, is_offline_mode, set_client_factory
    from huggingface_hub.hf_api import RepoFile
    from huggingface_hub.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # the error after the last retry is enough
    if is_offline_mode():
        raise SourceError(
            "the hub is switched off",
            where=_name(place),
            expected="HF_HUB_OFFLINE unset",
            got="HF_HUB_OFFLINE is set",
            remedy=f"unset it, {USE_MIRROR}",
        )
    limits = httpx2.Timeout(patience.read, connect=patience.connect).as_dict()

    def limit(request: httpx2.Request) -> None:
        # huggingface_hub sets no time limit on the request for a listing.
        request.extensions["timeout"] = limits

    set_client_factory(lambda: httpx2.Client(follow_redirects=True, event_hooks={"request": [limit]}))
    # Public data at a public revision: no credential is read or sent.
    api = HfApi(endpoint=_endpoint(), token=False, library_name="sentfold")
    tree: list[Any] = []

    def list_tree() -> None:
        tree.extend(api.list_repo_tree(place.id, recursive=True, revision=place.revision, repo_type="dataset"))

    try:
        refuse_drip(list_tree, lambda: 0, patience, where=_name(place))  # a listing is small: it comes in one window
        files = [entry for entry in tree if isinstance(entry, RepoFile)]
        for file in files:
            if not (isinstance(file.path, str) and isinstance(file.size, int)):
                raise ValueError(f"the file {file.path!r} has the size {file.size!r}")
    except UnansweredError:
        raise
    except Exception as error:  # noqa: BLE001  (huggingface_hub raises its own kinds, OSError, ValueError and KeyError alike)
        raise _explain(error, place) from None
    return files


def _endpoint() -> str:
    return (os.environ.get(ENDPOINT_VARIABLE) or OFFICIAL_ENDPOINT).rstrip("/")


def _download(place: HubSplit, file: RepoFile, patience: Patience) -> bytes:
    """The bytes of the file in the cache, checked against the listing. Raises SourceError."""
    from huggingface_hub import hf_hub_url

    url = hf_hub_url(place.id, file.path, repo_type="dataset", revision=place.revision, endpoint=_endpoint())
    path, most = locate_in_cache(url), min(file.size, MAX_FILE)
    # For small files the listing has the hash of git, not a sha256.
    sha256 = file.lfs.sha256 if file.lfs is not None else None
    expected = file.blob_id if file.lfs is None else sha256
    with located(_name(place, file.path), remedy=USE_MIRROR):
        if file.lfs is None and path.is_file() and _git_hash(path.read_bytes()) != expected:
            path.unlink()
        fetch(url, path, sha256=sha256, most=most, patience=patience)
    data = path.read_bytes()  # these bytes are parsed: the file is not read again
    got = _git_hash(data) if file.lfs is None else hashlib.sha256(data).hexdigest()
    if got != expected:
        path.unlink(missing_ok=True)
        raise SourceError(
            "a file from the hub differs from the file at the pinned revision",
            where=_name(place, file.path),
            expected=f"{file.size} bytes, hash {expected}",
            got=f"hash {got}",
            remedy=f"try again later, {USE_MIRROR}",
        )
    return data


def _git_hash(data: bytes) -> str:
    """The hash of a file as git computes it for a blob."""
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


def _explain(error: Exception, place: HubSplit) -> SourceError:
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

    remedy = f"check {ENDPOINT_VARIABLE}; if the dataset moved, pin its new id in the catalogue; {USE_MIRROR}"
    kind, expected = SourceError, "a listing of a dataset repository"
    if isinstance(error, RevisionNotFoundError):
        what, expected = "the hub does not know the pinned revision", f"revision {place.revision}"
    elif isinstance(error, RepositoryNotFoundError):
        what, expected = "the hub has no such dataset, or it is private", f"dataset {place.id}"
    elif isinstance(error, httpx2.TransportError | HfHubHTTPError):
        kind, what, expected = UnansweredError, "the hub cannot be reached", f"an answer from {_endpoint()}"
        remedy = f"check the network, the proxy and {ENDPOINT_VARIABLE}, try later, {USE_MIRROR}"
    else:
        what = "the hub's answer cannot be used"
    return kind(what, where=_name(place), expected=expected, got=_describe(error), remedy=remedy)


def _name(place: HubSplit, path: str = "") -> str:
    return f"hub:{place.id}@{place.revision}" + (f"/{path}" if path else "")


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200].rstrip(": ")


# --- files and columns -------------------------------------------------------------------------


def _choose_files(paths: list[str], part: tuple[str, ...], place: HubSplit) -> list[str]:
    """The files of one part: all matches of the first pattern with a match, sorted by name."""
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


def _parse(data: bytes, path: str, place: HubSplit) -> pl.DataFrame:
    """The content of a data file as a table. Raises SourceError, also for bytes that unpack to far more."""
    try:
        frame = _parse_parquet(data) if _parser(path) == "parquet" else _parse_text(data, path)
    except Exception as error:  # noqa: BLE001  (pyarrow and pandas underneath raise a dozen unrelated kinds)
        raise SourceError(
            "a file from the hub cannot be parsed",
            where=_name(place, path),
            expected=f"a {_parser(path)} file",
            got=_describe(error),
            remedy="correct `files` in the catalogue, or pin a revision whose files are whole",
        ) from None
    return frame


def _parse_parquet(data: bytes) -> pl.DataFrame:
    frame = frame_of_parquet(data)
    return frame.with_columns(pl.col(pl.Categorical).cast(pl.String))


def _parse_text(data: bytes, path: str) -> pl.DataFrame:
    """The content of a json or csv file as the `datasets` library reads it."""
    import datasets
    from datasets.utils.extract import Extractor

    datasets.disable_progress_bars()
    content = unpack_gzip(data) if path.endswith(".gz") else data
    with tempfile.TemporaryDirectory(prefix="sentfold-") as scratch:
        plain = Path(scratch) / "plain"
        plain.write_bytes(content)
        # `datasets` unpacks whatever looks like an archive, and has no limit.
        kind = Extractor.infer_extractor_format(plain)
        if kind:
            raise ValueError(f"an archive of kind {kind}")
        if _parser(path) == "json":
            # Before Python holds millions of values: each takes 8 bytes in its list, and 100 as an object of its own.
            check_cells(8, content.count(b"{") + content.count(b"[") + content.count(b","), len(data))
            # Inner keys are columns to `datasets`, if they are not the same in all rows that it looks at first.
            try:
                check_cells(*_shape_of_json(content), len(data))
            except SourceError:
                content = _inner_as_text(content)
                check_cells(*_shape_of_json(content), len(data))
                plain.write_bytes(content)
        else:
            check_cells(*_shape_of_csv(content), len(data))
        table = datasets.load_dataset(
            _parser(path), data_files=[str(plain)], split="train", cache_dir=scratch, keep_in_memory=True
        )
        frame = table.to_polars()
    return frame if isinstance(frame, pl.DataFrame) else pl.concat(list(frame))


def _shape_of_csv(content: bytes) -> tuple[int, int]:
    """At most as many columns and rows the table of a csv file has: pandas fills short rows up."""
    lines = io.TextIOWrapper(io.BytesIO(content), encoding="latin-1", newline="")
    before = csv.field_size_limit(len(content) + 1)
    try:
        columns = max(map(len, csv.reader(lines)), default=0)
    finally:
        csv.field_size_limit(before)
    return columns, content.count(b"\n") + content.count(b"\r")


def _shape_of_json(content: bytes) -> tuple[int, int]:
    """How many different keys and how many objects a file of JSON values has: each object gets all keys.

    A key inside of another one counts as one of its own. Raises ValueError for a file that is no JSON.
    """
    tree: dict[str, Any] = {}  # key -> the keys inside of its values
    keys = objects = 0
    for outer in _values_of_json(content):
        waiting = [(outer, tree)]
        while waiting:
            value, inner = waiting.pop()
            if isinstance(value, list):
                waiting += [(item, inner) for item in value if isinstance(item, dict | list)]
            elif isinstance(value, dict):
                objects, keys = objects + 1, keys + len(value.keys() - inner.keys())
                waiting += [(item, inner.setdefault(key, {})) for key, item in value.items()]
    return keys, objects


def _values_of_json(content: bytes) -> Iterator[Any]:
    """The values of a file, one after the other. Raises ValueError for a file that is no JSON."""
    decoder, text = json.JSONDecoder(strict=False), content.decode("utf-8-sig", errors="replace")
    place = 0
    while begin := re.compile(r"\S").search(text, place):
        value, place = decoder.raw_decode(text, begin.start())
        yield value


def _inner_as_text(content: bytes) -> bytes:
    """One object a line, with objects and lists inside of it as JSON text, which takes no more memory than the file.

    Inner keys such as ids of documents would be as many columns. Raises ValueError for rows that are no objects.
    """
    lines = []
    for value in _values_of_json(content):
        for row in value if isinstance(value, list) else [value]:
            if not isinstance(row, dict):
                raise ValueError(f"a row that is no object, but a {type(row).__name__}")
            texts = {
                key: json.dumps(item, ensure_ascii=False) if isinstance(item, dict | list) else item
                for key, item in row.items()
            }
            lines.append(json.dumps(texts).encode() + b"\n")
    return b"".join(lines)


def _map_columns(frame: pl.DataFrame, place: HubSplit, path: str) -> pl.DataFrame:
    """The canonical columns of the rows to keep. Raises SourceError on a missing column or an unknown label."""
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


def _read_texts(files: dict[str, bytes], place: HubSplit) -> dict[str, str]:
    """Id -> title and text, joined by a blank as BEIR joins them. Raises SourceError on a missing column."""
    texts: dict[str, str] = {}
    for path, data in files.items():
        frame = _parse(data, path, place)
        for column in ("_id", "text"):
            if column not in frame.columns:
                raise SourceError(
                    f"column '{column}' is missing",
                    where=_name(place, path),
                    expected="_id, text",
                    got=", ".join(frame.columns),
                    remedy="correct `texts` in the catalogue, or pin the revision that has them",
                )
        titles = frame["title"].fill_null("") if "title" in frame.columns else [""] * len(frame)
        rows = zip(frame["_id"].cast(pl.String), titles, frame["text"].fill_null(""), strict=True)
        texts |= {name: f"{title} {text}".strip() for name, title, text in rows}
    return texts


def _join_texts(
    frame: pl.DataFrame, place: HubSplit, queries: dict[str, str], documents: dict[str, str]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Judgements with the texts that they name by id, and all documents. Raises SourceError if an id has no text."""
    for kind, texts in (("query", queries), ("document", documents)):
        names = frame[f"{kind}_id"].cast(pl.String)
        unknown = [name for name in names if name not in texts]
        if unknown:
            raise SourceError(
                f"a judgement names a {kind} without a text",
                where=_name(place),
                expected=f"ids of the table of the {kind} texts",
                got=str(unknown[0]),
                remedy="correct `texts` in the catalogue, or pin a revision whose tables fit",
            )
        frame = frame.with_columns(pl.Series(kind, [texts[name] for name in names], dtype=pl.String))
    return frame, tuple(documents.values())


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
    """Add a column `subset` for a similarity task: the given subsets in order, or one subset with an empty name."""
    if dataset.layout != "similarity" or "subset" in frame.columns:
        return frame
    if not place.subsets:
        return frame.with_columns(pl.lit("").alias("subset"))
    names = [name for name, count in place.subsets.items() for _ in range(count)]
    if len(names) != len(frame):
        raise SourceError(
            "the rows do not fill the subsets", where=_name(place), expected=str(len(names)), got=str(len(frame))
        )
    return frame.with_columns(pl.Series("subset", names))
