"""What a run had: the machine, its packages, and the commit of its code. The record of runs stays on this machine."""

from __future__ import annotations

import os
import platform
import resource
import socket
import sys
from pathlib import Path
from typing import Any

from pipeline.lineage.stages import Stage
from pipeline.lineage.trees import git
from sentfold.numeric_profile import processor_flags, profile_name

INSTRUCTION_SETS = frozenset({"avx2", "avx512f", "avx512_vnni", "amx_tile", "fma", "asimd", "sve"})


DATA_FOLDERS = ("data/", "reports/")  # dependencies under these are no code


def describe_machine() -> dict[str, Any]:
    """Host, processor, cores, memory, the numeric profile, and the BLAS kernels that are loaded now."""
    return {
        "host": socket.gethostname(),
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "cpu": _processor(),
        "instruction_sets": sorted(INSTRUCTION_SETS & processor_flags()),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "profile": profile_name(),
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
    """The largest memory of this process or one of its children, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _blas() -> list[str]:
    if "numpy" not in sys.modules:  # a description loads nothing
        return []
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    return sorted(
        {f"{pool.get('internal_api')} {pool.get('version')} {pool.get('architecture', '')}".strip() for pool in pools}
    )


# --- the commit -----------------------------------------------------------------------------------


def describe_code(root: Path, stage: Stage | None) -> dict[str, Any]:
    """The commit that is checked out, and which of the files that decide the stage's result differ from it."""
    commit = git(root, "rev-parse", "HEAD")
    if commit is None:
        return {"commit": None, "dirty": None}
    deciding = {"dvc.yaml", "pipeline/__main__.py", "params.yaml"}
    if stage is not None:
        deciding |= {*stage.params, *(dep for dep in stage.deps if not dep.startswith(DATA_FOLDERS))}
    words = ("--porcelain", "-z", "--no-renames", "--untracked-files=all")
    status = (git(root, "status", *words, "--", *sorted(deciding)) or b"").decode("utf-8", "replace").split("\0")
    dirty = sorted(entry[3:] for entry in status if entry[3:])
    return {"commit": commit.decode().strip(), "dirty": dirty}
