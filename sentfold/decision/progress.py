"""Progress bars of the commands: on stderr, where it is a terminal, for steps of more than two seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from tqdm import tqdm

Part = TypeVar("Part")

DELAY = 2.0  # seconds for which a step shows no bar
_shown: ContextVar[bool] = ContextVar("shown", default=False)  # a caller of the library did not ask for bars


@contextmanager
def progress_bars() -> Iterator[None]:
    """Show the bars of all steps inside."""
    before = _shown.set(True)
    try:
        yield
    finally:
        _shown.reset(before)


def open_bar(total: int, unit: str) -> tqdm[Any]:
    """A bar over `total` units, to be used in a `with` statement and to be updated."""
    from tqdm import tqdm

    shown = _shown.get() and sys.stderr is not None and sys.stderr.isatty()  # None where a shell closed it: 2>&-
    return tqdm(total=total, desc=f"{unit}s", unit=f" {unit}s", delay=DELAY, disable=not shown, leave=False)


def counted(
    parts: Iterable[Part], total: int, unit: str, size: Callable[[Part], int] = lambda part: 1
) -> Iterator[Part]:
    """The parts as they come, counted by a bar. `size` is how many of the `total` units a part holds."""
    with open_bar(total, unit) as bar:
        for part in parts:
            yield part
            bar.update(size(part))
