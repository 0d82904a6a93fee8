"""What `make` prints: of the installation one line, and none where everything is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Stands for python3.11, whose only task here is `-P -m venv FOLDER`: a folder of programs that do nothing.
PYTHON = """#!/bin/sh
for folder in "$@"; do :; done # the last word
mkdir -p "$folder/bin"
for name in python dvc sentfold; do
    printf '#!/bin/sh\\n' >"$folder/bin/$name"
    chmod +x "$folder/bin/$name"
done
"""


def test_make_says_in_one_line_that_it_installs_and_nothing_the_second_time(tmp_path: Path) -> None:
    for name in ("Makefile", "requirements.lock", "requirements-train.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "hashes", tmp_path / "hashes")
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)

    def printed() -> str:
        command = ["make", "--no-print-directory", "reproduce", f"PYTHON={python}"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60).stdout

    first = printed()
    assert first.startswith("installing") and first.count("\n") == 1
    assert printed() == ""
