"""Make a library look as if it were not installed."""

from __future__ import annotations

import sys


def hide_pandas() -> None:
    """Make libraries take pandas for missing: pyarrow and scikit-learn would import it, a third of a second."""
    sys.meta_path.insert(0, _Hidden("pandas"))


class _Hidden:
    """A finder of modules that refuses one of them, as if it were not installed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if name == self.name:
            raise ModuleNotFoundError(f"{name} is hidden", name=name)
