"""What `import sentfold` offers: every public class, from any folder, and nothing heavy before it is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sentfold

LAZY = """
import sys
import sentfold
assert not {"numpy", "numba", "sklearn", "torch"} & set(sys.modules)
assert set(sentfold.EXPORTS) <= set(dir(sentfold))
from sentfold import LocalityPreservingEmbedding
assert LocalityPreservingEmbedding(5).get_params()["n_neighbors"] == 5
"""


@pytest.mark.slow
def test_the_library_is_imported_lazily_and_in_a_folder_that_has_a_pipeline_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text("raise SystemExit('the wrong pipeline')")
    subprocess.run([sys.executable, "-c", LAZY], cwd=tmp_path, check=True)


@pytest.mark.parametrize("name", sentfold.EXPORTS)
def test_every_export_has_that_name(name: str) -> None:
    assert getattr(sentfold, name).__name__ == name


def test_a_name_that_is_no_export_is_an_attribute_error() -> None:
    assert not hasattr(sentfold, "no_such_name")
