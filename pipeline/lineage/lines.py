"""Files of one JSON object a line that several processes append to, and that survive a killed writer."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def append_line(path: Path, record: Mapping[str, Any]) -> None:
    """Append a record in one write, so that lines of parallel writers never mix. Raises OSError.

    Where a killed writer left half a line, the record starts a new one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(record, ensure_ascii=False, sort_keys=False).encode() + b"\n"
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":
            line = b"\n" + line
        written = os.write(handle, line)
    finally:
        os.close(handle)
    if written != len(line):
        raise OSError(errno.ENOSPC, f"only {written} of {len(line)} bytes could be written")


def read_lines(path: Path) -> tuple[list[dict[str, Any]], list[int]]:
    """Every whole record, and the numbers of the lines that are none: torn by a kill, or edited."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return [], []
    records, torn = [], []
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if isinstance(record, dict):
            records.append(record)
        else:
            torn.append(number)
    return records, torn
