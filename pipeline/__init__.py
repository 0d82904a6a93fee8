"""sentfold: the referee of sentence geometry. Stages import from here what they need and no more."""

import os
import sys

# `python -m pipeline` is looking for this package. The checkout goes behind the libraries, so that no file in it stands
# in for one; pathlib itself could be such a file.
if sys.argv[:1] == ["-m"] and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109
    sys.path.append(sys.path.pop(0))

from sentfold.numeric_profile import use_profile

# Before any stage imports numpy: libraries choose their inner loops when they are loaded.
use_profile()
