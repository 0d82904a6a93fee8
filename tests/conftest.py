"""All tests compute under the numeric profile, as their subprocesses do: it is set before numpy is loaded."""

import sys
from pathlib import Path

# The checkout is moved to the end of sys.path, as in flows/__init__.py: a folder of data is no library.
if sys.path[:1] == [str(Path(__file__).parents[1])]:
    sys.path.append(sys.path.pop(0))

from sentfold.numeric_profile import use_profile

use_profile()

from hypothesis import settings  # noqa: E402  # behind the profile: it may load numpy

settings.register_profile("any machine", deadline=None)  # no test is about time: a busy machine is no failure
settings.load_profile("any machine")
