"""sentfold: the referee of sentence geometry. Stages import from here what they need and no more."""

import os
import sys

# `python -m pipeline` looks for modules in the checkout first, where a folder of data can have the name of a module. So
# Python leaves the checkout out until it finds the project's own packages alone there. os.path is used because such a
# folder could be called pathlib.
if (checkout := os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) in sys.path:  # noqa: PTH100, PTH120
    # Later Python searches the checkout after the libraries, or where PYTHONPATH had put it.
    place = len(sys.path) if os.getcwd() == checkout else sys.path.index(checkout)  # noqa: PTH109
    sys.path[:] = [folder for folder in sys.path if folder != checkout]
else:
    place = len(sys.path)

import hashlib
import importlib
from collections.abc import Sequence
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import ClassVar

ROOT = Path(__file__).resolve().parents[1]
STARTED_IN = Path.cwd()
LAYERS = ("sentfold", "pipeline", "flows")
OWN = (*LAYERS, "benchmarks", "tests")  # the packages in the root of the checkout
COMPILER = "sentfold.kernels.compiled"
PRODUCT = "sentfold.manifold.solver.product"  # whose kernels are made when they are first asked for


class SourceLoader(SourceFileLoader):
    """Compiles a module of the checkout from its source in each process.

    Python takes the compiled copy in `__pycache__` if size and time of the source are those that the copy notes. After
    an edit that keeps both, a stage would run the old code, and the new code would be recorded as what ran.

    loaded  the file of each module -> md5 of the source that runs, which may not be on the disk any more
    """

    loaded: ClassVar[dict[str, str]] = {}

    def get_data(self, path: str) -> bytes:
        """Read a source, and note what was read."""
        data = super().get_data(path)
        if COMPILER.encode() in data and COMPILER not in sys.modules:
            # The compiler names its kernels by their source on the disk. Its import takes a second, in which another
            # branch could be checked out; so it comes before the source that has kernels is read.
            importlib.import_module(COMPILER)
            data = super().get_data(path)
        digest = hashlib.md5(data, usedforsecurity=False)  # as DVC hashes files
        self.loaded[os.path.realpath(path)] = digest.hexdigest()
        return data

    def exec_module(self, module: ModuleType) -> None:
        """Run a module. Make the kernels of PRODUCT at once, without compiling them.

        Numba keeps a kernel by the source that is on the disk when the kernel is made. PRODUCT makes its kernels for
        the first product, minutes later, when another branch may be checked out. An edit of PRODUCT itself would make
        all suites run again.
        """
        super().exec_module(module)
        if module.__name__ == PRODUCT:
            for width in (module.NARROW, module.WIDTH, module.WIDE):
                module._kernels(width)

    def path_stats(self, path: str) -> dict[str, float]:
        """Raise OSError, after which importlib neither reads nor writes a compiled copy."""
        raise OSError(f"{path} is compiled anew")


class RootFinder(FileFinder):
    """Finds the project's own packages in the root of a checkout, and no others.

    Libraries try to import what not every machine has, such as `snappy`: a folder of data could have that name.
    """

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        """None for a name that is not the project's."""
        return super().find_spec(fullname, target) if fullname.partition(".")[0] in OWN else None


def find_source(folder: str) -> FileFinder:
    """The finder of a folder of the checkout's code. Raises ImportError for other folders, as a path hook must."""
    path = Path(folder).resolve()
    if path == ROOT:
        return RootFinder(folder, (SourceLoader, SOURCE_SUFFIXES))
    if path == STARTED_IN:
        return RootFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))
    if not any(path.is_relative_to(ROOT / layer) for layer in LAYERS):
        raise ImportError(folder)
    return FileFinder(folder, (SourceLoader, SOURCE_SUFFIXES))


class LayerFinder:
    """Finds the layers in the checkout alone, before Python looks anywhere else.

    `pip install .` puts a copy of sentfold among the libraries, and `pip install -e .` and PYTHONPATH can name another
    checkout. A stage would run code from there, and the code of this checkout would be recorded as what ran.
    """

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None for a name that is no layer's. Raises ModuleNotFoundError for a module that the checkout lacks."""
        if fullname.partition(".")[0] not in LAYERS:
            return None
        found = PathFinder.find_spec(fullname, path if "." in fullname else [str(ROOT)], target)
        if found is None:
            raise ModuleNotFoundError(f"no module {fullname} in {ROOT}", name=fullname)
        return found


sys.meta_path.insert(0, LayerFinder)
sys.path_hooks.insert(0, find_source)
sys.path_importer_cache.clear()  # of the finders that were made before
sys.path.insert(place, checkout)

from sentfold.numeric_profile import use_profile  # noqa: E402

# Before any stage imports numpy: libraries choose their inner loops when they are loaded.
use_profile()
