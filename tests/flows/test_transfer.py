"""Artifacts through a DVC remote: by a folder, and by ssh to a server on loopback."""

from __future__ import annotations

import hashlib
import os
import shutil
from copy import deepcopy
from pathlib import Path
from typing import cast

import pytest
from distributed import Client
from dvc.utils.serialize import dump_yaml

from flows.clone import Parcel, basis_of, make_in_clone, require_same
from flows.dask_fold import DaskExecutor
from flows.dask_route import require_commit
from flows.fold_route import FoldProject, RemoteExecutor
from flows.graph import changed_stages
from flows.lock_entries import hash_in, read_entry, split_entries, write_entries
from flows.profile import Retries, Retry, Transfer
from flows.recovery import recover
from flows.run_stage import Order, log_file, run_stage
from flows.transfer import LOG, Remote
from sentfold.errors import RunError
from sentfold.fold.parts import Part
from tests.flows.checkout import SOURCE, Checkout
from tests.flows.ssh import missing, ssh_server
from tests.flows.workers import clone, commit

SHARED = Remote("shared", Transfer(attempts=1, delay=0, seconds=300))


@pytest.fixture
def environment(serverless: dict[str, str]) -> dict[str, str]:
    """That of `finished`: nothing here runs a flow."""
    return serverless


def outputs_of(checkout: Checkout) -> dict[str, bytes]:
    folder = checkout.root / "data/quick"
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "ssh"])
def test_what_one_checkout_pushes_another_pulls_and_a_file_of_the_remote_that_was_cut_short_reaches_nobody(
    tmp_path: Path, finished: Checkout, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "folder":
        (tmp_path / "store").mkdir()
        exchange(finished, tmp_path, str(tmp_path / "store"), {})
        return
    if why := missing():
        pytest.skip(why)
    installed = Path(pytest.importorskip("dvc_ssh").__file__).parents[1]
    with ssh_server(tmp_path) as (address, client):
        for name, value in {**client, "PYTHONPATH": f"{SOURCE}:{installed}"}.items():
            monkeypatch.setenv(name, value)
        options = {"keyfile": str(tmp_path / "client"), "user": "root"}
        exchange(finished, tmp_path, address, options)


def exchange(finished: Checkout, folder: Path, address: str, options: dict[str, str]) -> None:
    """Push, pull in a clone, cut a file of the remote short, pull again."""
    finished.environment = dict(os.environ)
    for name, value in options.items():
        code, printed = finished.call("dvc", "remote", "add", "--force", "shared", address)
        code, printed = finished.call("dvc", "remote", "modify", "--local", "shared", name, value)
        assert code == 0, printed
    commit(finished, remote=address)
    other = clone(finished, folder / "other")
    if options:
        shutil.copy(finished.root / ".dvc/config.local", other.root / ".dvc/config.local")
    SHARED.require_verified(finished.root)
    SHARED.push(["dvc.yaml"], finished.root)
    SHARED.pull(["dvc.yaml"], other.root)
    assert outputs_of(other) == outputs_of(finished)

    entry = read_entry("evaluate", split_entries(other.root / "dvc.lock")["evaluate"])
    md5 = str(hash_in(entry, "data/quick/scores"))
    sent = folder / "store/files/md5" / md5[:2] / md5[2:]
    sent.chmod(0o644)
    sent.write_bytes(sent.read_bytes()[:-1])
    shutil.rmtree(other.root / ".dvc/cache")
    (other.root / "data/quick/scores").unlink()
    with pytest.raises(RunError, match="`dvc pull` failed, 1 times"):
        SHARED.pull(["evaluate"], other.root)
    assert not (other.root / "data/quick/scores").exists()
    assert sent.exists() == bool(options), "DVC removes what does not have its hash from a folder, and not by ssh"
    if options:
        SHARED.push(["evaluate"], finished.root)
        assert len(sent.read_bytes()) == len((finished.root / "data/quick/scores").read_bytes()) - 1
        sent.unlink()
    SHARED.push(["evaluate"], finished.root)
    SHARED.pull(["evaluate"], other.root)
    assert outputs_of(other) == outputs_of(finished)


@pytest.mark.slow
def test_a_remote_that_dvc_believes_unseen_is_refused(finished: Checkout) -> None:
    with pytest.raises(RunError, match="the remote is not set up") as error:
        SHARED.require_verified(finished.root)
    assert "dvc remote modify shared verify true" in error.value.remedy


def test_the_entries_of_a_lock_are_its_text_and_travel_one_by_one(tmp_path: Path) -> None:
    project = SOURCE / "dvc.lock"
    entries = split_entries(project)
    write_entries(tmp_path / "dvc.lock", entries.values())
    assert (tmp_path / "dvc.lock").read_bytes() == project.read_bytes()
    name = "download@lee"
    assert hash_in(read_entry(name, entries[name]), "data/quick/corpora/lee") in entries[name]
    write_entries(tmp_path / "dvc.lock", [])
    assert split_entries(tmp_path / "dvc.lock") == {}


def test_a_stage_with_a_long_name_keeps_its_entry(tmp_path: Path) -> None:
    """DVC writes a name of more than 128 letters in another way."""
    lock, name = tmp_path / "dvc.lock", f"evaluate@{'-'.join(['space'] * 30)}"
    stage = {"cmd": "python -m pipeline evaluate", "outs": [{"path": "data/quick/x", "md5": "0" * 32}]}
    dump_yaml(lock, {"schema": "2.0", "stages": {each: deepcopy(stage) for each in ("first", name, "last")}})
    before, entries = lock.read_bytes(), split_entries(lock)
    assert list(entries) == ["first", name, "last"]
    assert read_entry(name, entries[name]) == stage
    write_entries(lock, entries.values())
    assert lock.read_bytes() == before
    lock.write_bytes(before[:-20])
    recover(tmp_path)
    assert list(split_entries(lock)) == ["first", name]


@pytest.mark.parametrize(
    "text", ["", "  report:\n", "report: {cmd: x}\n", "  other:\n    cmd: x\n", "  report:\n    a: [\n"]
)
def test_what_a_worker_returns_is_an_entry_of_the_stage_or_refused(text: str) -> None:
    with pytest.raises(RunError, match="no entry"):
        read_entry("report", text)
    two = "  report:\n    cmd: x\n  other:\n    cmd: y\n"
    with pytest.raises(RunError, match="no entry"):
        read_entry("report", two)
    assert read_entry("report", "  report:\n    cmd: x\n") == {"cmd": "x"}


@pytest.mark.slow
def test_a_checkout_is_committed_when_nothing_but_reports_and_locks_differs(finished: Checkout) -> None:
    with pytest.raises(RunError, match="no commit"):
        require_commit(basis_of(finished.root))
    commit(finished, remote="/nowhere")
    (finished.root / "reports/new.txt").write_text("new")
    (finished.root / "dvc.lock").write_text("")
    require_commit(basis_of(finished.root))
    (finished.root / "stranger.py").touch()
    with pytest.raises(RunError, match="not committed") as error:
        require_commit(basis_of(finished.root))
    assert error.value.where == "stranger.py"
    with pytest.raises(RunError, match="edited files"):
        require_same(basis_of(finished.root), basis_of(clone(finished, finished.root.with_name("other")).root))


def test_a_link_in_place_of_a_log_is_not_written_through(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("kept")
    once = Retries(contention=Retry(attempts=1, delay=0))
    order = Order("quick", Path("dvc.yaml"), tmp_path, "sentfold run", once)
    for log in (tmp_path / LOG, log_file("report", root=tmp_path)):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.symlink_to(other)
    with pytest.raises(RunError, match="`dvc pull` failed"):
        SHARED.pull(["dvc.yaml"], tmp_path)
    with pytest.raises(RunError, match="the stage 'report' failed"):
        run_stage("report", order)
    assert other.read_text() == "kept"
    assert (tmp_path / LOG).stat().st_size and log_file("report", root=tmp_path).stat().st_size


@pytest.mark.slow
def test_a_worker_whose_clone_believes_the_remote_unseen_makes_nothing(
    finished: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run compares its own configuration; that of a worker's clone decides what the worker believes."""
    commit(finished, remote="/nowhere")
    (finished.root / ".dvc/config.local").write_text("['remote \"shared\"']\n    verify = false\n")
    monkeypatch.chdir(finished.root)
    order = Order("quick", Path("dvc.yaml"), finished.root, "sentfold run")
    parcel = Parcel("report", order, basis_of(finished.root), SHARED, {}, (), {}, (), ())
    with (
        Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client,
        pytest.raises(RunError, match="the remote is not set up"),
    ):
        client.submit(make_in_clone, parcel, "a").result()


@pytest.mark.slow
def test_what_a_remote_exchanged_is_no_input_of_a_fold(tmp_path: Path) -> None:
    """DVC compares nothing here, as in a worker's checkout whose configuration was not set up."""
    (tmp_path / "store").mkdir()
    (tmp_path / "checkout/.dvc").mkdir(parents=True)
    (tmp_path / "checkout/.dvc/config").write_text(f"['remote \"shared\"']\n    url = {tmp_path}/store\n")
    there, here = (FoldProject.open(tmp_path / name, tmp_path / "checkout", SHARED) for name in ("there", "here"))
    name = f"{hashlib.sha256(b'texts').hexdigest()}.parquet"
    (there.folder / name).write_bytes(b"texts")
    there.add([name])
    there.push([name])
    (sent,) = (file for file in (tmp_path / "store").rglob("*") if file.is_file())
    sent.chmod(0o644)
    sent.write_bytes(b"others")
    sent.chmod(0o444)  # DVC believes a file that cannot be written
    pointers = {name: there.pointer(name).read_text()}
    with pytest.raises(RunError, match="a file did not arrive as it was sent"):
        here.pull(pointers)
    assert not (here.folder / name).exists()


@pytest.mark.parametrize(
    "kind", ["push", *(pytest.param(name, marks=pytest.mark.slow) for name in ("status", "repro", "fold"))]
)
def test_every_dvc_that_is_started_in_a_plain_clone_keeps_its_pickles_in_the_clone(
    finished: Checkout, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """In DVC's own place, /var/tmp/dvc, another user could exchange them."""
    root = finished.root
    for name in ("DVC_GLOBAL_CONFIG_DIR", "DVC_SYSTEM_CONFIG_DIR"):
        monkeypatch.setenv(name, str(root / "nothing"))
    monkeypatch.delenv("DVC_SITE_CACHE_DIR", raising=False)
    match kind:
        case "push":
            with pytest.raises(RunError, match="`dvc push` failed"):  # there is no such remote
                SHARED.push(["report"], root)
        case "status":
            assert not changed_stages(Path("dvc.yaml"), root=root)
        case "repro":
            run_stage("report", Order("quick", Path("dvc.yaml"), root, "sentfold run"))
        case "fold":
            project = FoldProject.open(root / "fold", root, SHARED)
            (root := project.folder).joinpath("texts").touch()
            project.add(["texts"])
            assert root.stat().st_mode & 0o777 == 0o700, "the settings of DVC can hold a password"
    assert list((root / ".dvc/tmp/site").rglob("cache.db"))


@pytest.fixture
def project(tmp_path: Path) -> FoldProject:
    """Of a fold, in a checkout whose remote is a folder."""
    (tmp_path / "store").mkdir()
    (tmp_path / "checkout/.dvc").mkdir(parents=True)
    (tmp_path / "checkout/.dvc/config").write_text(f"['remote \"shared\"']\n    url = {tmp_path}/store\n")
    return FoldProject.open(tmp_path / "fold", tmp_path / "checkout", SHARED)


@pytest.mark.slow
def test_all_parts_that_a_remote_lost_are_made_again_after_one_error(project: FoldProject, tmp_path: Path) -> None:
    parts = []
    for number, content in enumerate((b"first", b"second", b"third")):
        sha256 = hashlib.sha256(content).hexdigest()
        parts.append(Part(f"vectors/part-{number}.parquet", 1, len(content), sha256, {}))
        (project.folder / f"{sha256}.parquet").write_bytes(content)
    names = [f"{part.sha256}.parquet" for part in parts]
    project.add(names)
    project.push(names[1:2])
    shutil.rmtree(project.folder / ".dvc/cache")
    for name in names:
        (project.folder / name).unlink()
    executor = RemoteExecutor(DaskExecutor(cast(Client, None), None), project, "fold")
    (tmp_path / "target/vectors").mkdir(parents=True)
    with pytest.raises(RunError, match="a part did not arrive") as error:
        executor._fetch(parts, tmp_path / "target")
    assert error.value.where == "vectors/part-0.parquet, and 1 more"
    assert [project.pointer(name).is_file() for name in names] == [False, True, False]
    assert [file.name for file in (tmp_path / "target/vectors").iterdir()] == ["part-1.parquet"]


@pytest.mark.slow
def test_a_fold_that_goes_on_has_the_settings_that_the_checkout_has_now(project: FoldProject, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    settings = tmp_path / "checkout/.dvc/config"
    settings.write_text(settings.read_text().replace("/store", "/other"))
    again = FoldProject.open(project.folder, tmp_path / "checkout", SHARED)
    name = f"{hashlib.sha256(b'texts').hexdigest()}.parquet"
    (again.folder / name).write_bytes(b"texts")
    again.add([name])
    again.push([name])
    assert [file.read_bytes() for file in (tmp_path / "other").rglob("*") if file.is_file()] == [b"texts"]
