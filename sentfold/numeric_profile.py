"""The numeric profile: settings under which Linux x86-64 machines with AVX2 compute the same bytes.

Libraries choose their inner loops by the processor, and other loops add in another order. The profile
holds every library to AVX2 with fused multiply-add and to one thread. Libraries read these settings when
they are loaded, so `use_profile` has to run before numpy is imported. This module imports nothing heavy.
"""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from pathlib import Path

NAME = "linux-x86-64-avx2"
NATIVE = "native"  # whatever each library chooses on this processor

# Every feature that LLVM may use. Numba takes the host's own features unless both name and features are set.
FEATURES = (
    "64bit", "cmov", "cx8", "cx16", "fxsr", "mmx", "sahf", "sse", "sse2", "sse3", "ssse3", "sse4.1", "sse4.2",
    "popcnt", "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe", "xsave",
)  # fmt: skip

SETTINGS = {
    "OPENBLAS_CORETYPE": "Haswell",  # numpy's and scipy's matrix products
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",  # torch's matrix products
    "ONEDNN_MAX_CPU_ISA": "AVX2",  # torch's layers
    "ATEN_CPU_CAPABILITY": "avx2",  # torch's elementwise loops
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",  # numpy's elementwise loops and sums
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": ",".join(f"+{feature}" for feature in FEATURES),
    # A product or a sum by two threads differs from that by one. The project's own threads share rows, not sums.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}

# Flags of /proc/cpuinfo that the profile needs.
NEEDED = frozenset({"avx2", "fma", "f16c", "bmi1", "bmi2", "abm", "movbe", "sse4_2", "popcnt"})

LIBRARIES = frozenset({"numpy", "numba", "torch"})  # which read the settings when they are loaded

# Settings of the same libraries that would undo the profile where a shell exports them.
REMOVED = ("MKL_CBWR", "NPY_ENABLE_CPU_FEATURES", "OPENBLAS_VERBOSE", "NUMBA_DISABLE_JIT", "NUMBA_OPT")


@cache  # the first call decides
def use_profile() -> bool:
    """Put the profile into this process's environment; whether its libraries will compute under it.

    False where the processor lacks what the profile needs, and where numpy was imported before: numpy has
    chosen its loops then. Processes started from this one inherit the settings in the second case too.
    """
    if not is_supported():
        return False
    for name in REMOVED:
        os.environ.pop(name, None)
    os.environ.update(SETTINGS)
    return not LIBRARIES & sys.modules.keys()


def is_supported() -> bool:
    """Whether this machine can compute under the profile: Linux, x86-64, AVX2 with its companions."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and processor_flags() >= NEEDED


def processor_flags() -> frozenset[str]:
    """The processor's features as Linux lists them; none where they cannot be read."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), ()))


def profile_name() -> str:
    """Under what this process computes: the profile's name, or "native"."""
    return NAME if use_profile.cache_info().currsize and use_profile() else NATIVE
