"""By which code and which libraries a part was made: parts of another make are made again."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Literal

Family = Literal["embed", "fold"]

ROOT = Path(__file__).parents[1]
# What decides the bytes of a part. A change of the manifolds' code embeds no text again: that is the dear half.
CODE: dict[Family, tuple[str, ...]] = {
    "embed": (
        "encoders/average.py",
        "encoders/embed.py",
        "partitions/embedding.py",
        "partitions/reading.py",
        "partitions/text_encoders.py",
    ),
    "fold": ("manifold/*.py", "partitions/folding.py", "partitions/reading.py"),
}
LIBRARIES: dict[Family, tuple[str, ...]] = {
    "embed": ("numba", "numpy", "pyarrow", "sentence-transformers", "tokenizers", "torch", "transformers"),
    "fold": ("numba", "numpy", "pyarrow", "scipy"),
}


@cache
def made_by(family: Family) -> dict[str, str]:
    """sha256 of the code, and the versions of the libraries."""
    digest = hashlib.sha256()
    for pattern in CODE[family]:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return {"code": digest.hexdigest(), **{name: version(name) for name in LIBRARIES[family]}}
