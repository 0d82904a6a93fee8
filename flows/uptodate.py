"""Remember that a suite was up to date, and tell in a moment whether that can have changed.

DVC takes seconds to find out that there is nothing to do: it parses and compares every stage. Here the
footprint of every file that decides it is held against that of the last time that DVC found nothing. DVC
itself believes a file's recorded hash as long as its size, time and inode stay; the change time, which
no program can set, is compared too. Any difference, and DVC is asked.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from flows.footprint import footprint
from flows.graph import StageGraph

FOLDER = Path(".dvc/tmp")


def remember(suite: str, graph: StageGraph, root: Path) -> None:
    """Note that DVC found none of the suite's stages changed when it read `graph`."""
    path = _memory(suite, root)
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    draft.write_text(json.dumps({"paths": sorted(graph.reads), "footprint": graph.seen}), encoding="utf-8")
    draft.replace(path)


def surely_up_to_date(suite: str, root: Path) -> bool:
    """Whether nothing that decides it changed since DVC last found the suite up to date. Cost: milliseconds."""
    try:
        content = json.loads(_memory(suite, root).read_text(encoding="utf-8"))
        return bool(content["footprint"] == footprint(content["paths"], root=root))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _memory(suite: str, root: Path) -> Path:
    return root / FOLDER / f"sentfold-uptodate-{suite}.json"
