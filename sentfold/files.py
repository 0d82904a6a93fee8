"""How files are written: whole or not at all, and the same content always as the same bytes."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sentfold.errors import ArtifactError, first_line

Vectors = npt.NDArray[np.float32]

ROW_GROUP = 32_768  # rows of each row group of a Parquet file

# The same rows give the same bytes. The last entry keeps the type of a list when it is read again.
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


def sha256_of(path: Path) -> str:
    """Hexadecimal sha256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def replace_whole(path: Path) -> Iterator[Path]:
    """A temporary path next to `path`. What the block writes there gets the name `path` if the block succeeds.

    A reader sees the old file or the whole new one, also after a kill or a power cut (fsync, then rename). The
    temporary name holds the host and the process, so two machines that write the same file do not meet.
    Raises ArtifactError when the disk refuses; the old file is then unchanged.
    """
    prefix = f".{path.name}.{os.uname().nodename}"
    temporary = path.with_name(f"{prefix}.{os.getpid()}.tmp")
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
    """Write a whole file as `replace_whole` does, and raise as it does."""
    with replace_whole(path) as temporary:
        temporary.write_bytes(payload)


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove the temporary files that killed processes of this machine left of the same file."""
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
    """JSON with sorted keys: the same content gives the same bytes. NaN is refused, as JSON has none."""
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def write_json(path: Path, content: Any) -> None:
    """Write `json_bytes` of the content, atomically."""
    write_bytes_atomically(path, json_bytes(content))


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8 that ends with one newline, atomically."""
    write_bytes_atomically(path, text.rstrip("\n").encode() + b"\n")
