"""What numba and torch take from outside: settings from the working folder, and folders for compiled code."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from sentfold.errors import ParameterError

SETTINGS_FILE = ".numba_config.yaml"


def prepare_compilers() -> None:
    """Keep numba and torch from what other people can write. Called before either is imported; imports neither.

    Raises ParameterError if the working folder has settings for numba. They can name a folder of compiled code, and
    numba would run that code: a folder of data could do so.
    """
    if os.path.lexists(SETTINGS_FILE):
        raise ParameterError(
            "numba would take its settings from this folder, and could run code from it",
            where=str(Path.cwd() / SETTINGS_FILE),
            expected="no such file",
            got="settings of numba",
            state="nothing was read",
            remedy="remove the file, or work in another folder",
        )
    folder = _cache_folder()
    # Torch's own place is a name in /tmp that anybody can take.
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder / "torchinductor"))
    if not os.access(Path(__file__).parent, os.W_OK):  # numba keeps compiled code next to the source if it can
        os.environ.setdefault("NUMBA_CACHE_DIR", str(folder / "numba"))


@cache
def _cache_folder() -> Path:
    """A folder that this account alone can write to: in its home, or, where there is none, for this process alone."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "sentfold").expanduser()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):  # RuntimeError: the account has no home
        pass
    made = Path(tempfile.mkdtemp(prefix="sentfold-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    try:
        Path.home()
    except RuntimeError:  # downloads of libraries need one too
        os.environ["HOME"] = str(made)
    return made
