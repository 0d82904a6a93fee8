"""Names of artifacts, and the only functions that write and read them.

An artifact is a Parquet file with a declared kind, deterministic bytes (the same content gives the same bytes, with
any number of threads) and page checksums. It is written atomically: a reader sees the complete file or no file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from sentfold.errors import ArtifactError, first_line
from sentfold.files import PARQUET, ROW_GROUP, Vectors, read_bounded, require_regular, sha256_of, write_bytes_atomically
from sentfold.files import fixed_lists as fixed_lists
from sentfold.numeric_profile import profile_name

SCHEMA_VERSION = 1

# The state of the files after an error in the middle of a stage.
DISCARDED = "files that the stage wrote for earlier corpora are not recorded; the next run makes them again"
# pyarrow reports a lack of memory as MemoryError, or as SystemError if there is none for the error itself.
NO_MEMORY = (MemoryError, SystemError)
_RECORD = {"columns": dict, "inputs": dict, "kind": str, "name": str, "notes": dict, "parameters": dict, "rows": int}
_KEY = b"sentfold"
_SEAL = b"sentfold-sha256"


# --- names -------------------------------------------------------------------------------------


def corpus_path(suite: str, corpus: str, part: str) -> Path:
    """The file of one part of a corpus: "sentences" or "items"."""
    return Path("data") / suite / "corpora" / corpus / f"{part}.parquet"


def space_path(suite: str, space: str, corpus: str) -> Path:
    """The file of the vectors of one corpus in one space."""
    return Path("data") / suite / "spaces" / space / f"{corpus}.parquet"


def graph_path(suite: str, space: str, corpus: str) -> Path:
    """The file of the neighbour graph of one corpus in one space."""
    return Path("data") / suite / "graphs" / space / f"{corpus}.parquet"


def weights_path(suite: str, space: str, corpus: str) -> Path:
    """The file of the reconstruction weights of one corpus, for the space that is made from them."""
    return Path("data") / suite / "weights" / space / f"{corpus}.parquet"


def resamples_path(suite: str, space: str, corpus: str) -> Path:
    """The file of the bootstrap replicates of one space on one corpus."""
    return Path("data") / suite / "resamples" / space / f"{corpus}.parquet"


def scores_path(suite: str, space: str) -> Path:
    """The file of the scores of one space."""
    return Path("reports") / suite / "scores" / f"{space}.json"


def sensitivity_path(suite: str, encoder: str) -> Path:
    """The file of a word encoder's scores when one hyper-parameter at a time is varied."""
    return Path("reports") / suite / "sweeps" / f"{encoder}-sensitivity" / "surface.json"


def artifact_name(path: Path) -> str:
    """The name that an artifact records of itself, so that a file in the place of another is noticed."""
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

    kind        what the rows are ("sentences", "vectors", ...); a reader has to ask for the same kind
    parameters  the parameters that it was made with, as JSON values
    inputs      the artifacts that it was made from; their sha256 is stored
    notes       counts and certificates of the computation, as JSON values; no time and no host, so that bytes repeat
    Raises ArtifactError if the file cannot be written. Cost O(bytes) time; one copy in memory.
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
    # Without this the chunks in memory would change the bytes on disk.
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
    """Write one float32 vector per sentence. Raises ArtifactError if a value is not finite."""
    if not np.isfinite(vectors).all():
        row = int(np.argwhere(~np.isfinite(vectors))[0, 0])
        raise ArtifactError(
            "a vector is not finite",
            where=str(path),
            expected="finite float32",
            got=f"row {row} of {len(vectors)}",
            remedy="report this as an error of sentfold: no stage may make such a vector",
        )
    table = pa.table({"vector": fixed_lists(np.ascontiguousarray(vectors, dtype=np.float32))})
    write_table(path, table, kind="vectors", parameters=parameters, inputs=inputs, notes=notes)


def write_absence(path: Path, reason: str, *, kind: str, inputs: Sequence[Path] = ()) -> None:
    """Write an artifact without rows that holds the reason why there are none."""
    write_table(path, pa.table({}), kind=kind, parameters={}, inputs=inputs, notes={"absent": reason})


# --- reading -----------------------------------------------------------------------------------


def read_record(path: Path, *, kind: str) -> dict[str, Any]:
    """The record inside an artifact: kind, name, parameters, inputs, notes.

    Raises ArtifactError if the file is missing, truncated, moved, of another kind, or no artifact of sentfold.
    """
    record = _read_any(path, expected=f"kind '{kind}'")
    for key, right in (("schema_version", SCHEMA_VERSION), ("kind", kind), ("name", artifact_name(path))):
        if record.get(key) != right:
            raise _broken(
                path, f"an artifact has another {key.replace('_', ' ')}", expected=str(right), got=str(record.get(key))
            )
    return record


def kind_of(path: Path) -> str:
    """The kind of an artifact. Raises ArtifactError if the file is missing, truncated or no artifact of sentfold."""
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
            remedy="run `dvc repro`, which makes the artifact or copies it from DVC's cache",
        ) from None
    except NO_MEMORY as error:
        raise _no_memory(path, error) from None
    except (pa.ArrowException, OSError, ValueError) as error:  # ValueError: a column name that is not UTF-8
        raise _broken(
            path, "an artifact cannot be read", expected="a whole Parquet file", got=first_line(error)
        ) from None
    try:
        record: dict[str, Any] = json.loads(metadata[_KEY])
        whole = all(isinstance(record[key], part) for key, part in _RECORD.items())
    except (KeyError, ValueError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise _broken(
            path,
            "a file is no artifact of sentfold",
            expected=f"a sentfold artifact of {expected}",
            got="a file without the record that sentfold writes",
        )
    # Page checksums do not cover the footer. So the record has its own checksum, and it states the columns and rows.
    if metadata.get(_SEAL) != _seal(metadata[_KEY]):
        raise _broken(
            path,
            "the record of an artifact is damaged",
            expected="a record with the stored sha256",
            got="another sha256",
        )
    return record


def absence(path: Path, *, kind: str) -> str | None:
    """The reason why an artifact is empty on purpose, or None if it has rows."""
    reason = read_record(path, kind=kind)["notes"].get("absent")
    return None if reason is None else str(reason)


def no_pool(source: Path) -> str | None:
    """Why a corpus can have no neighbourhoods, or None. A corpus of examples has too few sentences for them.

    Any other corpus that is too small for k or p is an error, never a silent blank.
    """
    notes = read_record(source, kind="vectors")["notes"]
    return f"{notes['sentences']} example sentences have no neighbourhoods" if notes["task"] == "example" else None


def read_table(path: Path, *, kind: str, columns: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """The rows of an artifact. Verifies the checksums.

    columns  name -> Arrow type of the columns that must be there; there may be more
    Raises ArtifactError as read_record does, and for a wrong checksum or a wrong column.
    """
    record = read_record(path, kind=kind)
    if "absent" in record["notes"]:
        raise ArtifactError("an artifact is empty on purpose", where=str(path), got=str(record["notes"]["absent"]))
    try:
        # Without threads: threads take address space, and pyarrow hangs if it lacks that. No page is compressed.
        open_file = partial(pq.ParquetFile, path, pre_buffer=False, page_checksum_verification=True)
        table = read_bounded(open_file, 2 * path.stat().st_size, use_threads=False)
        found = {"columns": _columns_of(table), "rows": table.num_rows}
    except NO_MEMORY as error:
        raise _no_memory(path, error) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _broken(
            path, "an artifact is damaged", expected="pages that match their checksums", got=first_line(error)
        ) from None
    for name, got in found.items():
        if got != record[name]:
            raise _broken(
                path, f"the {name} of an artifact differ from its record", expected=str(record[name]), got=str(got)
            )
    for name, arrow_type in (columns or {}).items():
        present = table.schema.field(name).type if name in table.column_names else "no such column"
        if present != arrow_type:
            raise _broken(path, f"an artifact has a wrong column '{name}'", expected=str(arrow_type), got=str(present))
    return table.replace_schema_metadata(None)


def read_vectors(path: Path) -> Vectors:
    """The (n, d) float32 vectors of a space for one corpus. Raises as read_table does."""
    try:
        rows = read_lists(read_table(path, kind="vectors"), "vector", path=path)
        vectors: Vectors = rows.astype(np.float32, copy=False)
        finite = bool(np.isfinite(vectors).all())
    except NO_MEMORY as error:
        raise _no_memory(path, error) from None
    if not finite:
        raise _broken(
            path, "an artifact has a vector that is not finite", expected="finite numbers", got="NaN or infinity"
        )
    return vectors


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


def read_rows(table: pa.Table, column: str, *, path: Path, of: int | None = None) -> npt.NDArray[np.integer[Any]]:
    """A fixed_size_list column of numbers of rows as an (n, k) array.

    of  n, the number of rows that the numbers refer to; None: as many as the table has
    Raises ArtifactError for other numbers than 0 to n - 1, and for a table of other than n rows.
    """
    rows = read_lists(table, column, path=path)
    n = len(rows) if of is None else of
    whole = rows.dtype.kind == "i" and rows.size and len(rows) == n
    if not (whole and rows.min() >= 0 and rows.max() < n):
        raise _broken(
            path,
            f"an artifact has numbers in '{column}' that are no rows",
            expected=f"{n} lists of whole numbers from 0 to {n - 1}",
            got=f"{len(rows)} lists of {rows.dtype}" + (f", {rows.min()} to {rows.max()}" if rows.size else ""),
        )
    return rows


def read_values(table: pa.Table, column: str, *, path: Path, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """A fixed_size_list column of finite float64 as an array of a given shape. Raises ArtifactError for others."""
    values = read_lists(table, column, path=path)
    if values.shape != shape or values.dtype != np.float64 or not np.isfinite(values).all():
        raise _broken(
            path,
            f"an artifact has wrong numbers in '{column}'",
            expected=f"finite float64, {shape[0]} lists of {shape[1]}",
            got=f"{values.dtype}, {len(values)} lists of {values.shape[1]}",
        )
    return values


def read_json(path: Path, what: str, **parts: type) -> dict[str, Any]:
    """The mapping in a JSON file that a stage wrote.

    what   names the file in an error, such as "the choice of a sweep"
    parts  key -> the type of the value, for keys that must be there
    Raises ArtifactError if the file is missing, is no regular file, is malformed or lacks a part.
    """
    try:
        require_regular(path)
        content = json.loads(path.read_text(encoding="utf-8"))
        wrong = [key for key, part in parts.items() if not isinstance(content.get(key), part)]
        if not wrong:
            return dict(content)
        got = f"no {', '.join(wrong)}, or of another type"
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        got = first_line(error)
    raise ArtifactError(
        f"{what} cannot be read",
        where=str(path),
        expected=", ".join(parts) or "a mapping",
        got=got,
        state="the file is unchanged",
        remedy="run `dvc repro`, which makes it",
    )


def _seal(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()


def _columns_of(table: pa.Table) -> dict[str, str]:
    return {field.name: str(field.type) for field in table.schema}


def _no_memory(path: Path, error: MemoryError | SystemError) -> ArtifactError:
    return ArtifactError(
        "there is too little memory to read an artifact",
        where=str(path),
        got=first_line(error),
        state="the file is unchanged and may be sound",
        remedy="end other processes, or raise this process's limit (`ulimit -v`), and run the command again",
    )


def _broken(path: Path, what: str, *, expected: str, got: str) -> ArtifactError:
    return ArtifactError(
        what,
        where=str(path),
        expected=expected,
        got=got,
        state="the file is unchanged",
        remedy="delete the file and run `dvc repro`: DVC makes it again or copies it from its cache",
    )
