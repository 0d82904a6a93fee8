"""Decide when and where a stage runs; DVC owns what runs, Prefect carries it out."""

import os
import sys

# `python -m flows` and Prefect search the checkout before the libraries. Here the checkout is moved to the end of
# sys.path: otherwise Python would import a folder of data that is called `json` instead of the library json.
# pathlib is not used for this, because a folder could have that name, too.
if sys.path[:1] == [os.getcwd()]:  # noqa: PTH109
    sys.path.append(sys.path.pop(0))

# The import installs a finder: from then on Python finds only the project's own packages in the checkout.
import pipeline  # noqa: F401
