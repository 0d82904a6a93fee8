"""sentfold: the referee of sentence geometry. Stages import from here what they need and no more."""

from sentfold.numeric_profile import use_profile

# Before any stage imports numpy: libraries choose their inner loops when they are loaded.
use_profile()
