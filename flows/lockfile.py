"""Read dvc.lock, and write it in one order whatever order the stages ran in."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from flows.replacing import replace_file
from pipeline.errors import RunError

# The C parser reads the lock of 120 stages in milliseconds, the Python one in half a second.
YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_outputs(path: Path) -> dict[str, Any]:
    """What dvc.lock records of each stage's outputs, per stage; empty if there is no lock.

    May be called while DVC rewrites the file: a half-written stage is absent or differs from any
    complete one, so comparing with an earlier reading can err only towards "changed".
    """
    try:
        content = yaml.load(path.read_bytes(), Loader=YAML_LOADER)
        return {name: stage.get("outs") for name, stage in (content or {}).get("stages", {}).items()}
    except (FileNotFoundError, yaml.YAMLError, AttributeError):
        return {}


def sort_lock(path: Path) -> bool:
    """Put the stages of a dvc.lock in alphabetical order; True if that changed the file.

    DVC appends a stage when it first ends, so after a parallel run the order is a matter of chance.
    Each stage's own bytes stay as they are. The file is replaced in one step. A missing lock, as
    before the first run, is left missing.

    Raises RunError if the file is no dvc.lock.
    """
    return _rewrite(path, ())


def drop_stages(path: Path, names: Collection[str]) -> bool:
    """Take stages out of a dvc.lock, and put the others in their order; True if that changed the file.

    Otherwise as `sort_lock`.
    """
    return _rewrite(path, names)


def _rewrite(path: Path, dropped: Collection[str]) -> bool:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    ordered = _ordered(text, path, dropped)
    if ordered == text:
        return False
    replace_file(path, ordered.encode())
    return True


def _ordered(text: str, path: Path, dropped: Collection[str]) -> str:
    try:
        root = yaml.compose(text, Loader=YAML_LOADER)
    except yaml.YAMLError as error:
        raise _no_lock(path, " ".join(str(error).split())) from None
    sections = root.value if isinstance(root, yaml.MappingNode) else []
    stages = next((value for key, value in sections if key.value == "stages"), None)
    if not isinstance(stages, yaml.MappingNode):
        raise _no_lock(path, "no mapping 'stages'")
    if not stages.value or stages.flow_style:
        return text
    lines = text.splitlines(keepends=True)
    names = [key.value for key, _ in stages.value]
    starts = [key.start_mark.line for key, _ in stages.value]
    # The last stage ends where the next section begins, or with the file.
    after = [key.start_mark.line for key, _ in sections if key.start_mark.line > starts[-1]]
    starts.append(after[0] if after else len(lines))
    blocks = {name: "".join(lines[start:end]) for name, (start, end) in zip(names, pairwise(starts), strict=True)}
    kept = [name for name in sorted(names) if name not in dropped]
    if not kept:
        return yaml.safe_dump({**yaml.load(text, Loader=YAML_LOADER), "stages": {}}, sort_keys=False)
    body = "".join(blocks[name] for name in kept)
    ordered = "".join(lines[: starts[0]]) + body + "".join(lines[starts[-1] :])
    wanted = yaml.load(text, Loader=YAML_LOADER)
    wanted["stages"] = {name: stage for name, stage in wanted["stages"].items() if name not in dropped}
    if yaml.load(ordered, Loader=YAML_LOADER) != wanted:
        raise _no_lock(path, "stages that share lines, so they cannot be put in order")
    return ordered


def _no_lock(path: Path, got: str) -> RunError:
    return RunError(
        "dvc.lock is not as DVC writes it",
        where=str(path),
        expected="schema, then stages, one after the other",
        got=got,
        state="it was left as it is",
        remedy="take the committed one back (git checkout) and run again",
    )
