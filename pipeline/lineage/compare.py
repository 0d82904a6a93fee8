"""What differs between a recorded file and the one that a stage wrote again: the first place, or by how much."""

from __future__ import annotations

import math
import re

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.lineage.hashes import Digest
from pipeline.lineage.scope import brief

NUMBER = re.compile(r"[-+−]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
HASH = re.compile(r"\b[0-9a-f]{32,64}(?:\.dir)?\b")
AROUND = 30  # characters that a message shows on either side of a difference


def first_file(recorded: Digest, remade: Digest) -> str:
    """The first file, by name, that two folders do not both have with the same bytes; "" for two single files."""
    return next(iter(recorded.differing(remade)), "")


def first_place(name: str, recorded: bytes | None, remade: bytes | None) -> str:
    """Where two versions of a file first differ, and what is there in each."""
    if recorded is None or remade is None:
        return f"{name} is {'not recorded' if recorded is None else 'recorded'}, and {_was(remade)} written again"
    if name.endswith(".parquet"):
        return f"{name}, {_first_value(recorded, remade)}"
    old, new = (content.decode("utf-8", "replace").splitlines() for content in (recorded, remade))
    for number, (one, other) in enumerate(zip(old, new, strict=False), 1):
        if one != other:
            at = next((i for i, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))
            shown = (line[max(0, at - AROUND) : at + AROUND] for line in (one, other))
            return f"{name}, line {number}: {_versus(*shown)}"
    return f"{name}: {_versus(f'{len(old)} lines', f'{len(new)} lines')}"


def _was(content: bytes | None) -> str:
    return "was not" if content is None else "was"


def _versus(recorded: str, remade: str) -> str:
    return f"'{brief(recorded)}' recorded, '{brief(remade)}' written again"


def _first_value(recorded: bytes, remade: bytes) -> str:
    """The first column and row of two Parquet files that differ."""
    try:
        old, new = (pq.read_table(pa.BufferReader(content)) for content in (recorded, remade))
    except (pa.ArrowException, OSError):
        return "which is no Parquet file that can be read"
    if (old.column_names, old.num_rows) != (new.column_names, new.num_rows):
        shapes = (f"{table.num_rows} rows of {', '.join(table.column_names)}" for table in (old, new))
        return _versus(*shapes)
    for column in old.column_names:
        if not old[column].equals(new[column]):
            pairs = zip(old[column].to_pylist(), new[column].to_pylist(), strict=True)
            row, pair = next((row, pair) for row, pair in enumerate(pairs) if repr(pair[0]) != repr(pair[1]))
            return f"column {column}, row {row}: {_versus(str(pair[0]), str(pair[1]))}"
    return f"its metadata: {_versus(*(str(table.schema.metadata) for table in (old, new)))}"


def largest_gap(recorded: str, remade: str) -> float:
    """The largest distance of two numbers at the same place of two texts; infinite where the texts around differ.

    Hashes are left out: other bytes of an artifact have another hash.
    """
    old, new = (HASH.sub("", text).replace("−", "-") for text in (recorded, remade))
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return math.inf
    pairs = zip(NUMBER.findall(old), NUMBER.findall(new), strict=True)
    return max((abs(float(one) - float(other)) for one, other in pairs), default=0.0)
