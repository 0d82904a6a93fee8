"""All tests compute under the numeric profile, as their subprocesses do: it is set before numpy is loaded."""

from sentfold.numeric_profile import use_profile

use_profile()
