"""Measured claims of the documentation, each by one command from the root: python -m benchmarks.NAME."""

import os
import sys

# As in flows/__init__.py: a folder of data in the checkout could be called `json`. Nothing of the project is imported,
# as it would set the numeric profile.
if sys.path[:1] == [os.getcwd()]:  # noqa: PTH109
    sys.path.append(sys.path.pop(0))
