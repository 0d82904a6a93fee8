"""How an audit puts hashes, files and values into words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.lineage.causes import Cause
from pipeline.lineage.digests import Digest
from pipeline.lineage.stages import Entry

MISSING = "nothing"


def listed(files: Sequence[str]) -> str:
    """A few names in brackets; "" for none."""
    shown = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
    return f" ({shown})" if files else ""


def said_of(path: str, here: Digest) -> str:
    """What lies under a path: its md5, or what of it cannot be read."""
    if not here.unreadable:
        return f"md5 {here.md5}"
    inner, why = next(iter(here.unreadable.items()))
    rest = f", and {len(here.unreadable) - 1} more" if len(here.unreadable) > 1 else ""
    return f"which cannot be read: {path}{'/' if inner else ''}{inner} ({why}){rest}"


def brief(value: Any) -> str:
    """A value, cut where it is long."""
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def leaves(key: str, one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    """What differs between two values: they themselves, or of two mappings each part that differs, by dotted key."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        yield key, one, other
        return
    for part in dict.fromkeys([*one, *other]):
        ours, theirs = one.get(part, MISSING), other.get(part, MISSING)
        if ours != theirs:
            yield from leaves(f"{key}.{part}", ours, theirs)


def value_in(content: Any, key: str) -> Any:
    """The value of a dotted key; keys of dvc.lock are dotted themselves, up to the block that a stage tracks."""
    if not key:
        return content
    if not isinstance(content, dict):
        return MISSING
    for name, value in content.items():
        if key == name or key.startswith(f"{name}."):
            return value_in(value, key.removeprefix(str(name)).removeprefix("."))
    return MISSING


def edited_entry(lockfile: str, name: str, entry: Entry, before: str) -> Cause:
    """dvc.lock was edited: the committed one has another md5 of a file, and there is ground to believe it."""
    message = f"its entry of {entry.path} says md5 {entry.md5}, the committed one {before}: the entry was edited"
    return Cause("lock", f"{lockfile}, stage {name}", message, f"git checkout -- {lockfile}")
