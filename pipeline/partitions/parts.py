"""How a part is written: Parquet of our one kind, the record of its making in its metadata."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.artifacts import Vectors
from pipeline.manifold.landmarks_io import VectorSink

RECORD = b"sentfold-part"


def write_part(path: Path, blocks: Iterator[Vectors], *, width: int, record: dict[str, Any]) -> None:
    """Write blocks of (m, width) float32 as a column `vector`. Memory: one row group, and a block."""
    schema = pa.schema([("vector", pa.list_(pa.float32(), width))])
    with VectorSink(path, schema.with_metadata({RECORD: json.dumps(record, sort_keys=True)})) as sink:
        for block in blocks:
            sink.write(block)
