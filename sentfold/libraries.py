"""What numba, torch and polars take from outside: settings from the working folder, and folders of their own."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

SETTINGS = "numba.core.config"  # the module of numba that reads SETTINGS_FILE
SETTINGS_FILE = ".numba_config.yaml"
# No index has sentfold by its name, so pip would ask for whatever somebody registers.
TEXT_EXTRA = "pip install '.[text]' in a clone of sentfold"


class SettingsFinder:
    """Lets numba look for its settings in the account's own folder, and never in the working folder.

    The settings can name a folder of compiled code, and numba runs that code. A folder of data can have such a file.
    Where other accounts may write, the file can come at any moment.
    """

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None for every other module."""
        found = PathFinder.find_spec(name, path, target) if name == SETTINGS else None
        if found is not None and isinstance(found.loader, SourceFileLoader):
            found.loader = _SettingsLoader(found.loader.name, found.loader.path)
        return found


class _SettingsLoader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType | None:
        """The code of numba's module, with an absolute path instead of a name that starts at the working folder."""
        code = super().get_code(fullname)
        if code is None:
            return None
        path = str(_cache_folder() / SETTINGS_FILE)
        return code.replace(co_consts=tuple(path if value == SETTINGS_FILE else value for value in code.co_consts))


def prepare_libraries() -> None:
    """Keep libraries from what other people can write. Called before one of them is imported; imports none."""
    if SettingsFinder not in sys.meta_path:
        sys.meta_path.insert(0, SettingsFinder)
    folder = _cache_folder()
    # Torch's own place is a name in /tmp that anybody can take.
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder / "torchinductor"))
    # polars removes folders with numbers for names from its own place, /var/tmp/polars-USER/spill, which anybody can
    # make first, as a link to a folder of the user.
    os.environ.setdefault("POLARS_OOC_SPILL_DIR", str(folder / "polars"))
    if not os.access(Path(__file__).parent, os.W_OK):  # numba keeps compiled code next to the source if it can
        os.environ.setdefault("NUMBA_CACHE_DIR", str(folder / "numba"))


@cache
def _cache_folder() -> Path:
    """A folder that this account alone can write to: in its home, or, where there is none, for this process alone."""
    try:
        named = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
        # A relative place is in the working folder, which may be a stranger's; XDG's specification has it ignored.
        folder = (named if named.is_absolute() else Path("~/.cache").expanduser()) / "sentfold"
        if folder.is_absolute():
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
