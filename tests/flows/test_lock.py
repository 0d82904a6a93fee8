import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.lock import hold_checkout
from sentfold.errors import RunError
from sentfold.locks import CHECKOUT_LOCK, HELD_BY
from tests.flows.checkout import SOURCE, Checkout

HOLD = """
import sys, time
from pathlib import Path
from flows.lock import hold_checkout
with hold_checkout(Path.cwd(), wait=False, purpose="holding"):
    print("held", flush=True)
    time.sleep(float(sys.argv[1]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Checkout]:
    """A checkout as far as the lock cares: a folder with .dvc in it."""
    (tmp_path / ".dvc").mkdir()
    (tmp_path / "hold.py").write_text(HOLD)
    checkout = Checkout(tmp_path, {**os.environ, "PYTHONPATH": str(SOURCE)})
    yield checkout
    checkout.end()


def start_holder(folder: Checkout, seconds: float) -> int:
    holder = folder.start("hold", str(seconds))
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder.pid


def test_a_second_holder_is_refused_and_told_who_holds_it(folder: Checkout) -> None:
    pid = start_holder(folder, 60)
    with pytest.raises(RunError) as caught, hold_checkout(folder.root, wait=False, purpose="second"):
        pass
    assert re.search(rf"process {pid} on \S+ since \d{{4}}-\d\d-\d\dT\S+: holding", str(caught.value))


def test_a_second_holder_waits_until_the_first_ends(folder: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    pid = start_holder(folder, 1.0)
    with hold_checkout(folder.root, wait=True, purpose="second"):
        assert folder.started[0].wait(timeout=10) == 0
    assert f"waiting: this checkout is held by process {pid}" in capsys.readouterr().out


def test_the_lock_of_a_killed_holder_is_free_though_its_note_remains(folder: Checkout) -> None:
    pid = start_holder(folder, 60)
    os.kill(pid, signal.SIGKILL)
    folder.started[0].wait()
    assert f'"pid": {pid}' in (folder.root / CHECKOUT_LOCK).read_text()
    with hold_checkout(folder.root, wait=False, purpose="next"):
        assert f'"pid": {os.getpid()}' in (folder.root / CHECKOUT_LOCK).read_text()
    assert (folder.root / CHECKOUT_LOCK).read_text() == ""


def test_a_child_of_the_holder_passes_through_and_the_lock_stays_held(folder: Checkout) -> None:
    with hold_checkout(folder.root, wait=False, purpose="outer"):
        folder.environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        assert os.environ[HELD_BY] == str(os.getpid())
        assert folder.call("hold", "0") == (0, "held\n")
        folder.environment = {name: value for name, value in folder.environment.items() if name != HELD_BY}
        stranger = folder.start("hold", "0")
        printed, _ = stranger.communicate(timeout=30)
        assert stranger.returncode != 0
        assert "another run holds this checkout" in printed
    assert HELD_BY not in os.environ


def test_the_claim_of_a_process_that_is_no_ancestor_counts_for_nothing(folder: Checkout) -> None:
    pid = start_holder(folder, 60)
    folder.environment = {**folder.environment, HELD_BY: str(pid)}
    pretender = folder.start("hold", "0")
    printed, _ = pretender.communicate(timeout=30)
    assert pretender.returncode != 0
    assert f"process {pid}" in printed


def test_holding_one_checkout_does_not_open_another(folder: Checkout, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".dvc").mkdir(parents=True)
    (other / "hold.py").write_text(HOLD)
    start_holder(Checkout(other, folder.environment, folder.started), 60)
    with (
        hold_checkout(folder.root, wait=False, purpose="first"),
        pytest.raises(RunError),
        hold_checkout(other, wait=False, purpose="second"),
    ):
        pass


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no sentfold checkout"), hold_checkout(tmp_path, wait=True, purpose="none"):
        pass


def test_a_link_in_place_of_the_lock_is_refused_and_what_it_names_stays(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("kept")
    (tmp_path / ".dvc/tmp").mkdir(parents=True)
    (tmp_path / CHECKOUT_LOCK).symlink_to(other)
    with pytest.raises(RunError, match="cannot be locked"), hold_checkout(tmp_path, wait=False, purpose="a test"):
        pass
    assert other.read_text() == "kept"


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_a_device_in_place_of_the_lock_is_refused_and_not_read(tmp_path: Path, kind: str) -> None:
    (tmp_path / ".dvc/tmp").mkdir(parents=True)
    path = tmp_path / CHECKOUT_LOCK
    {"pipe": lambda: os.mkfifo(path), "device": lambda: path.symlink_to("/dev/zero")}[kind]()
    with pytest.raises(RunError, match="cannot be locked"), hold_checkout(tmp_path, wait=False, purpose="a test"):
        pass


def test_no_other_user_can_open_the_lock(tmp_path: Path) -> None:
    """Who can read a file can hold its lock."""
    (tmp_path / ".dvc/tmp").mkdir(parents=True)
    (tmp_path / CHECKOUT_LOCK).touch(0o644)
    with hold_checkout(tmp_path, wait=False, purpose="a test"):
        assert (tmp_path / CHECKOUT_LOCK).stat().st_mode & 0o777 == 0o600


def test_a_holder_whose_purpose_is_long_lets_its_children_through(tmp_path: Path) -> None:
    (tmp_path / ".dvc").mkdir()
    for purpose in ("run " + "--target a " * 1_000, "\U0001f512" * 1_000):
        with hold_checkout(tmp_path, wait=False, purpose=purpose), hold_checkout(tmp_path, wait=False, purpose="below"):
            assert (tmp_path / CHECKOUT_LOCK).stat().st_size < 4096


def test_a_folder_in_which_no_lock_can_be_made_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc/tmp").write_text("no folder")
    with pytest.raises(RunError, match="make the folder writable"), hold_checkout(tmp_path, wait=False, purpose="a"):
        pass


def test_a_full_disk_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / ".dvc").mkdir()
    code = (
        "import resource, signal; from pathlib import Path; from flows.lock import hold_checkout;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (5, 5));"
        f"hold_checkout(Path({str(tmp_path)!r}), wait=False, purpose='a test').__enter__()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "RunError: the checkout cannot be locked" in done.stderr
