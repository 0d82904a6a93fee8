"""The flow `sentfold-audit`: verify every reported number on a schedule, as `sentfold audit` does by hand."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.logging import get_run_logger

from flows.guard import start_guarded
from flows.run_stage import stage_environment, wait_for
from pipeline.errors import RunError


@flow(name="sentfold-audit", flow_run_name="audit of {suite}", persist_result=False)
def audit(suite: str = "quick", options: list[str] | None = None) -> None:
    """Run `sentfold audit` on the checkout in the working folder, in a process of its own.

    suite    quick, or the name of a folder of suites/
    options  more of its options, such as ["--recompute", "sample"] or ["--strict"]

    What it prints becomes the artifact `sentfold-<suite>-audit`. Raises RunError unless it exits 0. It
    only reads the checkout, so it neither takes nor waits for the lock of a run.
    """
    command = [sys.executable, "-m", "pipeline", "audit", "--suite", suite, *(options or [])]
    with tempfile.TemporaryFile() as output:
        code = wait_for(start_guarded(command, cwd=Path.cwd(), env=stage_environment(), output=output))
        output.seek(0)
        printed = output.read().decode("utf-8", "replace").rstrip()
    get_run_logger().info(printed)
    create_markdown_artifact(f"```\n{printed}\n```\n", key=f"sentfold-{suite}-audit", description=f"exit code {code}")
    if code:
        raise RunError(
            f"the audit of suite '{suite}' ended with exit code {code}",
            where=" ".join(command[1:]),
            got="\n".join(printed.splitlines()[-15:]),
            remedy="its whole output is the artifact of this run",
        )
