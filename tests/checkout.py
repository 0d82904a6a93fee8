"""A small real checkout for tests: the project's own files, one or two small corpora, real DVC."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any

from pipeline.base.params import read_yaml
from pipeline.base.suite import Suite, freeze
from pipeline.plan import SuiteFile, resolve, write_plan

ROOT = Path(__file__).resolve().parents[1]
SPACES = ("minilm", "minilm-lp", "minilm-pca", "minilm-npe", "wl-average")
FILES = (
    "dvc.yaml", "suite.yaml", "plan.yaml", "params.yaml", ".gitignore", ".dvcignore", "requirements.lock",
    "requirements-train.lock",
)  # fmt: skip


def make_suite(params: dict[str, Any] | None = None, **written: Any) -> Suite:
    """The resolved suite of a suite file with these keys; its corpora need not be in the catalogue.

    params  groups of params.yaml that replace the project's; blocks of a group are added to the project's own
    """
    content = read_yaml(ROOT / "params.yaml")
    for group, blocks in (params or {}).items():
        content[group] = {**content[group], **blocks}
    keys = {"suite": "mine", "source": "package", "corpora": ("lee",), "spaces": SPACES, **written}
    plan = resolve(SuiteFile.model_validate(keys), content, corpus_of=lambda corpus, _suite: {"dataset": corpus})
    return Suite.model_validate(freeze(plan))


def copy_code(folder: Path) -> None:
    """Copy the three layers, with what Python and numba compiled: a kernel compiled anew takes longer than its stage.

    Other processes may compile meanwhile, under temporary names that are gone before they are copied.
    """
    unfinished = shutil.ignore_patterns("*.pyc.*", "*.tmp.*")
    for name in ("sentfold", "pipeline", "flows"):
        shutil.copytree(ROOT / name, folder / name, ignore=unfinished)


def make_checkout(folder: Path, *, corpora: str | None = None) -> Path:
    """Copy the project into `folder`; git and DVC set up, nothing run. `corpora` replaces those of the suite quick."""
    folder.mkdir(parents=True)
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)
    copy_code(folder)
    shutil.copytree(ROOT / "reports/benchmarks", folder / "reports/benchmarks")
    (folder / ".dvc").mkdir()
    for name in ("config", ".gitignore"):
        shutil.copy(ROOT / ".dvc" / name, folder / ".dvc" / name)
    if corpora is not None:
        suite = folder / "suite.yaml"
        suite.write_text(re.sub(r"corpora: \[.*\]", f"corpora: [{corpora}]", suite.read_text()))
        with chdir(folder):
            write_plan("quick")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def write_plans(checkout: Path, *suites: str) -> None:
    """Write the plans of a checkout's suites with its own code and catalogue, as `sentfold plan` does."""
    for suite in suites or ("quick",):
        command = [sys.executable, "-m", "pipeline", "plan", "--suite", suite]
        subprocess.run(command, cwd=checkout, env=environment(), check=True, capture_output=True)


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


def make_checkout_with_suites(folder: Path, *, corpora: str | None = "wordsim, happy") -> Path:
    """A checkout, small unless asked otherwise, that has the paper suites too, none of them run."""
    make_checkout(folder, corpora=corpora)
    shutil.copytree(ROOT / "suites", folder / "suites", symlinks=True, ignore=shutil.ignore_patterns("*.lock"))
    return folder
