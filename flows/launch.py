"""Run a module of a library in a checkout: `python -m flows.launch prefect.engine` instead of `-m prefect.engine`.

`python -m` looks for libraries in the working folder first, where a folder of data called `json` would be taken for one
and its code run. Importing `flows` has put the working folder behind the libraries (flows/__init__.py).
"""

from __future__ import annotations

import os
import runpy
import sys


def main() -> None:
    """Run the module that the first argument names, with the further arguments."""
    del sys.argv[0]
    if sys.argv[:2] == ["prefect", "server"]:  # --background starts a Python that searches the checkout first
        os.environ["PYTHONSAFEPATH"] = "1"
    # Prefect searches the working folder before the libraries while it imports the flows. So they are imported first.
    if sys.argv[0].partition(".")[0] == "prefect":
        import flows.flow  # noqa: F401
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
