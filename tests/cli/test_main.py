"""The command `sentfold`: what it finds, what it says of what it does not find, and what it imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sentfold.cli.checkout import CHECKOUT_COMMANDS, STARTERS, find_checkout, refuse_others_code
from sentfold.cli.main import own_commands
from sentfold.errors import RunError

ROOT = Path(__file__).parents[2]


def sentfold(*words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from sentfold.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *words], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


def test_help_lists_every_command_with_one_line() -> None:
    done = sentfold("--help")
    listed = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.startswith("  ")}
    assert done.returncode == 0
    assert set(listed) == {*own_commands(), *CHECKOUT_COMMANDS}
    assert all(listed.values())


def test_help_begins_with_what_a_user_does_first_and_ends_with_the_stages() -> None:
    lines = sentfold("--help").stdout.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert listed[:5] == ["decide", "compare", "run", "show", "claims"]
    assert "stages" in lines[-1]


def test_a_misspelled_command_gets_the_nearest_name() -> None:
    done = sentfold("adit")
    assert done.returncode == 1
    assert "did you mean `sentfold audit`?" in done.stderr


def test_the_version_is_that_of_the_installed_package() -> None:
    assert sentfold("--version").stdout.startswith("sentfold 0.")


def test_letters_that_a_terminal_lacks_are_printed_as_escapes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", "show"],
        cwd=ROOT, env={**os.environ, "PYTHONIOENCODING": "latin-1"}, capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"\\u25bc" in done.stdout  # the sign of a space that is worse


def test_show_says_that_its_output_is_full_and_not_that_there_is_no_report() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pipeline", "show"],
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "standard output" in done.stderr
    assert "No space left on device" in done.stderr
    assert "no report" not in done.stderr


@pytest.mark.parametrize("command", ["run", "audit"])
def test_outside_of_a_checkout_a_command_of_the_checkout_says_that_it_needs_one(command: str, tmp_path: Path) -> None:
    done = sentfold(command, folder=tmp_path)
    assert done.returncode == 2
    assert "needs a checkout" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_of_the_checkout_runs_in_its_root_and_passes_the_exit_code_on(tmp_path: Path) -> None:
    (tmp_path / "dvc.yaml").touch()
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline/__main__.py").write_text(
        "import os, pathlib, sys\nprint(pathlib.Path.cwd(), sys.argv[1:], os.environ['SENTFOLD_FOLDER'])\nsys.exit(7)\n"
    )
    inside = tmp_path / "data" / "deep"
    inside.mkdir(parents=True)
    done = sentfold("audit", "--strict", folder=inside)
    assert done.returncode == 7
    assert done.stdout.strip() == f"{tmp_path} ['audit', '--strict'] data/deep"


@pytest.mark.slow
def test_a_module_that_python_starts_with_is_refused_in_a_checkout(tmp_path: Path) -> None:
    """Without the site packages, which may have imported some of them, `python -m` takes these from the folder."""
    root = tmp_path / "checkout"
    (root / "pipeline").mkdir(parents=True)
    (root / "dvc.yaml").touch()
    (root / "pipeline/__main__.py").touch()
    words = [sys.executable, "-S", "-X", "importtime", "-m", "pipeline"]
    listed = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stderr
    names = {line.rpartition("|")[2].strip().partition(".")[0] for line in listed.splitlines()[1:]} - {"pipeline"}
    taken = set()
    for name in sorted(names):
        (root / f"{name}.py").write_text(f"open({str(tmp_path / name)!r}, 'w').close()")
        subprocess.run([sys.executable, "-S", "-m", "pipeline"], cwd=root, capture_output=True, check=False)
        if (tmp_path / name).exists():
            taken.add(name)
            (tmp_path / name).unlink()
            done = sentfold("audit", folder=root)
            assert done.returncode == 2 and f"{name}.py" in done.stderr
            assert not (tmp_path / name).exists()
        (root / f"{name}.py").unlink()
    assert {"collections", "types"} <= taken <= {*STARTERS}
    (root / "types").mkdir()
    assert sentfold("audit", folder=root).returncode == 0  # a folder of data alone is no module
    for file in ("types/__init__.py", "types/__init__.pyc", "keyword.so"):
        (root / file).touch()
        assert sentfold("audit", folder=root).returncode == 2
        (root / file).unlink()


def test_the_command_imports_nothing_of_pipeline_or_flows() -> None:
    code = (
        "import sys; sys.argv = ['sentfold', '--help']; from sentfold.cli.main import main; main()\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('pipeline', 'flows', 'numpy')])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_command_of_a_checkout_runs_where_python_is_told_to_leave_out_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "dvc.yaml").touch()
    (tmp_path / "pipeline" / "__main__.py").write_text("print('this code runs')\n")
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    assert "this code runs" in sentfold("show", folder=tmp_path).stdout


def test_a_folder_without_pipeline_is_no_checkout(tmp_path: Path) -> None:
    (tmp_path / "dvc.yaml").touch()
    assert find_checkout(tmp_path) is None


def test_a_checkout_in_another_one_runs_nothing(tmp_path: Path) -> None:
    """A folder of data that was unpacked in the user's own checkout can bring these two files."""
    for place in (tmp_path, tmp_path / "incoming"):
        (place / "pipeline").mkdir(parents=True)
        (place / "dvc.yaml").touch()
        (place / "pipeline" / "__main__.py").write_text("print('this code runs')\n")
    (tmp_path / "incoming/data").mkdir()
    for folder in ("incoming", "incoming/data"):
        done = sentfold("show", folder=tmp_path / folder)
        assert done.returncode == 2 and "inside another checkout" in done.stderr
        assert "this code runs" not in done.stdout
    assert "this code runs" in sentfold("show", folder=tmp_path).stdout
    # Worktrees of the checkout's own repository are no data that were unpacked.
    git = ["git", "-c", "user.name=a", "-c", "user.email=b"]
    for words in (
        ["init", "-q"],
        ["add", "dvc.yaml", "pipeline"],
        ["commit", "-qm", "c"],
        ["worktree", "add", "-q", "w/a"],
    ):
        subprocess.run([*git, *words], cwd=tmp_path, check=True, capture_output=True)
    assert "this code runs" in sentfold("show", folder=tmp_path / "w/a").stdout
    if os.getuid() == 0:  # another user cannot keep anybody from the own checkout by laying one above it
        os.chown(tmp_path / "dvc.yaml", 54_321, 54_321)
        assert "this code runs" in sentfold("show", folder=tmp_path / "incoming").stdout


def test_a_checkout_that_another_user_laid_above_a_folder_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who wrote /tmp/dvc.yaml and /tmp/pipeline/__main__.py had their code run by every user of /tmp/..."""
    (tmp_path / "pipeline").mkdir()
    places = [tmp_path, tmp_path / "dvc.yaml", tmp_path / "pipeline", tmp_path / "pipeline/__main__.py"]
    for place in (places[1], places[3]):
        place.touch()
    inside = tmp_path / "data"
    refuse_others_code(tmp_path, inside)
    stranger = 54_321
    owners = dict.fromkeys(places, stranger)
    monkeypatch.setattr(Path, "stat", lambda path: SimpleNamespace(st_uid=owners[path]))
    with pytest.raises(RunError, match="belongs to another user"):
        refuse_others_code(tmp_path, inside)
    refuse_others_code(tmp_path, tmp_path)  # in its root, as asked for
    owners[tmp_path] = 0  # as /tmp is root's
    with pytest.raises(RunError, match="belongs to another user"):
        refuse_others_code(tmp_path, tmp_path)
    owners.update(dict.fromkeys(places, 0))
    refuse_others_code(tmp_path, inside)  # root's is everybody's


@pytest.mark.parametrize("package", ["pipeline", "flows"])
def test_every_command_of_the_checkout_is_one_of_its_package(package: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", package, "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    known = {words[0] for line in done.stdout.splitlines() if (words := line.split())}
    assert {name for name, (owner, _) in CHECKOUT_COMMANDS.items() if owner == package} <= known


@pytest.mark.parametrize("command", ["audit", "run"])
def test_an_error_of_usage_names_the_program_that_the_user_called(command: str) -> None:
    assert f"Try 'sentfold {command} --help'" in sentfold(command, "--no-such-option").stderr


@pytest.mark.slow
def test_too_little_memory_is_an_error_that_says_so(tmp_path: Path) -> None:
    """The limit is set once all is imported, so that the arrays of the command are what does not fit."""
    rows = 4_000_000
    np.save(tmp_path / "x.npy", np.ones((rows, 8), dtype=np.float16))
    code = f"""
import resource, sys
sys.path.insert(0, {str(ROOT)!r})
import sentfold.cli.main, sentfold.decision.decide, sentfold.decision.export, sentfold.data.vectors
from pathlib import Path
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 120_000_000,) * 2)
sentfold.cli.main.run = lambda words: sentfold.data.vectors.check_vectors(__import__("numpy").load("x.npy"), "x")
sentfold.cli.main.main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: there is too little memory")
