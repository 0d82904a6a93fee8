"""A fold on workers that see no folder of the run: files go through a DVC remote, by a folder and by ssh."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

import psutil
import pytest

from flows.dask_fold import FoldCluster
from flows.fold_route import FOLDS
from sentfold.errors import RunError
from sentfold.files import sha256_of
from sentfold.fold.fold import fold_files
from tests.checkout import ROOT
from tests.checkout import environment as environment_of_stage
from tests.flows import ssh
from tests.flows.checkout import SOURCE, Checkout, create_checkout, until
from tests.flows.workers import APART, clone, cluster, commit
from tests.fold.corpus import contents, of_texts, sentences, write_texts

PARTITIONS = 3


@pytest.fixture
def environment(serverless: dict[str, str]) -> dict[str, str]:
    """That of `run`: nothing here runs a flow."""
    return serverless


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The folder that stands for the disk of the run's machine: 900 sentences in two files."""
    if subprocess.run([*APART, str(tmp_path), "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    folder = tmp_path / "here"
    write_texts(folder / "texts/a.parquet", sentences()[:600], group=60)
    write_texts(folder / "texts/b.parquet", sentences()[600:900], group=60)
    return folder


@pytest.fixture
def run(here: Path, environment: dict[str, str]) -> Iterator[Checkout]:
    """The checkout of the run, on that disk."""
    checkout = create_checkout(here / "checkout", environment)
    yield checkout
    checkout.end()


@pytest.fixture
def alone(here: Path) -> dict[str, bytes]:
    """What one process makes of the sentences."""
    fold_files(here / "texts", here / "alone", of_texts(rows=300))
    return contents(here / "alone")


@contextmanager
def workers_elsewhere(
    run: Checkout, here: Path, remote: str, options: Mapping[str, str]
) -> Iterator[tuple[str, list[Path], list[subprocess.Popen[bytes]]]]:
    """The address of a cluster whose two workers do not see `here`; their clones, and its processes."""
    commit(run, remote=remote)
    for name, value in options.items():
        code, printed = run.call("dvc", "remote", "modify", "--local", "shared", name, value)
        assert code == 0, printed
    clones = [clone(run, here.with_name(name)).root for name in ("one", "two")]
    for each in clones:
        if options:
            shutil.copy(run.root / ".dvc/config.local", each / ".dvc/config.local")
    with cluster(here.parent, run.environment, clones, within=(*APART, str(here))) as (address, processes):
        yield address, clones, processes


def order(here: Path, address: str) -> str:
    """As `sentfold fold --address ADDRESS --remote shared` passes it on."""
    content = {"source": str(here / "texts"), "target": str(here / "target"), "address": address, "remote": "shared"}
    return json.dumps(content | {"settings": of_texts(rows=300).model_dump()})


def receipts(here: Path, step: str) -> list[dict[str, str]]:
    """Those of the parts of a step that reached the target's folder."""
    return [json.loads(file.read_bytes()) for file in sorted((here / "target/receipts").glob(f"{step}-*.json"))]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["folder", "ssh"])
def test_workers_that_see_no_folder_of_the_run_leave_the_bytes_of_one_process(
    tmp_path: Path, here: Path, run: Checkout, alone: dict[str, bytes], kind: str
) -> None:
    (tmp_path / "store").mkdir()
    remote, options = str(tmp_path / "store"), {}
    server = nullcontext((remote, {}))
    if kind == "ssh":
        if why := ssh.missing():
            pytest.skip(why)
        installed = Path(pytest.importorskip("dvc_ssh").__file__).parents[1]
        run.environment = run.environment | {"PYTHONPATH": f"{SOURCE}:{installed}"}
        options = {"keyfile": str(tmp_path / "client"), "user": "root"}
        server = ssh.ssh_server(tmp_path)
    with server as (remote, client):
        run.environment = run.environment | client
        with workers_elsewhere(run, here, remote, options) as (address, clones, _):
            code, printed = run.call("flows", "fold", order(here, address))
            assert code == 0, printed
            assert (
                f"900 rows of 2 files, 'a.parquet' to 'b.parquet', in {PARTITIONS} partitions by 150 landmarks"
                in printed
                and "kept" not in printed
            )
            assert contents(here / "target") == alone
            for each in (run.root, *clones):
                assert (each / FOLDS).is_dir() and not list((each / FOLDS).iterdir()), "a fold cleans up"
    sent = [file for file in (tmp_path / "store").rglob("*") if file.is_file()]
    assert len(sent) == 2 + len(list((here / "target").rglob("*.parquet"))), "source and parts went through the remote"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_killed_run_a_lost_file_of_the_remote_and_a_killed_worker_cost_time_and_no_byte(
    tmp_path: Path, here: Path, run: Checkout, alone: dict[str, bytes]
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    with workers_elsewhere(run, here, str(store), {}) as (address, _, processes):
        first = run.start("flows", "fold", order(here, address))
        until(lambda: bool(receipts(here, "vectors")) or first.poll() is not None, "a part", seconds=600)
        first.kill()
        first.wait()
        kept = receipts(here, "vectors")
        assert kept and not (here / "target/vectors").is_dir(), "the part is in the remote alone"

        lost = next(file for file in store.rglob("*") if file.is_file() and sha256_of(file) == kept[0]["sha256"])
        lost.unlink()
        code, printed = run.call("flows", "fold", order(here, address))
        assert code == 2 and "a part did not arrive as it was made" in printed, printed

        third = run.start("flows", "fold", order(here, address))
        until(lambda: bool(receipts(here, "folded")) or third.poll() is not None, "a map", seconds=600)
        for process in reversed([psutil.Process(processes[1].pid), *_below(processes[1].pid)]):
            process.kill()
        printed, _ = third.communicate(timeout=900)
        assert third.returncode == 0, printed
    told = re.search(r"kept from an earlier run: (\d) vectors", printed)
    # The worker that made the lost part may get its task again. It has the part, and sends it once more.
    assert told and int(told[1]) >= PARTITIONS - 1, printed
    assert contents(here / "target") == alone


@pytest.mark.slow
def test_a_remote_without_an_address_is_refused_on_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="a remote is for the workers of a running cluster"):
        FoldCluster(workers=2, remote="shared")
    write_texts(tmp_path / "x.parquet", sentences()[:300])
    words = ["fold", "x.parquet", "y", "--encoder=wordllama", "--landmarks=150", "--remote=shared"]
    done = subprocess.run(
        [sys.executable, "-c", "from sentfold.cli.main import main; main()", *words],
        cwd=tmp_path, env=environment_of_stage(PYTHONPATH=str(ROOT)), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "--address tls://HOST:8786 --remote NAME" in done.stderr, done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["x.parquet"]


def _below(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)
