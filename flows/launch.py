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
    if not sys.argv[1:]:
        sys.stderr.write("error: no module is named\n  to do     name one: python -m flows.launch prefect version\n")
        sys.exit(2)
    name, *words = sys.argv[1:]
    sys.argv[:] = [f"launch {name}", *words]  # an error of usage then begins with `python -m flows.launch dask`
    if name in ("dask", "flows"):  # Dask starts each worker as a Python that otherwise searches the checkout first
        os.environ["PYTHONSAFEPATH"] = "1"
    if home := os.environ.get("PREFECT_HOME"):  # may be relative, and below the server gets another working folder
        # os.path is used because a folder of data could be called pathlib.
        os.environ["PREFECT_HOME"] = os.path.abspath(os.path.expanduser(home))  # noqa: PTH100, PTH111
    # Prefect searches the working folder before the libraries while it imports the flows. So they are imported first.
    if name.partition(".")[0] == "prefect":
        import flows.flow  # noqa: F401
    if [name, *words[:1]] == ["prefect", "server"]:  # with --background the server searches its working folder first
        from prefect.settings import get_current_settings

        os.chdir(get_current_settings().home)
    # With alter_sys=False this module stays __main__. A process of a Dask worker imports __main__ before all else, so
    # it imports `flows`, which keeps folders of data out.
    runpy.run_module(name, run_name="__main__", alter_sys=False)


if __name__ == "__main__":
    main()
