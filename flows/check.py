"""Hold what a user writes against each other before anything is run."""

from __future__ import annotations

import os

MIRROR_VARIABLE = "SENTFOLD_MIRROR"


def check_suite(suite: str, *, touched: bool = True) -> None:
    """Raise the first error that a run of the suite in the working folder would meet.

    touched  False: nothing in the checkout was touched since it was sound, so that only a mirror, which
             is none of its files, can have changed

    Cost: seconds if something was touched, mostly for imports; nothing without a mirror if not.
    """
    if not touched and not os.environ.get(MIRROR_VARIABLE):
        return
    from pipeline.check import check_everything, mirror_changes
    from pipeline.suite import load_suite

    mirror_changes(check_everything(suite) if touched else load_suite(suite))
