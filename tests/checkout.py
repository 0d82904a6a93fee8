"""A small real checkout for tests: the project's own files, one or two small corpora, real DVC."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from pipeline.suite import Makers

ROOT = Path(__file__).resolve().parents[1]
MAKERS = Makers(
    encoders=("minilm",),
    manifolds=("lp",),
    transforms=("pca",),
    graph_transforms=("npe",),
    word_encoders=("wl-average",),
    tokenizers=("regex", "whitespace"),
    word_vectors=("wordllama",),
    clusterings=("s3e",),
)
FILES = (
    "dvc.yaml", "suite.yaml", "sensitivities.yaml", "params.yaml", ".gitignore", ".dvcignore", "requirements.lock",
)  # fmt: skip


def make_checkout(folder: Path, *, corpora: str) -> Path:
    """Copy the project into `folder` with `corpora` as its quick suite; git and DVC set up, nothing run."""
    folder.mkdir(parents=True)
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)
    for name in ("pipeline", "flows"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "reports/benchmarks", folder / "reports/benchmarks")
    (folder / ".dvc").mkdir()
    for name in ("config", ".gitignore"):
        shutil.copy(ROOT / ".dvc" / name, folder / ".dvc" / name)
    suite = folder / "suite.yaml"
    suite.write_text(re.sub(r"corpora: \[.*\]", f"corpora: [{corpora}]", suite.read_text()))
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def environment(**more: str) -> dict[str, str]:
    """The environment of a stage: this interpreter first on PATH, telemetry off, no mirror."""
    kept = {name: value for name, value in os.environ.items() if name not in ("SENTFOLD_MIRROR", "PYTHONPATH")}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    return {**kept, "PATH": path, "DVC_NO_ANALYTICS": "1", "DO_NOT_TRACK": "1", **more}


def repro(checkout: Path, *arguments: str, **more: str) -> set[str]:
    """Run `dvc repro` and return the stages that ran; a failure fails the test with its output."""
    run = subprocess.run(
        [sys.executable, "-m", "dvc", "repro", *arguments],
        cwd=checkout,
        env=environment(**more),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return set(re.findall(r"Running stage '([^']+)'", run.stdout))


def make_checkout_with_suites(folder: Path) -> Path:
    """A small checkout that has the paper suites too."""
    make_checkout(folder, corpora="wordsim, happy")
    shutil.copytree(ROOT / "suites", folder / "suites", symlinks=True)
    return folder
