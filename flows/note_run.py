"""Note in DVC's run cache what a stage made, also where some of it is kept by git: `python -m flows.note_run STAGE`.

DVC writes no such note for a stage with an output that it does not cache, unless that is a metric or a
plot, though it restores one all the same. A worker's results travel by these notes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pipeline.errors import RunError


def note_run(dvcfile: Path, name: str) -> None:
    """Note the run of a stage of the repository in the working folder, from dvc.lock and what lies there.

    Raises RunError if the stage is not up to date: what lies there is then not what its inputs give.
    """
    from dvc.repo import Repo

    with Repo() as repo:
        stage = repo.stage.load_one(str(dvcfile), name)
        with repo.lock:
            if stage.status():
                raise RunError(
                    f"the stage '{name}' is not up to date, so its run cannot be noted",
                    where=str(dvcfile),
                    remedy=f"dvc repro {name}",
                )
            repo.stage_cache.save(stage)


if __name__ == "__main__":
    path, _, address = sys.argv[1].rpartition(":")
    note_run(Path(path or "dvc.yaml"), address)
