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
    # A server of Prefect in the background and a worker of Dask are started as Pythons that search the checkout first.
    if sys.argv[:2] == ["prefect", "server"] or sys.argv[0] in ("dask", "flows"):
        os.environ["PYTHONSAFEPATH"] = "1"
    # Prefect searches the working folder before the libraries while it imports the flows. So they are imported first.
    if sys.argv[0].partition(".")[0] == "prefect":
        import flows.flow  # noqa: F401
    # This module stays __main__: the processes of Dask's workers import __main__ before all else, and so `flows`.
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=False)


if __name__ == "__main__":
    main()
