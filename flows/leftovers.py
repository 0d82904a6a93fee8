"""Clear away what stages wrote that dvc.yaml has no more.

DVC keeps their entries in dvc.lock for ever, and their outputs on disk. A folder over several outputs, such
as all spaces, is hashed as it lies: with a leftover in it, its hash is one that no other checkout can have.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import typer

from flows.graph import dvcfile_of
from flows.lockfile import drop_stages
from pipeline.errors import SentfoldError
from pipeline.lineage.stages import Entry, Graph, load_graph, related
from pipeline.lineage.working_tree import WorkingTree


def clear_leftovers(suite: str, root: Path, *, say: Callable[[str], None] = typer.echo) -> None:
    """Drop a suite's leftover stages from its dvc.lock, and remove their outputs under data/<suite>/.

    An output is removed only if its bytes are still the recorded ones, so that it can be had again, from
    DVC's cache or by the stage; another is left and named. `say` is told a line for each. Only for the holder
    of the checkout. What cannot be read is left to DVC, which says so in its own words. Raises RunError if
    dvc.lock is not as DVC writes it. Cost: parsing dvc.yaml and dvc.lock, and hashing the leftovers.
    """
    tree = WorkingTree(root)
    try:
        graph = load_graph(tree, suite)
    except SentfoldError:
        return
    if not graph.leftovers or not graph.stages:
        return
    for name, entry in _outputs(graph):
        here = tree.digest(entry.path)
        if here is None:
            continue
        if here.md5 == entry.md5:
            _remove(root / entry.path, root / "data" / suite)
            say(f"removed {entry.path}: {name}, which wrote it, is no stage of {graph.dvcfile} any more")
        else:
            say(f"left {entry.path}, whose stage {name} is gone: it is not what was recorded; remove it by hand")
    drop_stages(root / dvcfile_of(suite).with_suffix(".lock"), graph.leftovers)


def _outputs(graph: Graph) -> Iterator[tuple[str, Entry]]:
    """The outputs of leftover stages that lie among the suite's artifacts and have nothing to do with any stage."""
    for name in graph.leftovers:
        for path, entry in graph.locked[name].outs.items():
            inside = path.startswith(f"data/{graph.suite}/") and ".." not in Path(path).parts
            if inside and not any(related(path, out) for out in graph.producers):
                yield name, entry


def _remove(place: Path, top: Path) -> None:
    """Remove a file or folder, and the folders above it that are empty then, up to `top`."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()
    with suppress(OSError):  # The first folder that is not empty ends it.
        for folder in place.parents:
            if folder == top:
                return
            folder.rmdir()
