"""The numeric profile: settings under which Linux x86-64 machines with AVX2 compute the same bytes.

Libraries choose their inner loops by the processor, and different loops add numbers in a different order. The profile
limits every library to AVX2 with fused multiply-add and to one thread. Libraries read these settings when they are
loaded, so `use_profile` has to run before numpy is imported. This module imports no large library.
"""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from pathlib import Path

NAME = "linux-x86-64-avx2"
NATIVE = "native"  # each library chooses for this processor

# Every feature that LLVM may use. Numba uses the host's features unless both the name and the features are set.
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
    # Two threads give another sum than one thread. The project's own threads divide rows, never a sum.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}

# Flags of /proc/cpuinfo that the profile needs.
NEEDED = frozenset({"avx2", "fma", "f16c", "bmi1", "bmi2", "abm", "movbe", "sse4_2", "popcnt"})

LIBRARIES = frozenset({"numpy", "numba", "torch"})  # they read the settings when they are loaded

# Settings of the same libraries that would change the results if the shell exported them.
REMOVED = ("MKL_CBWR", "NPY_ENABLE_CPU_FEATURES", "OPENBLAS_VERBOSE", "NUMBA_DISABLE_JIT", "NUMBA_OPT")


@cache  # the first call decides
def use_profile() -> bool:
    """Put the profile into the environment of this process. Returns whether its libraries compute under the profile.

    False if the processor lacks a needed feature, or if one of LIBRARIES was imported before, because that library
    has already chosen its loops. In the second case the settings are set nevertheless, for child processes.
    """
    if not is_supported():
        return False
    for name in REMOVED:
        os.environ.pop(name, None)
    os.environ.update(SETTINGS)
    return not LIBRARIES & sys.modules.keys()


def is_supported() -> bool:
    """Whether this machine can compute under the profile: Linux, x86-64, and the flags in NEEDED."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and processor_flags() >= NEEDED


def processor_flags() -> frozenset[str]:
    """The processor's features as Linux lists them; an empty set if they cannot be read."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), ()))


def profile_name() -> str:
    """The name of the profile if this process computes under it, otherwise "native"."""
    return NAME if use_profile.cache_info().currsize and use_profile() else NATIVE
