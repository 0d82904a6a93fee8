"""Another process that replaces a file again and again while the code under test reads the file."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path


@contextmanager
def swapping(path: Path, *contents: bytes) -> Iterator[None]:
    """For the length of the block, `path` holds one of the contents after the other, each as a new file."""
    over = threading.Event()

    def swap() -> None:
        new = path.with_name(f"{path.name}.new")
        for content in cycle(contents):
            new.write_bytes(content)
            new.replace(path)
            if over.is_set():
                return

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
