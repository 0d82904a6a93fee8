"""Files are written completely or not at all, and the same content always gives the same bytes."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from sentfold.errors import ArtifactError, first_line

Vectors = npt.NDArray[np.float32]

ROW_GROUP = 32_768  # rows of each row group of a Parquet file

# With these settings the same rows give the same bytes. The last one keeps the type of lists in a read file.
PARQUET: dict[str, Any] = {
    "compression": "none",
    "use_dictionary": False,
    "write_statistics": False,
    "write_page_checksum": True,
    "use_compliant_nested_type": False,
}


def fixed_lists(array: npt.NDArray[Any]) -> pa.FixedSizeListArray:
    """An (n, k) array as n Arrow lists of fixed length k."""
    return pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), array.shape[1])


# A Parquet file may take FREE bytes of memory plus RATIO times its own size. Texts compress 3 to 10 times.
FREE, RATIO = 64 << 20, 100
WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 4}
BATCH = 4096  # rows that are decoded at a time
TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


def read_parquet(source: Path | bytes) -> pa.Table:
    """All rows of a Parquet file from any source.

    A file of a few kilobytes can decode to many gigabytes: a text that a million rows refer to, or a page of zeros.
    So the footer is checked before any page is decoded, and repeated texts are counted before they are copied.
    Raises pa.ArrowInvalid if the rows would take more than FREE bytes plus RATIO times the file, and for a damaged
    file; OSError; MemoryError.
    """
    from pyarrow import parquet

    if isinstance(source, Path):
        require_regular(source)
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    open_file = partial(parquet.ParquetFile, pa.BufferReader(source) if isinstance(source, bytes) else source)
    return read_bounded(open_file, FREE + RATIO * size)


def read_bounded(open_file: Callable[..., Any], most: int, *, use_threads: bool = True) -> pa.Table:
    """All rows of a Parquet file, if they take at most `most` bytes of memory.

    open_file  opens the file as a pyarrow.parquet.ParquetFile, with the options that it is called with
    Raises as `read_parquet` does.
    """
    with open_file() as file:
        groups = [file.metadata.row_group(group) for group in range(file.num_row_groups)]
        _refuse_oversize(sum(group.total_byte_size for group in groups), most)
        file.scan_contents()  # raises for a damaged footer; reading a column's properties would end the process instead
        _refuse_oversize(_declared_bytes(file), most)
        leaves = [file.metadata.schema.column(leaf) for leaf in range(file.metadata.num_columns)]
        texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        schema = _without_views(file.schema_arrow)
    if len(set(texts)) < len(texts):
        raise pa.ArrowInvalid("two columns of texts have one name")
    tables, total = [schema.empty_table()], 0
    # pyarrow reads the texts of an extension, such as JSON, as a dictionary only if extensions are off.
    with open_file(read_dictionary=texts, arrow_extensions_enabled=False) as file, _saying_what_to_do():
        for kind in file.schema_arrow.types:
            _refuse_uncounted(kind)
        for group in range(file.num_row_groups):  # pyarrow cannot read texts inside structs across two groups
            for batch in file.iter_batches(batch_size=BATCH, row_groups=[group], use_threads=use_threads):
                total += sum(written_out_bytes(column) for column in batch.columns)
                _refuse_oversize(total, most)
                tables.append(pa.Table.from_batches([batch]).cast(schema))
    return pa.concat_tables(tables)


@contextmanager
def _saying_what_to_do() -> Iterator[None]:
    """Turn what pyarrow lacks, such as texts in DELTA_BYTE_ARRAY as a dictionary, into a pa.ArrowInvalid."""
    try:
        yield
    except (pa.ArrowNotImplementedError, OSError) as error:
        if isinstance(error, OSError) and not str(error).startswith("Not yet implemented"):
            raise
        what = "texts in an encoding or type that cannot be counted before they are copied; write the file again, with "
        what += "texts as strings: pq.write_table(pq.read_table(OLD), NEW, store_schema=False)"
        raise pa.ArrowInvalid(f"{what} ({first_line(error)})") from None


def require_regular(path: Path) -> None:
    """Raise OSError for a pipe, a socket or a device: reading one can wait for ever."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))


def written_out_bytes(array: pa.Array) -> int:
    """Bytes of an array if each text of a dictionary were copied into every row that refers to it."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        if not any(is_text(kind.value_type) for is_text in TEXTS):
            return int(array.nbytes)
        lengths = pa.compute.binary_length(array.dictionary).take(array.indices)
        return int(array.indices.nbytes) + int(pa.compute.sum(lengths).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(map(written_out_bytes, array.flatten()))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return int(array.offsets.nbytes) + written_out_bytes(array.flatten())
    if pa.types.is_map(kind):
        return int(array.offsets.nbytes) + written_out_bytes(array.keys) + written_out_bytes(array.items)
    if pa.types.is_fixed_size_list(kind):
        width = kind.list_size  # `flatten` leaves out null lists, which take the memory of whole ones
        return written_out_bytes(array.values.slice(array.offset * width, len(array) * width))
    return int(array.nbytes)


def _without_views(schema: pa.Schema) -> pa.Schema:
    """The schema with plain texts for views, which pyarrow makes of no dictionary. Views in lists stay, and fail."""
    plain = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    for place, column in enumerate(schema):
        schema = schema.set(place, column.with_type(plain.get(column.type, column.type)))
    return schema


def _refuse_uncounted(kind: pa.DataType) -> None:
    """Raise pa.ArrowNotImplementedError for texts that pyarrow reads as no dictionary, but copies uncounted."""
    if isinstance(kind, pa.BaseExtensionType):
        _refuse_uncounted(kind.storage_type)
    elif any(is_text(kind) for is_text in (*TEXTS, pa.types.is_string_view, pa.types.is_binary_view)):
        raise pa.ArrowNotImplementedError(f"texts of the type {kind}")
    elif not pa.types.is_dictionary(kind):
        for place in range(kind.num_fields):
            _refuse_uncounted(kind.field(place).type)


def _declared_bytes(file: Any) -> int:
    """The largest of three sizes from the footer: of the pages, of the values, of the fixed-size lists (with nulls)."""
    metadata = file.metadata
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    chunks = [
        (group.column(leaf), metadata.schema.column(leaf)) for group in groups for leaf in range(group.num_columns)
    ]
    most_values = sum(
        max([0, *(group.column(leaf).num_values for leaf in range(group.num_columns))]) for group in groups
    )
    sizes: tuple[int, ...] = (
        sum(chunk.total_uncompressed_size for chunk, _ in chunks),
        sum(chunk.num_values * (WIDTHS.get(leaf.physical_type) or leaf.length) for chunk, leaf in chunks),
        sum(_fixed_bytes(kind, metadata.num_rows, most_values) for kind in file.schema_arrow.types),
    )
    return max(sizes)


def _fixed_bytes(kind: pa.DataType, rows: int, most_values: int) -> int:
    """Bytes of the fixed-size lists in a column. A list that is null takes the memory of a whole one.

    most_values  of a column, summed over the row groups. The footer does not say how many rows the lists have in all
    """
    if isinstance(kind, pa.BaseExtensionType):
        return _fixed_bytes(kind.storage_type, rows, most_values)
    if pa.types.is_fixed_size_list(kind):
        values, inner = rows * int(kind.list_size), kind.value_type
        width = max(1, int(inner.bit_width) // 8) if pa.types.is_primitive(inner) else 1
        return max(values * width, _fixed_bytes(inner, values, most_values))
    held = rows if pa.types.is_struct(kind) else most_values
    return sum(_fixed_bytes(kind.field(place).type, held, most_values) for place in range(kind.num_fields))


def _refuse_oversize(size: int, most: int) -> None:
    if size > most:
        raise pa.ArrowInvalid(f"the rows take {size:,} bytes or more; a file of this size may take {most:,}")


def sha256_of(path: Path) -> str:
    """Hexadecimal sha256 of a file's bytes. Raises OSError, also for a pipe."""
    require_regular(path)
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def replace_whole(path: Path) -> Iterator[Path]:
    """A temporary path next to `path`. If the block succeeds, the file that it wrote there is renamed to `path`.

    A reader sees the old file or the complete new file, even after a kill or a power cut (fsync, then rename). The
    temporary name contains the host and the process, so two machines never write to the same temporary file. The name
    also contains a random number, so nobody can put a link under the name beforehand.
    Raises ArtifactError if the file cannot be written; the old file is then unchanged.
    """
    prefix = f".{path.name}.{os.uname().nodename}"
    temporary = path.with_name(f"{prefix}.{secrets.token_hex(8)}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(path.parent, prefix)
        yield temporary
        _fsync(temporary)
        temporary.replace(path)
        _fsync(path.parent)
    except OSError as error:
        raise ArtifactError(
            "cannot write a file",
            where=str(path),
            got=f"{errno.errorcode.get(error.errno or 0, 'OSError')}: {error.strerror or first_line(error)}",
            state="no partial file was left",
            remedy="free space, or make the folder writable, and run the command again",
        ) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_bytes_atomically(path: Path, payload: bytes) -> None:
    """Write a complete file with `replace_whole`. Raises ArtifactError."""
    with replace_whole(path) as temporary:
        temporary.write_bytes(payload)


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove temporary files of the same file that killed processes of this machine left behind."""
    for stale in folder.glob(f"{escape(prefix)}.*.tmp"):
        owner = stale.name.removesuffix(".tmp").rpartition(".")[2]
        if not (owner.isdigit() and Path(f"/proc/{owner}").exists()):
            stale.unlink(missing_ok=True)


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def json_bytes(content: Any) -> bytes:
    """JSON with sorted keys: the same content gives the same bytes. Raises ValueError for NaN, which JSON lacks."""
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def write_json(path: Path, content: Any) -> None:
    """Write `json_bytes` of the content, atomically."""
    write_bytes_atomically(path, json_bytes(content))


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8, with one newline at its end, atomically."""
    write_bytes_atomically(path, text.rstrip("\n").encode() + b"\n")
