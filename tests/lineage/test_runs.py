"""What is written down of a run: of real stages that succeed, fail, are interrupted and are killed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from ast import literal_eval
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from flows.recovery import keep_unknown_files
from pipeline import SourceLoader
from pipeline.lineage.isolated_stage import lay_out
from pipeline.lineage.machine import describe_code, describe_machine, describe_packages, hash_packages, keep_loaded
from pipeline.lineage.recorder import find_stage, start_run, suite_of
from pipeline.lineage.runs import append_line, ended_runs, read_lines, runs_path
from pipeline.lineage.stages import load_graph, load_stages
from pipeline.lineage.trees import WorkingTree, git
from sentfold.numeric_profile import NAME, NATIVE, is_supported
from tests.checkout import environment, make_checkout
from tests.lineage.small import Small, environment_of

ROOT = Path(__file__).parents[2]
DOWNLOAD = ("download", "wordsim", "--suite", "quick")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's own files, committed; every test here runs single stages in it."""
    root = make_checkout(tmp_path_factory.mktemp("manifest") / "checkout", corpora="wordsim")
    for command in (["add", "-A"], ["commit", "-q", "--no-gpg-sign", "-m", "all"]):
        subprocess.run(["git", *command], cwd=root, env=environment_of(), check=True)
    return root


def stage(root: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pipeline", *arguments],
        cwd=root, env=environment(**more), capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


@pytest.mark.slow
def test_a_run_of_a_stage_leaves_one_line_with_all_that_made_its_result(checkout: Path) -> None:
    assert stage(checkout, *DOWNLOAD, DVC_STAGE="download@wordsim").returncode == 0
    run = ended_runs(checkout, "quick")[-1]
    assert (run["stage"], run["suite"], run["exit"], run["by_dvc"]) == ("download@wordsim", "quick", 0, True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True, check=True)
    assert (run["code"]["commit"], run["code"]["dirty"], run["code"]["edited"]) == (head.stdout.strip(), [], {})
    began, ended = (datetime.fromisoformat(run[key]) for key in ("started", "ended"))
    assert began.utcoffset() is not None
    assert abs((ended - began).total_seconds() - run["seconds"]) < 0.01
    # A process that has loaded numpy and pyarrow holds some 100 MB; no stage here could hold 4 GB.
    assert 50e6 < run["peak_memory_bytes"] < 4e9
    assert run["parameters"]["plan.yaml"] == {"source": "package", "skip_missing": False}
    assert list(run["parameters"]["pipeline/catalogue.yaml"]) == ["wordsim"]
    assert run["machine"]["profile"] == (NAME if is_supported() else NATIVE)
    for name, facts in run["outputs"].items():
        assert facts == {"sha256": hashlib.sha256((checkout / name).read_bytes()).hexdigest()}
    assert set(run["outputs"]) == {f"data/quick/corpora/wordsim/{part}.parquet" for part in ("items", "sentences")}
    frozen = subprocess.run(
        [sys.executable, "-m", "pip", "list", "--format=json"], capture_output=True, check=True, text=True
    )
    for package in ("numpy", "pyarrow", "pydantic"):
        versions = {entry["name"].lower(): entry["version"] for entry in json.loads(frozen.stdout)}
        assert run["packages"][package] == versions[package]


@pytest.mark.slow
def test_uncommitted_code_is_named_in_the_manifest(checkout: Path) -> None:
    path = checkout / "pipeline/stages/download.py"
    content = path.read_text()
    try:
        path.write_text(content + "# edited\n")
        assert stage(checkout, *DOWNLOAD).returncode == 0
    finally:
        path.write_text(content)
    code = ended_runs(checkout, "quick")[-1]["code"]
    assert code["dirty"] == list(code["edited"]) == ["pipeline/stages/download.py"]


@pytest.mark.slow
def test_code_that_a_run_did_not_load_is_not_among_what_it_ran(checkout: Path) -> None:
    """A new method, as docs/add-a-method.md has it, has no part in the download of a corpus."""
    places = [checkout / "sentfold/encoders/longest.py", checkout / "sentfold/measures/similarity.py"]
    before = places[1].read_text()
    try:
        for place in places:
            place.write_text(f"{before}# edited\n")
        assert stage(checkout, *DOWNLOAD, DVC_STAGE="download@wordsim").returncode == 0
    finally:
        places[0].unlink()
        places[1].write_text(before)
    code = ended_runs(checkout, "quick")[-1]["code"]
    assert code["edited"] == {}
    assert code["dirty"] == [str(place.relative_to(checkout)) for place in places]


def test_of_two_copies_of_a_package_that_which_python_loads_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PYTHONPATH, as modules of clusters set it, and a venv with --system-site-packages have two."""
    for folder, name in (("first", "orjson-9.0.dist-info"), ("second", "orjson-10.0-py3.11.egg-info")):
        (tmp_path / folder / name).mkdir(parents=True)
    for folders in (("first", "second"), ("second", "first")):
        with monkeypatch.context() as here:
            here.setattr(sys, "path", [str(tmp_path / folder) for folder in folders])
            assert describe_packages() == {"orjson": {"first": "9.0", "second": "10.0"}[folders[0]]}


def test_two_environments_of_the_same_packages_have_one_hash_and_an_edited_package_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hash_of(*lines: str) -> str:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        (folder / "made-1.0.dist-info").mkdir(parents=True)
        (folder / "made-1.0.dist-info/RECORD").write_text("".join(f"{line}\n" for line in lines))
        with monkeypatch.context() as here:
            here.setattr(sys, "path", [str(folder)])
            return hash_packages()

    module = "made/a.py,sha256=AAAA,7"
    by_pip = hash_of("../../../bin/made,sha256=BBBB,218", "made-1.0.dist-info/INSTALLER,sha256=CCCC,4",
                     "made-1.0.dist-info/RECORD,,", "made/__pycache__/a.cpython-311.pyc,,", module)  # fmt: skip
    by_uv = hash_of(module, "../../../bin/made,sha256=DDDD,219", "made-1.0.dist-info/INSTALLER,sha256=EEEE,2",
                    "made-1.0.dist-info/REQUESTED,sha256=FFFF,0", "made-1.0.dist-info/RECORD,,")  # fmt: skip
    assert by_pip == by_uv
    assert hash_of("made/a.py,sha256=GGGG,7", "made-1.0.dist-info/RECORD,,") != by_pip


@pytest.mark.parametrize("name", ["platform", "yaml", "typer", "polars"])
def test_a_file_in_the_checkout_does_not_stand_in_for_a_library(checkout: Path, name: str) -> None:
    stranger = checkout / f"{name}.py"
    stranger.write_text("raise SystemExit('this is no library')\n")
    try:
        done = stage(checkout, *DOWNLOAD, DVC_STAGE="download@wordsim")
    finally:
        stranger.unlink()
    assert done.returncode == 0, done.stderr
    assert ended_runs(checkout, "quick")[-1]["code"]["edited"] == {}, "it did not run"


def test_a_module_that_python_loaded_from_the_root_is_in_the_record(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(small.root))
    for name in ("aside.py", "inside/__init__.py", "unused.py"):
        (small.root / name).parent.mkdir(exist_ok=True)
        (small.root / name).write_text("A = 1\n")
    for name in ("aside", "inside"):
        monkeypatch.setitem(sys.modules, name, import_module(name))
    code = keep_loaded(small.root, describe_code(small.root, None))
    assert list(code["edited"]) == ["aside.py", "inside/__init__.py"]


def test_no_copy_of_the_library_stands_in_for_the_checkouts(tmp_path: Path) -> None:
    """`pip install .` leaves one among the libraries; PYTHONPATH can name another checkout."""
    copy = tmp_path / "copy"
    (copy / "sentfold").mkdir(parents=True)
    for name in ("__init__.py", "errors.py", "elsewhere.py"):
        (copy / "sentfold" / name).touch()
    found = "import pipeline, sentfold.errors as e; print(e.__file__); import sentfold.elsewhere"
    done = subprocess.run(
        [sys.executable, "-c", found], cwd=ROOT, env={**os.environ, "PYTHONPATH": f"{copy}{os.pathsep}{ROOT}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == str(ROOT / "sentfold/errors.py")
    assert f"no module sentfold.elsewhere in {ROOT}" in done.stderr


def first_of_each_command() -> list[Any]:
    """A suite, a stage of it, and the stage's command: the first of each command in all suites; `report` by default."""
    tree, found = WorkingTree(ROOT), dict[str, Any]()
    for suite in ("quick", "paper-mirror", "train-mirror", "layers-mirror"):
        for name in load_graph(tree, suite).stages:
            command = name.partition("@")[0]
            marks = [] if command == "report" else [pytest.mark.slow]
            if command != "plan":
                found.setdefault(command, pytest.param(suite, name, id=command, marks=marks))
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "name"), first_of_each_command())
def test_a_stage_that_runs_again_has_the_library_of_its_own_folder(suite: str, name: str, tmp_path: Path) -> None:
    """An audit of another commit would run modules of the auditor's checkout, which the stage does not declare."""
    tree = WorkingTree(ROOT)
    graph = load_graph(tree, suite)
    lay_out(tree, graph, graph.stages[name], artifacts=tmp_path / "none", folder=tmp_path)
    found = f"import sys, pipeline.__main__, pipeline.lineage.commands, pipeline.stages.{name.partition('@')[0]}\n"
    found += "pipeline.lineage.commands.slug('a')\n"
    found += "print([m.__file__ for n, m in sys.modules.items() if n.partition('.')[0] in ('sentfold', 'pipeline')])"
    done = subprocess.run([sys.executable, "-c", found], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files = [file for file in literal_eval(done.stdout.splitlines()[-1]) if file is not None]
    assert f"{tmp_path}/sentfold/suggestions.py" in files
    assert all(file.startswith(f"{tmp_path}/") for file in files)


def test_a_stage_that_runs_again_reads_its_parameters_in_their_order(tmp_path: Path) -> None:
    """`sensitivity` writes a row for each parameter that it varies, in the order of the file."""
    tree = WorkingTree(ROOT)
    graph = load_graph(tree, "paper-mirror")
    (name,) = [name for name in graph.stages if name.startswith("sensitivity@")]
    lay_out(tree, graph, graph.stages[name], artifacts=tmp_path / "none", folder=tmp_path)
    here, there = (yaml.safe_load((root / "params.yaml").read_text())["sensitivity"] for root in (ROOT, tmp_path))
    (block,) = there
    assert json.dumps(there[block]) == json.dumps(here[block]) != json.dumps(here[block], sort_keys=True)


def test_code_that_git_does_not_name_is_in_the_record_if_it_ran(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package `sentfold/files/` is imported in place of sentfold/files.py, and `git status` need not name it."""
    (small.root / ".git/info/exclude").write_text("sentfold/\n")
    places = [small.root / "sentfold/files/__init__.py", small.root / "flows/inner/a.py"]
    for place in (*places, small.root / "sentfold/files/aside.py"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"")
    git(places[1].parent, "init", "-q")
    monkeypatch.setattr(SourceLoader, "loaded", dict.fromkeys(map(os.path.realpath, places), "md5"))
    found = keep_loaded(small.root, describe_code(small.root, None))["edited"]
    empty = git(small.root, "hash-object", "--", str(places[0]))
    assert found == dict.fromkeys(("flows/inner/a.py", "sentfold/files/__init__.py"), (empty or b"").decode().strip())


@pytest.mark.slow
def test_a_users_file_among_the_tables_is_copied_before_dvc_removes_it(small: Small) -> None:
    """Git has what was committed, and a stage writes its own again. Nobody has what the user wrote since."""
    tables = small.root / "reports/quick/tables"
    (tables / "notes.md").write_text("committed")
    small.commit("Notes")
    for name in ("mine.xlsx", "written.csv", "edited.csv"):
        (tables / name).write_text(name)
    with (tables / "notes.md").open("a") as notes:
        notes.write(", and edited")
    with (tables.parent / "summary.txt").open("a") as summary:
        summary.write("A conclusion")
    sha256 = hashlib.sha256(b"written.csv").hexdigest()
    wrote = {f"reports/quick/tables/{name}": {"sha256": sha256} for name in ("written.csv", "edited.csv")}
    record = {"event": "ended", "stage": "report", "outputs": wrote}
    blocks = {"code": {"commit": None, "dirty": None}, "machine": {"host": "one"}, "packages": {}, "parameters": {}}
    whole = dict.fromkeys(("run", "command", "started", "ended", "seconds", "peak_memory_bytes"), 0) | {"exit": 0}
    append_line(runs_path(small.root, "quick"), {**whole, **record, **blocks, "by_dvc": True})
    mine = {"reports/quick/tables/mine.xlsx": {"sha256": hashlib.sha256(b"mine.xlsx").hexdigest()}}
    append_line(runs_path(small.root, "quick"), {**whole, **record, **blocks, "by_dvc": False, "outputs": mine})
    said: list[str] = []
    small.run("git", "update-index", "--assume-unchanged", "reports/quick/tables/notes.md")
    for content in ("mine.xlsx", "a later one"):
        (tables / "mine.xlsx").write_text(content)
        keep_unknown_files("dvc.yaml:report", "quick", small.root, say=said.append)
        small.run("dvc", "repro", "-q", "--force", "--single-item", "report")
        assert not (tables / "mine.xlsx").exists()
    kept = [file for file in sorted((small.root / ".sentfold/kept").rglob("*")) if file.is_file()]
    names = [file.relative_to(small.root / ".sentfold/kept").as_posix().partition("/")[2] for file in kept]
    assert names == [
        "reports/quick/summary.txt",
        *(f"reports/quick/tables/{name}" for name in ("edited.csv", "mine.xlsx", "notes.md", "mine.xlsx")),
    ]
    texts = [file.read_text() for file in kept]
    assert texts[0].endswith("A conclusion")
    assert texts[1:] == ["edited.csv", "mine.xlsx", "committed, and edited", "a later one"]
    assert len(said) == 2


def test_a_failed_run_is_recorded_with_its_error(checkout: Path) -> None:
    assert stage(checkout, "knn_graph", "no-such", "--suite", "quick").returncode == 2
    run = ended_runs(checkout, "quick")[-1]
    assert (run["stage"], run["exit"], run["command"]) == (
        None,
        2,
        "python -m pipeline knn_graph no-such --suite quick",
    )
    assert "Error" in run["error"]
    assert {run["stage"] for run in ended_runs(checkout, "quick") if run["exit"] == 0} <= {"download@wordsim", None}


RAISE = """
import sys
from sentfold.errors import RunError
from pipeline.lineage.recorder import recorded
with recorded(["download", "wordsim", "--suite", "quick"]):
    {action}
"""


@pytest.mark.parametrize(
    ("action", "code", "said"),
    [
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt"),
        ("raise RunError('a cause')", 2, "RunError: a cause"),
        ("raise RunError('https://me:secret@hub')", 2, "RunError: https://***@hub"),
        ("raise RuntimeError('a bug')", 1, "RuntimeError: a bug"),
        ("sys.exit(3)", 3, ""),
        ("pass", 0, ""),
    ],
)
def test_however_a_run_ends_its_exit_code_is_recorded_and_its_error_goes_on(
    checkout: Path, action: str, code: int, said: str
) -> None:
    command = [sys.executable, "-c", RAISE.format(action=action)]
    done = subprocess.run(command, cwd=checkout, env=environment_of(), stderr=subprocess.PIPE, check=False)
    assert (done.returncode == 0) == (code == 0)
    run = ended_runs(checkout, "quick")[-1]
    assert (run["stage"], run["exit"], run["error"].splitlines()[:1]) == (
        "download@wordsim",
        code,
        [said] if said else [],
    )


EDIT = "from pathlib import Path; path = Path('{name}'); path.write_text(path.read_text().replace('{old}', '{new}'))"


@pytest.mark.parametrize(
    ("name", "old", "new", "refused"),
    [
        ("pipeline/stages/download.py", "from __future__", "# edited\nfrom __future__", True),
        ("plan.yaml", "skip_missing: false", "skip_missing: true", True),
        ("plan.yaml", "skip_missing: false", "skip_missing: 0", True),
        ("pipeline/stages/download.py", "no such text", "", False),
        ("sentfold/manifold/smooth.py", "from __future__", "# edited\nfrom __future__", False),
    ],
)
@pytest.mark.parametrize("end", ["pass", pytest.param("sys.exit(0)", marks=pytest.mark.slow)])
def test_a_stage_whose_code_or_parameters_are_changed_while_it_runs_fails(
    checkout: Path, name: str, old: str, new: str, refused: bool, end: str
) -> None:
    before = (checkout / name).read_text()
    action = EDIT.format(name=name, old=old, new=new.replace("\n", "\\n"))
    command = [sys.executable, "-c", RAISE.format(action=f"{action}; {end}")]
    environment_ = {**environment_of(), "DVC_STAGE": "download@wordsim"}
    try:
        done = subprocess.run(command, cwd=checkout, env=environment_, capture_output=True, text=True, check=False)
    finally:
        (checkout / name).write_text(before)
    run = ended_runs(checkout, "quick")[-1]
    assert (done.returncode != 0, run["exit"]) == (refused, 2 if refused else 0), done.stderr
    assert ("RunError" in done.stderr and name in done.stderr) == refused


SWITCH = """
    from pathlib import Path; path = Path("{name}"); text = path.read_text()
    path.write_text("# edited\\n" + text)
    {action}
    path.write_text(text)
"""


@pytest.mark.parametrize(
    ("name", "action", "refused"),
    [
        ("pipeline/stages/download.py", "import pipeline.stages.download", True),
        ("pipeline/stages/download.py", "pass", False),
        ("requirements.lock", "pass", True),  # nothing says whether the stage read it in between
        ("plan.yaml", "pass", True),
    ],
)
def test_a_stage_that_loaded_code_which_was_put_back_fails(
    checkout: Path, name: str, action: str, refused: bool
) -> None:
    """As `git stash` and `git stash pop` do while a stage begins: on the disk nothing has changed at the end."""
    command = [sys.executable, "-c", RAISE.format(action=SWITCH.format(name=name, action=action).strip())]
    environment_ = {**environment_of(), "DVC_STAGE": "download@wordsim"}
    done = subprocess.run(command, cwd=checkout, env=environment_, capture_output=True, text=True, check=False)
    assert (name in done.stderr) == (done.returncode != 0) == refused, done.stderr


def test_a_stage_whose_files_are_linked_to_while_it_runs_is_recorded(checkout: Path) -> None:
    """As `cp -al` does, and programs that make copies of a disk."""
    action = 'from pathlib import Path; Path("linked.lock").hardlink_to("requirements.lock")'
    command = [sys.executable, "-c", RAISE.format(action=action)]
    environment_ = {**environment_of(), "DVC_STAGE": "download@wordsim"}
    try:
        done = subprocess.run(command, cwd=checkout, env=environment_, capture_output=True, text=True, check=False)
    finally:
        (checkout / "linked.lock").unlink(missing_ok=True)
    assert done.returncode == 0, done.stderr


def test_a_killed_run_leaves_its_start(checkout: Path) -> None:
    path = runs_path(checkout, "quick")
    before = len(read_lines(path)[0])
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline", *DOWNLOAD], cwd=checkout, env=environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait(lambda: len(read_lines(path)[0]) > before)
    process.kill()
    process.wait(timeout=60)
    (left,) = read_lines(path)[0][before:]
    assert (left["event"], left["pid"]) == ("started", process.pid)


def wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_manifest_that_cannot_be_written_is_a_warning(checkout: Path, tmp_path: Path) -> None:
    runs = checkout / ".sentfold/runs"
    runs.rename(tmp_path / "runs")
    try:
        runs.write_text("a file where a folder should be")
        done = stage(checkout, *DOWNLOAD)
    finally:
        runs.unlink()
        (tmp_path / "runs").rename(runs)
    assert done.returncode == 0
    assert "warning: this run is not in the manifest" in done.stderr
    assert "wordsim: 353 items" in done.stdout


def test_commands_that_are_no_stages_are_not_recorded(checkout: Path) -> None:
    before = runs_path(checkout, "quick").read_bytes()
    assert stage(checkout, "show").returncode == 2
    assert stage(checkout, "--help").returncode == 0
    assert runs_path(checkout, "quick").read_bytes() == before
    assert start_run(checkout, ["trace", "x"]) is None
    assert start_run(checkout, []) is None
    for suite in ("no-such", "../../elsewhere", "/tmp/elsewhere"):
        assert start_run(checkout, ["evaluate", "minilm", "--suite", suite]) is None


@pytest.mark.parametrize(
    ("arguments", "suite"),
    [
        (["embed", "a"], "quick"),
        (["x", "--suite", "paper"], "paper"),
        (["x", "--suite=p"], "p"),
        (["x", "-s", "q"], "q"),
        (["x", "-sq", "--skip-missing"], "q"),
    ],
)
def test_the_suite_is_the_one_that_the_command_line_names(arguments: list[str], suite: str) -> None:
    assert suite_of(arguments) == suite


@pytest.mark.parametrize("suite", [[], ["-s", "quick"], ["-squick"], ["--suite=quick"], ["--suite", "quick"]])
def test_a_run_by_hand_is_that_of_its_stage_however_it_names_the_suite(suite: list[str]) -> None:
    found = find_stage(Path(__file__).parents[2], "quick", ["report", *suite])
    assert found is not None and found.name == "report"


# --- the file ----------------------------------------------------------------------------------------


APPEND = """
import sys
from pathlib import Path
from pipeline.lineage.runs import append_line
for number in range(200):
    append_line(Path(sys.argv[1]), {"writer": sys.argv[2], "number": number, "load": "x" * 20_000})
"""


def test_lines_of_parallel_writers_never_mix(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"

    def write(name: str) -> None:
        subprocess.run([sys.executable, "-c", APPEND, str(path), name], env=environment_of(), check=True)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, "abcd"))
    records, torn = read_lines(path)
    assert torn == []
    for name in "abcd":
        assert [record["number"] for record in records if record["writer"] == name] == list(range(200))


def test_a_record_is_not_written_through_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine\n")
    (tmp_path / "runs.jsonl").symlink_to("victim")
    with pytest.raises(OSError, match="symbolic links"):
        append_line(tmp_path / "runs.jsonl", {"a": 1})
    assert (tmp_path / "victim").read_text() == "mine\n"


def test_a_line_that_a_kill_tore_is_reported_and_costs_no_other(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    append_line(path, {"a": 1})
    with path.open("ab") as stream:
        stream.write(b'{"event": "ended", "ru')
    append_line(path, {"b": 2})
    assert read_lines(path) == ([{"a": 1}, {"b": 2}], [2])


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=9), max_size=3), max_size=5), st.data())
def test_a_file_cut_anywhere_gives_every_whole_line_before_the_cut(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, str]], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("cut") / "lines"
    path.write_bytes(b"")
    for record in records:
        append_line(path, record)
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    whole = content[:cut].count(b"\n")
    found, torn = read_lines(path)
    # A cut just before a line's end leaves a whole record without its line break.
    assert found[:whole] == records[:whole]
    assert len(found) + len(torn) == whole + (content[:cut].rpartition(b"\n")[2] != b"")


def test_lines_of_brackets_are_reported_as_torn(tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_bytes(b"[" * 100_000 + b"\n" + b'{"a":' * 100_000 + b'\n{"a": 1}\n')
    assert read_lines(tmp_path / "runs.jsonl") == ([{"a": 1}], [1, 2])


def test_the_files_of_a_stage_that_differ_from_the_commit_are_named(small: Small) -> None:
    small.edit("code/rules.py", "RULE = 1", "RULE = 2")
    small.edit("plan.yaml", "spaces: [mini, mini-lp]", "spaces: [mini,  mini-lp]")
    (small.root / "code/new.py").write_text("NEW = 1\n")
    small.run("git", "mv", "code/texts.py", "code/words.py")
    (small.root / "notes.txt").write_text("no stage reads this")
    stages = load_stages(WorkingTree(small.root), "quick")
    said = {name: describe_code(small.root, stage) for name, stage in stages.items()}
    code = ["code/new.py", "code/rules.py", "code/texts.py", "code/words.py"]
    assert said["report"]["dirty"] == ["code/rules.py", "code/texts.py", "code/words.py", "plan.yaml"]
    assert said["embed@first-mini"]["dirty"] == list(said["embed@first-mini"]["edited"]) == code


def test_a_checkout_in_a_folder_of_another_repository_has_its_commit_and_what_differs(small: Small) -> None:
    """DVC can be in a part of a repository (`dvc init --subdir`). Git names files from the root of the repository."""
    inner = Small(small.root / "part")
    inner.root.mkdir()
    small.run("git", "mv", "code", "stage.py", "plan.yaml", "dvc.yaml", "params.yaml", "part")
    (inner.root / '"b".py').write_text("B = 1\n")
    commit = small.commit("Moved")
    assert describe_code(inner.root, None) == {"commit": commit, "dirty": [], "edited": {}}
    inner.edit("code/rules.py", "RULE = 1", "RULE = 2")
    assert list(describe_code(inner.root, None)["edited"]) == ["code/rules.py"]


def test_a_folder_without_git_has_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert describe_code(tmp_path, None) == {"commit": None, "dirty": None}


def test_a_container_has_the_name_that_whoever_started_it_gave_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("APPTAINER_CONTAINER", "SENTFOLD_CONTAINER"):
        monkeypatch.setenv(name, f"image of {name}")
        assert describe_machine()["container"] == f"image of {name}"
