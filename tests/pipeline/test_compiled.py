"""Compiled copies: an edit that keeps a source's size and time is what runs next."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

KERNEL = """
from sentfold.kernels.compiled import exact


@exact
def price(hours):
    return 30.0 * hours
"""


def replace_in_silence(path: Path, old: str, new: str) -> None:
    """An edit that keeps the size and the time of change."""
    assert len(old) == len(new)
    text, facts = path.read_text(), path.stat()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def say(folder: Path, code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True, env={**os.environ}
    )
    return done.stdout.strip()


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """The two lower layers, without compiled copies."""
    for layer in ("sentfold", "pipeline"):
        shutil.copytree(ROOT / layer, tmp_path / layer, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.parametrize("module", ["pipeline.parent", "sentfold.numeric_profile"])
def test_an_edit_that_keeps_size_and_time_of_a_module_is_what_runs(code: Path, module: str) -> None:
    path = code / (module.replace(".", "/") + ".py")
    path.write_text(path.read_text() + "\nPRICE = 30\n")
    ask = f"import pipeline, importlib; print(importlib.import_module({module!r}).PRICE)"
    subprocess.run([sys.executable, "-m", "compileall", "-q", "."], cwd=code, check=True)
    assert say(code, ask) == "30"
    replace_in_silence(path, "PRICE = 30", "PRICE = 40")
    assert say(code, ask) == "40"


@pytest.mark.slow
def test_an_edit_that_keeps_size_and_time_of_a_kernel_is_what_runs(code: Path) -> None:
    path = code / "pipeline" / "prices.py"
    path.write_text(KERNEL)
    ask = "from pipeline.prices import price; print(price(2.0), len(price.stats.cache_hits))"
    assert say(code, ask) == "60.0 0"
    assert say(code, ask) == "60.0 1"
    replace_in_silence(path, "30.0", "40.0")
    assert say(code, ask) == "80.0 0"


@pytest.mark.slow
def test_other_flags_compile_a_kernel_anew(code: Path) -> None:
    path = code / "pipeline" / "prices.py"
    path.write_text(KERNEL)
    ask = "from pipeline.prices import price; print(price(2.0), len(price.stats.cache_hits))"
    assert say(code, ask) == "60.0 0"
    replace_in_silence(code / "sentfold/kernels/compiled.py", 'error_model="numpy"', "error_model='numpy'")
    assert say(code, ask) == "60.0 0"


@pytest.mark.slow
def test_a_kernel_that_is_edited_while_numba_is_loaded_is_kept_under_its_own_name(code: Path) -> None:
    """The source was read, then numba was imported for a second, then the hash of the source on the disk was taken."""
    path, edited = code / "pipeline" / "prices.py", code / "prices.py"
    edited.write_text(KERNEL.replace("30.0", "40.0"))
    path.write_text(KERNEL)
    swap = f"""
import sys, shutil, pipeline
class Swap:  # as another branch that is checked out while numba is loaded
    def find_spec(self, name, *_):
        if name == "numba":
            sys.meta_path.remove(self)
            shutil.copy({str(edited)!r}, {str(path)!r})
sys.meta_path.insert(0, Swap())
from pipeline.prices import price; print(price(2.0))"""
    assert say(code, swap) == "80.0"
    assert say(code, "from pipeline.prices import price; print(price(2.0))") == "80.0"


@pytest.mark.slow
def test_kernels_of_the_eigensolver_are_kept_by_the_source_that_runs(code: Path) -> None:
    """Another branch is checked out before the first product, whose other kernels have the same names and bytecode."""
    path, edited = code / "sentfold/manifold/solver/product.py", code / "product.py"
    read = "builder.fneg(builder.load(builder.gep(weight_data, [place])))"
    text = path.read_text()
    assert text.count(read) == 1
    edited.write_text(text.replace(read, read.replace("fneg(", "fadd(ir.Constant(number, 0.0), ")))
    product = """
x, out = np.ones(16), np.zeros(16)
columns = np.array([1, 0, *[0] * module.FARTHEST], dtype=np.int32)
module._kernels(module.NARROW).difference(np.arange(3), columns, np.full(2, 0.5), x, out, 0, 2)
print(set(out.tolist()))"""
    ask = "import shutil, numpy as np, pipeline; from sentfold.manifold.solver import product as module\n"
    assert say(code, f"{ask}shutil.copy({str(edited)!r}, {str(path)!r}){product}") == "{0.5}"
    assert say(code, ask + product) == "{1.5}"
    path.write_text(text)
    assert say(code, ask + product) == "{0.5}"
