import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flows.processes import dvc_environment, start_guarded
from sentfold.errors import RunError
from tests.flows.checkout import SOURCE, alive, until

# A command that starts a command, as dvc starts a shell that starts a stage; the innermost notes its number.
NESTED = (
    "import subprocess, sys;"
    "subprocess.run([sys.executable, '-c',"
    " 'import os, sys, time; open(sys.argv[1], \"w\").write(str(os.getpid())); time.sleep(60)', sys.argv[1]])"
)


def number_in(path: Path) -> int:
    until(lambda: path.exists() and path.read_text() != "", "the innermost process to start")
    return int(path.read_text())


@pytest.mark.parametrize(
    ("code", "expected"), [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 137)]
)
def test_a_guarded_command_gives_its_own_exit_code(code: str, expected: int, tmp_path: Path) -> None:
    assert start_guarded([sys.executable, "-c", code], cwd=tmp_path, env=dict(os.environ)).wait(30) == expected


def test_what_a_command_prints_on_either_channel_goes_to_its_file(tmp_path: Path) -> None:
    code = "import sys; print('one', flush=True); print('two', file=sys.stderr)"
    with (tmp_path / "log").open("wb") as log:
        start_guarded([sys.executable, "-c", code], cwd=tmp_path, env=dict(os.environ), output=log).wait(30)
    assert (tmp_path / "log").read_text() == "one\ntwo\n"


def test_ending_a_guard_ends_everything_below_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    process = start_guarded([sys.executable, "-c", NESTED, str(note)], cwd=tmp_path, env=dict(os.environ))
    innermost = number_in(note)
    process.terminate()
    process.wait(30)
    until(lambda: not alive(innermost), "the innermost process to end", seconds=10)


def test_everything_below_a_guard_ends_when_its_starter_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = (
        "import os, sys; from pathlib import Path; from flows.processes import start_guarded\n"
        "start_guarded([sys.executable, '-c', sys.argv[1], sys.argv[2]], cwd=Path('.'), env=dict(os.environ)).wait()"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", code, NESTED, str(note)], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(SOURCE)}
    )
    innermost = number_in(note)
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    until(lambda: not alive(innermost), "the innermost process to end", seconds=10)


def test_a_command_ends_with_its_guard_when_that_is_killed(tmp_path: Path) -> None:
    code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
    note = tmp_path / "pid"
    process = start_guarded([sys.executable, "-c", code, str(note)], cwd=tmp_path, env=dict(os.environ))
    command = number_in(note)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    until(lambda: not alive(command), "the command to end", seconds=10)


def test_what_a_command_leaves_running_ends_with_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    leave = NESTED.replace("subprocess.run", "subprocess.Popen") + ";import time; time.sleep(1)"
    assert start_guarded([sys.executable, "-c", leave, str(note)], cwd=tmp_path, env=dict(os.environ)).wait(30) == 0
    until(lambda: not alive(number_in(note)), "the helper to end", seconds=10)


def test_no_other_user_reaches_the_pickles_and_the_locks_of_dvc(tmp_path: Path) -> None:
    """Who can write pickles runs code as their reader, and who can read a lock can hold it."""
    (tmp_path / ".dvc/tmp").mkdir(parents=True)
    (tmp_path / ".dvc/tmp").chmod(0o755)  # as DVC makes it
    site = Path(dvc_environment(tmp_path, {"HOME": "/me"})["DVC_SITE_CACHE_DIR"])
    assert site.is_relative_to(tmp_path / ".dvc/tmp")
    for folder in (site, tmp_path / ".dvc/tmp"):
        assert folder.stat().st_mode & 0o777 == 0o700
    site.rmdir()
    site.touch()
    with pytest.raises(RunError, match="no private folder"):
        dvc_environment(tmp_path, {})


def test_where_the_user_wants_dvc_to_keep_its_pickles_dvc_does(tmp_path: Path) -> None:
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc/config.local").write_text("[core]\n    site_cache_dir = /configured\n")
    assert dvc_environment(tmp_path, {"HOME": "/me"}) == {"HOME": "/me", "DVC_SITE_CACHE_DIR": "/configured"}
    assert dvc_environment(tmp_path, {"DVC_SITE_CACHE_DIR": "/set"}) == {"DVC_SITE_CACHE_DIR": "/set"}
    (tmp_path / ".dvc/config.local").write_text("[core\n")
    assert dvc_environment(tmp_path, {})["DVC_SITE_CACHE_DIR"] == str(tmp_path / ".dvc/tmp/site")
