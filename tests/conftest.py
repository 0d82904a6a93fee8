"""All tests compute under the numeric profile, as their subprocesses do: it is set before numpy is loaded."""

import sys
from pathlib import Path

# As in pipeline and flows: nothing in the checkout stands in for a library of its name.
if sys.path[:1] == [str(Path(__file__).parents[1])]:
    sys.path.append(sys.path.pop(0))

from sentfold.numeric_profile import use_profile

use_profile()
