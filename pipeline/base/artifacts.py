"""The one way artifacts are named, written and read.

Parquet with a declared kind, deterministic bytes (same content, same bytes, on any number of
threads), page checksums, and an atomic appearance: a reader sees the whole file or none of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from sentfold.errors import ArtifactError, first_line
from sentfold.files import BATCH, PARQUET, ROW_GROUP, Vectors, require_regular, sha256_of, write_bytes_atomically
from sentfold.files import fixed_lists as fixed_lists
from sentfold.numeric_profile import profile_name

SCHEMA_VERSION = 1

# What an error in the middle of a stage leaves behind.
DISCARDED = "what the stage wrote for earlier corpora is unrecorded, and made again by the next run"
_KEY = b"sentfold"
_SEAL = b"sentfold-sha256"


# --- names -------------------------------------------------------------------------------------


def corpus_path(suite: str, corpus: str, part: str) -> Path:
    """Where `part` ("sentences" or "items") of a corpus lies."""
    return Path("data") / suite / "corpora" / corpus / f"{part}.parquet"


def space_path(suite: str, space: str, corpus: str) -> Path:
    """Where the vectors of one corpus in one space lie."""
    return Path("data") / suite / "spaces" / space / f"{corpus}.parquet"


def graph_path(suite: str, space: str, corpus: str) -> Path:
    """Where the neighbour graph of one corpus in one space lies."""
    return Path("data") / suite / "graphs" / space / f"{corpus}.parquet"


def weights_path(suite: str, space: str, corpus: str) -> Path:
    """Where the reconstruction weights of one corpus lie, by the space they will make."""
    return Path("data") / suite / "weights" / space / f"{corpus}.parquet"


def resamples_path(suite: str, space: str, corpus: str) -> Path:
    """Where the bootstrap replicates of one space on one corpus lie."""
    return Path("data") / suite / "resamples" / space / f"{corpus}.parquet"


def scores_path(suite: str, space: str) -> Path:
    """Where the scores of one space lie."""
    return Path("reports") / suite / "scores" / f"{space}.json"


def sensitivity_path(suite: str, encoder: str) -> Path:
    """Where the scores of a word encoder's hyper-parameters lie, one at a time."""
    return Path("reports") / suite / "sweeps" / f"{encoder}-sensitivity" / "surface.json"


def artifact_name(path: Path) -> str:
    """What an artifact is called inside itself, so that a file moved onto another is noticed."""
    return "/".join(path.parts[-4:])


# --- writing -----------------------------------------------------------------------------------


def write_table(
    path: Path,
    table: pa.Table,
    *,
    kind: str,
    parameters: Mapping[str, Any],
    inputs: Sequence[Path] = (),
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Write `table` as the artifact `path`.

    kind        what the rows are ("sentences", "vectors", ...); a reader insists on it
    parameters  what made it, JSON-able, deterministic
    inputs      the artifacts it was made from; their sha256 is stored
    notes       what the making counted or certified (JSON-able, deterministic: no time, no host)
    Raises ArtifactError when the disk refuses. Cost O(bytes); one copy in memory.
    """
    record = {
        "columns": _columns_of(table),
        "inputs": {str(source): sha256_of(source) for source in inputs},
        "kind": kind,
        "name": artifact_name(path),
        "notes": dict(notes or {}),
        "parameters": dict(parameters),
        "profile": profile_name(),
        "rows": table.num_rows,
        "schema_version": SCHEMA_VERSION,
    }
    text = json.dumps(record, sort_keys=True, ensure_ascii=False, allow_nan=False).encode()
    # Chunk layout in memory would otherwise change the bytes on disk.
    whole = table.combine_chunks().replace_schema_metadata({_KEY: text, _SEAL: _seal(text)})
    sink = pa.BufferOutputStream()
    pq.write_table(
        whole,
        sink,
        row_group_size=ROW_GROUP,
        **PARQUET,
    )
    write_bytes_atomically(path, memoryview(sink.getvalue()).tobytes())


def write_vectors(
    path: Path,
    vectors: Vectors,
    *,
    parameters: Mapping[str, Any],
    inputs: Sequence[Path] = (),
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Write one float32 vector per sentence; ArtifactError if any value is not finite."""
    if not np.isfinite(vectors).all():
        row = int(np.argwhere(~np.isfinite(vectors))[0, 0])
        raise ArtifactError(
            "a vector is not finite",
            where=str(path),
            expected="finite float32",
            got=f"row {row} of {len(vectors)}",
            remedy="report this: no stage may produce such a vector",
        )
    table = pa.table({"vector": fixed_lists(np.ascontiguousarray(vectors, dtype=np.float32))})
    write_table(path, table, kind="vectors", parameters=parameters, inputs=inputs, notes=notes)


def write_absence(path: Path, reason: str, *, kind: str, inputs: Sequence[Path] = ()) -> None:
    """Write an artifact that says why there is nothing: no rows, and the reason."""
    write_table(path, pa.table({}), kind=kind, parameters={}, inputs=inputs, notes={"absent": reason})


# --- reading -----------------------------------------------------------------------------------


def read_record(path: Path, *, kind: str) -> dict[str, Any]:
    """What an artifact says of itself: kind, name, parameters, inputs, notes.

    Raises ArtifactError if the file is missing, truncated, foreign, of another kind or moved.
    """
    record = _read_any(path, expected=f"kind '{kind}'")
    for key, right in (("schema_version", SCHEMA_VERSION), ("kind", kind), ("name", artifact_name(path))):
        if record.get(key) != right:
            raise _broken(
                path, f"an artifact has another {key.replace('_', ' ')}", expected=str(right), got=str(record.get(key))
            )
    return record


def kind_of(path: Path) -> str:
    """The kind of an artifact. Raises ArtifactError if the file is missing, truncated or foreign."""
    return str(_read_any(path, expected="any kind")["kind"])


def _read_any(path: Path, *, expected: str) -> dict[str, Any]:
    try:
        require_regular(path)
        metadata = pq.read_metadata(path).metadata or {}
    except FileNotFoundError:
        raise ArtifactError(
            "an artifact is missing",
            where=str(path),
            expected=f"an artifact of {expected}",
            got="no such file",
            remedy="run `dvc repro`, which makes it or takes it from its cache",
        ) from None
    except MemoryError as error:
        raise _no_memory(path, error) from None
    except (pa.ArrowException, OSError, ValueError) as error:  # ValueError: a name that is no longer text
        raise _broken(
            path, "an artifact cannot be read", expected="a whole Parquet file", got=first_line(error)
        ) from None
    try:
        record: dict[str, Any] = json.loads(metadata[_KEY])
    except (KeyError, ValueError):
        raise _broken(
            path,
            "a file is not one of ours",
            expected=f"a sentfold artifact of {expected}",
            got="no record of its making",
        ) from None
    # Page checksums leave the footer unguarded: the record has its own, and vouches for columns and rows.
    if metadata.get(_SEAL) != _seal(metadata[_KEY]):
        raise _broken(path, "the record of an artifact is damaged", expected="its sha256", got="another")
    return record


def absence(path: Path, *, kind: str) -> str | None:
    """Why an artifact is empty on purpose, or None if it is not."""
    reason = read_record(path, kind=kind)["notes"].get("absent")
    return None if reason is None else str(reason)


def no_pool(source: Path) -> str | None:
    """Why a corpus can have no neighbourhoods at all, or None: examples are a handful of sentences.

    Any other corpus that is too small for k or p is an error, never a silent blank.
    """
    notes = read_record(source, kind="vectors")["notes"]
    return f"{notes['sentences']} example sentences have no neighbourhoods" if notes["task"] == "example" else None


def read_table(path: Path, *, kind: str, columns: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """The rows of an artifact, checksums verified.

    columns  name -> Arrow type that must be there (others may be too)
    Raises ArtifactError as read_record does, and on a failed checksum or a wrong column.
    """
    record = read_record(path, kind=kind)
    if "absent" in record["notes"]:
        raise ArtifactError("an artifact is empty on purpose", where=str(path), got=str(record["notes"]["absent"]))
    try:
        with pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True) as file:
            table = _read_plain(file, path.stat().st_size)
        found = {"columns": _columns_of(table), "rows": table.num_rows}
    except MemoryError as error:
        raise _no_memory(path, error) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _broken(
            path, "an artifact is damaged", expected="pages that match their checksums", got=first_line(error)
        ) from None
    for name, got in found.items():
        if got != record[name]:
            raise _broken(
                path, f"an artifact has other {name} than were written", expected=str(record[name]), got=str(got)
            )
    for name, arrow_type in (columns or {}).items():
        held = table.schema.field(name).type if name in table.column_names else "no such column"
        if held != arrow_type:
            raise _broken(path, f"an artifact has a wrong column '{name}'", expected=str(arrow_type), got=str(held))
    return table.replace_schema_metadata(None)


def read_vectors(path: Path) -> Vectors:
    """The (n, d) float32 vectors of a space for one corpus. Raises as read_table does."""
    vectors: Vectors = read_lists(read_table(path, kind="vectors"), "vector", path=path).astype(np.float32, copy=False)
    if not np.isfinite(vectors).all():
        raise _broken(path, "an artifact holds a vector that is not finite", expected="numbers", got="NaN or infinity")
    return vectors


def _read_plain(file: pq.ParquetFile, size: int) -> pa.Table:
    """All rows of a file whose pages are plain, so that they take no more memory than bytes of the file.

    Without threads: they take address space, and a read that lacks it would hang. Raises pa.ArrowInvalid for rows
    that take more, which `write_table` never writes: a forged file of some kilobytes could fill the memory.
    """
    widths = [kind.list_size for kind in file.schema_arrow.types if pa.types.is_fixed_size_list(kind)]
    tables, total = [file.schema_arrow.empty_table()], 0
    _refuse_growth(file.metadata.num_rows * max([1, *widths]) // 8, size)
    for batch in file.iter_batches(batch_size=BATCH, use_threads=False):
        total += batch.nbytes
        _refuse_growth(total, size)
        tables.append(pa.Table.from_batches([batch]))
    return pa.concat_tables(tables)


def _refuse_growth(total: int, size: int) -> None:
    if total > 2 * size:
        raise pa.ArrowInvalid(f"rows of {total:,} bytes or more in a file of {size:,}")


def read_lists(table: pa.Table, column: str, *, path: Path) -> npt.NDArray[Any]:
    """A fixed_size_list column as an (n, k) array."""
    chunked = table.column(column) if column in table.column_names else None
    if chunked is None or not pa.types.is_fixed_size_list(chunked.type):
        raise _broken(
            path, f"an artifact has a wrong column '{column}'", expected="fixed_size_list", got=str(table.schema)
        )
    if chunked.null_count:
        raise _broken(path, f"an artifact has nulls in '{column}'", expected="a list in every row", got="null")
    array = chunked.combine_chunks()
    flat = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    return np.asarray(flat.flatten()).reshape(len(flat), chunked.type.list_size)


def _seal(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()


def _columns_of(table: pa.Table) -> dict[str, str]:
    return {field.name: str(field.type) for field in table.schema}


def _no_memory(path: Path, error: MemoryError) -> ArtifactError:
    return ArtifactError(
        "there is too little memory to read an artifact",
        where=str(path),
        got=first_line(error),
        state="the file was left as it is; nothing is wrong with it",
        remedy="end other processes, or raise the limit of this one (`ulimit -v`), and run the command again",
    )


def _broken(path: Path, what: str, *, expected: str, got: str) -> ArtifactError:
    return ArtifactError(
        what,
        where=str(path),
        expected=expected,
        got=got,
        state="the file was left as it is",
        remedy="delete it and run `dvc repro`: DVC makes it again or takes it from its cache",
    )
