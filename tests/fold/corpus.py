"""Datasets for the tests: real sentences out of a package, and clouds of vectors."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from gensim.test.utils import datapath

from sentfold.files import fixed_lists, sha256_of
from sentfold.fold.fold import FoldSettings
from sentfold.fold.texts import find_text_encoder
from sentfold.manifold.base.protocol import SolverSettings
from sentfold.manifold.landmark import Settings as LandmarkSettings

SOLVER = SolverSettings(tolerance=1e-6, null_tolerance=1e-10, seed=0)
LANDMARKS = LandmarkSettings(landmarks=150, selection="random", neighbors=8, regularization=1e-3, components=6, seed=0)


@cache
def sentences() -> list[str]:
    """Some 2,500 distinct sentences of news."""
    text = Path(datapath("lee_background.cor")).read_text(encoding="utf-8")
    return sorted({part.strip() for part in re.split(r"(?<=[.!?])\s|\n", text) if len(part.split()) > 3})


def cloud(n: int = 900, d: int = 12, *, seed: int = 0) -> np.ndarray:
    """(n, d) float32."""
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


def write_texts(path: Path, texts: list[str | None], *, group: int = 64) -> Path:
    """A Parquet file of texts, with a second column that no fold reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"id": range(len(texts)), "text": pa.array(texts, pa.string())})
    pq.write_table(table, path, row_group_size=group, write_page_checksum=True)
    return path


def write_vectors(path: Path, x: np.ndarray, *, group: int = 64) -> Path:
    """A Parquet file of vectors."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"vector": fixed_lists(x)})
    pq.write_table(table, path, row_group_size=group, write_page_checksum=True, use_dictionary=False)
    return path


def read_folded(target: Path) -> np.ndarray:
    """The answer of a fold, as any reader of Parquet datasets sees it."""
    column = pq.read_table(target / "folded").column("vector").combine_chunks()
    flat = column if isinstance(column, pa.FixedSizeListArray) else column.chunk(0)
    return flat.flatten().to_numpy().reshape(len(flat), -1)


def of_vectors(*, rows: int = 200, manifold: LandmarkSettings = LANDMARKS) -> FoldSettings:
    """Settings for a source of vectors."""
    return FoldSettings(manifold=manifold, solver=SOLVER, rows=rows)


def of_texts(*, rows: int = 200, encoder: str = "wordllama") -> FoldSettings:
    """Settings for a source of texts."""
    return FoldSettings(encoder=find_text_encoder(encoder), manifold=LANDMARKS, solver=SOLVER, rows=rows)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, the lock aside."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def identities(folder: Path) -> dict[str, tuple[int, int]]:
    """Inode and time of each part: a part that is written again has others."""
    parts = {str(path.relative_to(folder)): path.stat() for path in folder.rglob("*.parquet")}
    return {name: (part.st_ino, part.st_mtime_ns) for name, part in parts.items()}


def check_target(target: Path) -> dict[str, Any]:
    """The manifest of a finished fold, whose every file has the sha256 in it."""
    manifest: dict[str, Any] = json.loads((target / "manifest.json").read_bytes())
    for listed in manifest["files"]:
        assert sha256_of(target / listed["file"]) == listed["sha256"], listed["file"]
    return manifest
