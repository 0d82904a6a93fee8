"""The machine and the library versions that a report was made with."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

LIBRARIES = (
    "numpy", "scipy", "scikit-learn", "polars", "pyarrow", "torch", "transformers",
    "sentence-transformers", "tokenizers", "safetensors", "gensim", "datasets", "dvc", "matplotlib",
)  # fmt: skip


def describe_environment() -> dict[str, Any]:
    """Processor, instruction sets that change bits, BLAS kernels and library versions."""
    import scipy.linalg  # noqa: F401  (loads the BLAS that threadpool_info then reports)

    return {
        "blas": sorted(
            {
                f"{pool.get('internal_api')} {pool.get('version')} {pool.get('architecture', '')}".strip()
                for pool in threadpool_info()
                if pool.get("user_api") == "blas"
            }
        ),
        "instruction_sets": _instruction_sets(),
        "libraries": {name: _version(name) for name in LIBRARIES},
        "machine": platform.machine(),
        "python": platform.python_version(),
        "system": platform.system(),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _instruction_sets() -> list[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return sorted({"avx2", "avx512f", "avx512_vnni", "amx_tile", "fma"} & set(flags))
