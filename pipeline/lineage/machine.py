"""The machine and the packages that a run had. Stays on this machine, so a host name is in it."""

from __future__ import annotations

import os
import platform
import resource
import socket
import sys
from pathlib import Path
from typing import Any

INSTRUCTION_SETS = frozenset({"avx2", "avx512f", "avx512_vnni", "amx_tile", "fma", "asimd", "sve"})


def describe_machine() -> dict[str, Any]:
    """Host, processor, cores, memory, and the BLAS kernels that are loaded now."""
    model, flags = _processor()
    return {
        "host": socket.gethostname(),
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "cpu": model,
        "instruction_sets": sorted(INSTRUCTION_SETS & set(flags)),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "blas": _blas(),
        "python": platform.python_version(),
    }


def describe_packages() -> dict[str, str]:
    """Every installed distribution and its version, by the names of their folders: opening each takes longer."""
    found = {}
    for folder in {Path(entry) for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))}:
        for record in folder.glob("*.dist-info"):
            name, _, version = record.name.removesuffix(".dist-info").rpartition("-")
            found[name.replace("_", "-").lower()] = version
    return dict(sorted(found.items()))


def peak_memory() -> int:
    """The most memory that this process or one of its children held, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _processor() -> tuple[str, list[str]]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor(), []
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in reversed(lines))}
    return facts.get("model name", platform.machine()), facts.get("flags", facts.get("Features", "")).split()


def _blas() -> list[str]:
    # Nothing is loaded for the sake of being described.
    if "numpy" not in sys.modules:
        return []
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    return sorted(
        {f"{pool.get('internal_api')} {pool.get('version')} {pool.get('architecture', '')}".strip() for pool in pools}
    )
