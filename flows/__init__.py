"""Decide when and where a stage runs; DVC owns what runs, Prefect carries it out."""

import os
import sys

# `python -m flows` and Prefect put the checkout before the libraries. It goes behind them, so that no file and no
# folder of data in it stands in for one; pathlib itself could be such a file.
if sys.path[:1] == [os.getcwd()]:  # noqa: PTH109
    sys.path.append(sys.path.pop(0))

import pipeline  # noqa: F401  # it sees to it that the project's own packages alone are found in the checkout
