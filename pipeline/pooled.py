"""The file between the stages `pool` and `pooled`: the vectors of one corpus by all poolings of one encoder."""

from __future__ import annotations

from pathlib import Path

KIND = "pooled"  # of the artifact; a column of vectors for each pooling


def pooled_path(suite: str, encoder: str, corpus: str) -> Path:
    """The file of one encoder and one corpus."""
    return Path("data") / suite / "pooled" / encoder / f"{corpus}.parquet"
