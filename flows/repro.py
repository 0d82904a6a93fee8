"""Bring a suite up to date by plain `dvc repro`, one stage after another."""

from __future__ import annotations

from pathlib import Path

from flows.graph import require_dvcfile
from flows.guard import start_guarded
from flows.leftovers import clear_leftovers
from flows.lock import hold_checkout
from flows.lockfile import sort_lock
from flows.recovery import recover
from flows.run_stage import dvc_command, stage_environment, wait_for
from pipeline.errors import RunError


def plain_repro(suite: str, root: Path, *, wait: bool = True) -> None:
    """Run `dvc repro` on a suite; what it prints goes to the terminal as it comes.

    wait  for another run that holds the checkout; False: raise instead

    Afterwards dvc.lock is in its one order, so this and `reproduce` leave the same bytes. Raises
    RunError if dvc fails, or if the checkout is held and `wait` is False.
    """
    root = root.absolute()
    dvcfile = require_dvcfile(suite, root)
    with hold_checkout(root, wait=wait, purpose=f"sentfold repro --suite {suite}"):
        clear_leftovers(suite, root)
        try:
            process = start_guarded(dvc_command("repro", str(dvcfile)), cwd=root, env=stage_environment())
            code = wait_for(process)
        finally:
            recover(root)
            sort_lock(root / dvcfile.with_suffix(".lock"))
    if code != 0:
        raise RunError(
            f"dvc repro of suite '{suite}' failed with exit code {code}",
            where=str(dvcfile),
            got="the reason stands above, in what the stage printed",
            state="the failed stage's outputs are gone or incomplete; stages that finished are kept",
            remedy=f"mend the cause, then: sentfold repro --suite {suite}",
        )
