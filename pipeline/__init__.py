"""sentfold: the referee of sentence geometry. Stages import from here what they need and no more."""

import os
import sys

# `python -m pipeline` is looking for this package. The checkout goes behind the libraries, so that no file in it stands
# in for one; pathlib itself could be such a file.
if sys.argv[:1] == ["-m"] and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109
    sys.path.append(sys.path.pop(0))

from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("sentfold", "pipeline", "flows")


class SourceLoader(SourceFileLoader):
    """Compiles a module of the checkout from its source in each process.

    Python takes the compiled copy in `__pycache__` if size and time of the source are those that the copy notes. After
    an edit that keeps both, a stage would run the old code, and the new code would be recorded as what ran.
    """

    def path_stats(self, path: str) -> dict[str, float]:
        """Raise OSError, after which importlib neither reads nor writes a compiled copy."""
        raise OSError(f"{path} is compiled anew")


def find_source(folder: str) -> FileFinder:
    """The finder of a folder of the checkout's code. Raises ImportError for other folders, as a path hook must."""
    path = Path(folder).resolve()
    if path != ROOT and not any(path.is_relative_to(ROOT / layer) for layer in LAYERS):
        raise ImportError(folder)
    return FileFinder(folder, (SourceLoader, SOURCE_SUFFIXES))


sys.path_hooks.insert(0, find_source)
sys.path_importer_cache.clear()  # of the finders that were made before

from sentfold.numeric_profile import use_profile  # noqa: E402

# Before any stage imports numpy: libraries choose their inner loops when they are loaded.
use_profile()
