"""A whole run in one process: its answer, what it keeps of an earlier one, and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sentfold.data.tables import DataError
from sentfold.errors import ArtifactError, ParameterError
from sentfold.files import fixed_lists, sha256_of
from sentfold.fold.fold import InProcess, fold_files
from sentfold.fold.parts import LOCK, Task, hold_target, remove_partial_files
from sentfold.fold.tasks import read_landmarks
from sentfold.manifold.base.protocol import Source
from sentfold.manifold.landmark import embed
from tests.checkout import ROOT, environment
from tests.fold.corpus import (
    LANDMARKS,
    SOLVER,
    check_target,
    cloud,
    contents,
    identities,
    of_texts,
    of_vectors,
    read_folded,
    sentences,
    write_texts,
    write_vectors,
)


class StoppedError(Exception):
    """What stops a run in these tests."""


@dataclass(frozen=True)
class Stopping(InProcess):
    """An executor that stops after some tasks of one step."""

    step: str = ""
    number: int = 0

    def map(self, function: Callable[[Any], Any], items: Sequence[Any], *, label: str) -> list[Any]:
        if getattr(items[0], "step", "") == self.step:
            super().map(function, items[: self.number], label=label)
            raise StoppedError
        return super().map(function, items, label=label)


@dataclass(frozen=True)
class Backwards(InProcess):
    """An executor that takes the last task first."""

    def map(self, function: Callable[[Any], Any], items: Sequence[Any], *, label: str) -> list[Any]:
        return super().map(function, items[::-1], label=label)[::-1]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """900 vectors in three files."""
    x = cloud()
    for name, start, stop in (("a", 0, 300), ("b", 300, 310), ("c", 310, 900)):
        write_vectors(tmp_path / "source" / f"{name}.parquet", x[start:stop])
    return tmp_path / "source"


# --- the answer -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "selection"), [(37, "random"), (200, "kmeans++"), (10_000, "random")])
def test_a_fold_of_files_gives_the_coordinates_of_a_fold_of_one_array(
    tmp_path: Path, source: Path, rows: int, selection: str
) -> None:
    manifold = LANDMARKS.model_copy(update={"selection": selection, "landmarks": 60})
    summary = fold_files(source, tmp_path / "run", of_vectors(rows=rows, manifold=manifold))
    made = embed(Source(cloud(), solver=SOLVER), manifold)
    wanted, notes = made.vectors, made.notes
    np.testing.assert_array_equal(read_folded(tmp_path / "run"), wanted)
    assert (summary.rows, summary.notes) == (900, notes)


def test_texts_are_encoded_and_their_vectors_folded_row_for_row(tmp_path: Path) -> None:
    texts, settings = sentences()[:700], of_texts()
    write_texts(tmp_path / "source" / "1.parquet", texts[:250])
    write_texts(tmp_path / "source" / "2.parquet", texts[250:])
    fold_files(tmp_path / "source", tmp_path / "run", settings)
    assert settings.encoder
    vectors = settings.encoder.encode(texts).vectors
    wanted = embed(Source(vectors, solver=SOLVER), LANDMARKS).vectors
    np.testing.assert_array_equal(read_folded(tmp_path / "run"), wanted)
    write_vectors(tmp_path / "vectors.parquet", vectors)
    fold_files(tmp_path / "vectors.parquet", tmp_path / "other", of_vectors(rows=333))
    np.testing.assert_array_equal(read_folded(tmp_path / "other"), wanted)


def test_the_manifest_names_every_file_with_its_sha256_and_tells_nothing_of_time_or_place(
    tmp_path: Path, source: Path
) -> None:
    fold_files(source, tmp_path / "run", of_vectors())
    manifest = check_target(tmp_path / "run")
    listed = {entry["file"]: entry for entry in manifest["files"]}
    assert set(listed) == {str(path.relative_to(tmp_path / "run")) for path in (tmp_path / "run").rglob("*.parquet")}
    for name, entry in listed.items():
        path = tmp_path / "run" / name
        assert entry["sha256"] == sha256_of(path)
        assert (entry["rows"], entry["size"]) == (pq.read_metadata(path).num_rows, path.stat().st_size)
    assert {entry["file"]: entry["sha256"] for entry in manifest["source"]} == {
        path.name: sha256_of(path) for path in source.iterdir()
    }
    assert sum(entry["rows"] for name, entry in listed.items() if name.startswith("folded/")) == manifest["rows"] == 900
    moved = source.rename(tmp_path / "elsewhere")
    fold_files(moved, tmp_path / "again", of_vectors())
    assert contents(tmp_path / "again") == contents(tmp_path / "run")


def test_threads_and_the_order_of_the_tasks_change_no_byte(tmp_path: Path, source: Path) -> None:
    fold_files(source, tmp_path / "one", of_vectors(rows=50))
    fold_files(source, tmp_path / "backwards", of_vectors(rows=50), executor=Backwards())
    fold_files(source, tmp_path / "threads", of_vectors(rows=50), executor=InProcess(threads=2))
    assert contents(tmp_path / "one") == contents(tmp_path / "backwards") == contents(tmp_path / "threads")


# --- what an earlier run made ----------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "number"), [("landmarks", 0), ("folded", 0), ("folded", 3)])
def test_the_next_run_continues_from_the_finished_parts(tmp_path: Path, source: Path, step: str, number: int) -> None:
    whole, target = tmp_path / "whole", tmp_path / "run"
    fold_files(source, whole, of_vectors())
    with pytest.raises(StoppedError):
        fold_files(source, target, of_vectors(), executor=Stopping(step=step, number=number))
    assert not (target / "manifest.json").exists()
    before = identities(target)
    summary = fold_files(source, target, of_vectors())
    assert before.items() <= identities(target).items()
    assert sum(summary.reused.values()) == len(before) and summary.reused[step] == number
    assert contents(target) == contents(whole)


def test_a_finished_run_is_not_done_again(tmp_path: Path, source: Path) -> None:
    fold_files(source, tmp_path / "run", of_vectors())
    before, held = identities(tmp_path / "run"), contents(tmp_path / "run")
    summary = fold_files(source, tmp_path / "run", of_vectors())
    assert identities(tmp_path / "run") == before and contents(tmp_path / "run") == held
    assert summary.reused == {"landmarks": 1, "folded": 7}
    assert "kept from an earlier run" in str(summary)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def rewrite(path: Path, **changed: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **changed}))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a bit of a part": lambda run: flip(run / "folded/part-00002.parquet"),
    "a part cut short": lambda run: (run / "folded/part-00002.parquet").write_bytes(b"PAR1"),
    "a part gone": lambda run: (run / "folded/part-00002.parquet").unlink(),
    "another's part": lambda run: (run / "folded/part-00002.parquet").write_bytes(
        (run / "folded/part-00003.parquet").read_bytes()
    ),
    "a receipt gone": lambda run: (run / "receipts/folded-00002.json").unlink(),
    "a receipt of nonsense": lambda run: (run / "receipts/folded-00002.json").write_text("[1]"),
    "another's receipt": lambda run: (run / "receipts/folded-00002.json").write_bytes(
        (run / "receipts/folded-00003.json").read_bytes()
    ),
    "a pipe as a receipt": lambda run: (
        (run / "receipts/folded-00002.json").unlink(),
        os.mkfifo(run / "receipts/folded-00002.json"),
    ),
    "a device as a receipt": lambda run: (
        (run / "receipts/folded-00002.json").unlink(),
        (run / "receipts/folded-00002.json").symlink_to("/dev/zero"),
    ),
    "a receipt without notes": lambda run: rewrite(run / "receipts/landmarks-00000.json", notes={}),
    "a receipt whose rows are a text": lambda run: rewrite(run / "receipts/folded-00002.json", rows="200"),
    "the landmarks": lambda run: flip(run / "landmarks/part-00000.parquet"),
    "a stranger's part": lambda run: (run / "folded/part-00007.parquet").write_bytes(b"of an earlier plan"),
    "half a part of a killed writer": lambda run: (
        run / "folded" / ".part-00001.parquet.another-host.77.tmp"
    ).write_bytes(b"half"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_what_was_damaged_is_made_again_and_nothing_else(tmp_path: Path, source: Path, case: str) -> None:
    run = tmp_path / "run"
    fold_files(source, run, of_vectors())
    held, before = contents(run), identities(run)
    DAMAGE[case](run)
    summary = fold_files(source, run, of_vectors())
    assert contents(run) == held
    changed = {name for name, identity in identities(run).items() if identity != before[name]}
    assert len(changed) <= 1 and sum(summary.reused.values()) >= 7


def test_other_parameters_of_the_manifold_embed_no_text_again(tmp_path: Path) -> None:
    write_texts(tmp_path / "source.parquet", list(sentences()[:500]))
    settings = of_texts()
    fold_files(tmp_path / "source.parquet", tmp_path / "run", settings)
    other = LANDMARKS.model_copy(update={"neighbors": 9})
    changed = settings.model_copy(update={"manifold": other})
    summary = fold_files(tmp_path / "source.parquet", tmp_path / "run", changed)
    assert summary.reused == {"vectors": 3, "landmarks": 0, "folded": 0}
    fold_files(tmp_path / "source.parquet", tmp_path / "fresh", changed)
    assert contents(tmp_path / "run") == contents(tmp_path / "fresh")


def test_a_changed_file_of_the_source_costs_its_own_partitions_and_all_maps(tmp_path: Path) -> None:
    source, settings = tmp_path / "source", of_texts()
    write_texts(source / "a.parquet", list(sentences()[:400]))
    write_texts(source / "b.parquet", list(sentences()[400:500]))
    fold_files(source, tmp_path / "run", settings)
    write_texts(source / "b.parquet", list(sentences()[500:600]))
    summary = fold_files(source, tmp_path / "run", settings)
    assert summary.reused == {"vectors": 3, "landmarks": 0, "folded": 0}
    fold_files(source, tmp_path / "fresh", settings)
    assert contents(tmp_path / "run") == contents(tmp_path / "fresh")


def test_parts_of_a_plan_with_more_of_them_do_not_stay(tmp_path: Path, source: Path) -> None:
    fold_files(source, tmp_path / "run", of_vectors(rows=50))
    (tmp_path / "run" / "notes.txt").write_text("a user's")
    fold_files(source, tmp_path / "run", of_vectors(rows=400))
    assert (tmp_path / "run" / "notes.txt").read_text() == "a user's"
    (tmp_path / "run" / "notes.txt").unlink()
    fold_files(source, tmp_path / "fresh", of_vectors(rows=400))
    assert contents(tmp_path / "run") == contents(tmp_path / "fresh")


# --- what is refused --------------------------------------------------------------------------------


def test_a_folder_with_the_lock_and_the_manifest_of_another_program_is_left_alone(tmp_path: Path, source: Path) -> None:
    (tmp_path / "mine/vectors").mkdir(parents=True)
    for name, content in ((".lock", "pid 42"), ("manifest.json", '{"mine": 1}'), ("vectors/part-00000.parquet", "")):
        (tmp_path / "mine" / name).write_text(content)
    with pytest.raises(ParameterError, match="holds something else"):
        fold_files(source, tmp_path / "mine", of_vectors(rows=400))
    with (tmp_path / "mine/manifest.json").open("wb") as stream:
        stream.truncate(2**32)  # of holes alone
    with pytest.raises(DataError, match="holes"):
        fold_files(source, tmp_path / "mine", of_vectors(rows=400))
    assert (tmp_path / "mine/.lock").read_text() == "pid 42"
    assert (tmp_path / "mine/vectors/part-00000.parquet").is_file()


def test_a_target_that_holds_something_else_is_left_alone(tmp_path: Path, source: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    with pytest.raises(ParameterError, match=r"(?s)holds something else.*thesis\.txt"):
        fold_files(source, tmp_path / "mine", of_vectors())
    assert contents(tmp_path / "mine") == {"thesis.txt": b"all of it"}
    for place in (source, source / "within", source.parent):
        with pytest.raises(ParameterError, match="apart from the source"):
            fold_files(source, place, of_vectors())
    with pytest.raises(ParameterError, match="a file"):
        fold_files(source, write_vectors(tmp_path / "x.parquet", cloud(3)), of_vectors())


@pytest.mark.parametrize("name", [".lock", "folded", "receipts"])
def test_a_link_in_the_place_of_a_file_of_the_target_is_refused_and_what_it_names_stays(
    tmp_path: Path, source: Path, name: str
) -> None:
    """A fold from elsewhere, as an archive may hold it. The lock would be emptied, a surplus part removed."""
    target, mine = tmp_path / "run", tmp_path / "mine"
    fold_files(source, target, of_vectors())
    if name == ".lock":
        (target / name).unlink()
        mine.write_text("all of it")
    else:
        (target / name).rename(mine)
        (mine / "part-99999.parquet").write_text("all of it")
    (target / name).symlink_to(mine)
    with pytest.raises(ParameterError, match="links in the place"):
        fold_files(source, target, of_vectors())
    assert (mine if name == ".lock" else mine / "part-99999.parquet").read_text() == "all of it"


def test_two_runs_do_not_write_into_one_folder(tmp_path: Path, source: Path) -> None:
    target = tmp_path / "run"
    with hold_target(target, source=source), pytest.raises(ParameterError, match=r"(?s)another run.*process \d+ on"):
        fold_files(source, target, of_vectors())
    fold_files(source, target, of_vectors())


def test_no_other_user_can_hold_the_lock_of_a_target(tmp_path: Path, source: Path) -> None:
    """Who can read a file can hold its lock."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / LOCK).touch(0o644)
    with hold_target(tmp_path / "run", source=source):
        assert (tmp_path / "run" / LOCK).stat().st_mode & 0o777 == 0o600


def test_a_bad_vector_stops_the_run_which_continues_after_the_repair(tmp_path: Path, source: Path) -> None:
    x = cloud()[310:]
    x[200, 0] = np.nan
    write_vectors(source / "c.parquet", x)
    with pytest.raises(ArtifactError, match=r"(?s)c\.parquet.*row 200.*finished parts are kept"):
        fold_files(source, tmp_path / "run", of_vectors())
    write_vectors(source / "c.parquet", cloud()[310:])
    fold_files(source, tmp_path / "run", of_vectors())
    check_target(tmp_path / "run")


LIMITED = """
import resource, signal, sys
from pathlib import Path
from tests.fold.corpus import of_vectors
from sentfold.fold.fold import fold_files
from sentfold.errors import ArtifactError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
try:
    fold_files(Path(sys.argv[1]), Path(sys.argv[2]), of_vectors())
except ArtifactError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_disk_that_refuses_leaves_no_partial_file(tmp_path: Path, source: Path) -> None:
    arguments = [sys.executable, "-c", LIMITED, str(source), str(tmp_path / "run")]
    done = subprocess.run(arguments, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert "cannot write a file" in done.stdout and "EFBIG" in done.stdout, done.stderr
    assert not list((tmp_path / "run").rglob("*.tmp")) and not list((tmp_path / "run").rglob("*.parquet"))
    fold_files(source, tmp_path / "run", of_vectors())
    check_target(tmp_path / "run")


MEMORY = """
import resource
from pathlib import Path
import pyarrow
from sentfold.fold.fold import fold_files
from tests.fold.corpus import LANDMARKS, of_vectors
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
settings = of_vectors(rows=16_384, manifold=LANDMARKS)
fold_files(Path("small.parquet"), Path("a"), settings)
before = peak()
fold_files(Path("large.parquet"), Path("b"), settings)
print(peak() - before, pyarrow.default_memory_pool().max_memory() / 2**20)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows_even_of_one_row_group(tmp_path: Path) -> None:
    x = cloud(200_000, 128)
    write_vectors(tmp_path / "small.parquet", x[:20_000], group=20_000)
    write_vectors(tmp_path / "large.parquet", x, group=200_000)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    grown, arrow = map(float, done.stdout.split())
    # Ten times the rows, 92 MB more; allocators keep a few arenas.
    assert grown < 30
    # Arrow alone, which would hold a row group and its copies: 200 MB.
    assert arrow < 100


def test_a_receipt_tells_what_its_file_was_made_from(tmp_path: Path, source: Path) -> None:
    tasks: list[Task] = []

    class Watched(InProcess):
        def map(self, function: Callable[[Any], Any], items: Sequence[Any], *, label: str) -> list[Any]:
            tasks.extend(item for item in items if hasattr(item, "step"))
            return super().map(function, items, label=label)

    fold_files(source, tmp_path / "run", of_vectors(), executor=Watched())
    assert len(tasks) == 8
    for task in tasks:
        receipt = json.loads((tmp_path / f"run/receipts/{task.step}-{task.number:05d}.json").read_text())
        assert receipt["record"] == json.loads(json.dumps(task.record()))
        for entry in receipt["record"]["inputs"]:
            path = source / entry["file"] if "/" not in entry["file"] else tmp_path / "run" / entry["file"]
            assert entry["sha256"] == sha256_of(path)


def test_temporary_files_behind_a_link_in_the_target_stay(tmp_path: Path) -> None:
    """A fold from elsewhere, as an archive may hold it: any linked folder was looked into."""
    target, name = tmp_path / "run", ".part-00001.parquet.host.77.tmp"
    for folder in (target / "folded", tmp_path / "mine", target / "other"):
        folder.mkdir(parents=True)
        (folder / name).write_bytes(b"half")
    (target / "link").symlink_to(tmp_path / "mine")
    (target / "receipts").symlink_to(tmp_path / "mine")
    remove_partial_files(target)
    assert [path.parent.name for path in tmp_path.rglob(name)] == ["mine", "other"]


def test_forged_landmarks_are_refused_before_they_fill_the_memory(tmp_path: Path) -> None:
    """A receipt with the sha256 of the forged file made them pass for those of an earlier run."""
    path, x = tmp_path / "part-00000.parquet", np.ones((20, 3), dtype=np.float32)
    good = {"row": pa.array(range(20)), "vector": fixed_lists(x), "coordinates": fixed_lists(x.astype(np.float64))}
    pq.write_table(pa.table(good), path)
    assert len(read_landmarks(str(path), "good", LANDMARKS).rows) == 20
    nan = np.where(np.eye(20, 3, dtype=bool), np.float32(np.nan), x)
    wide = pa.nulls(20, pa.list_(pa.float32(), 2**20))  # a list that is null takes the memory of a whole one
    texts = pa.array([["a"]] * 20, pa.list_(pa.string(), 1))
    forged = [{**good, "vector": column} for column in (wide, texts, fixed_lists(nan), pa.array([[1.0]] * 20))]
    forged += [{**good, "row": pa.array(["a"] * 20)}, {"row": good["row"]}]
    forged += [{name: column.slice(0, LANDMARKS.neighbors) for name, column in good.items()}]
    for number, columns in enumerate(forged):
        pq.write_table(pa.table(columns), path)
        with pytest.raises(ArtifactError, match="the landmarks, sha256"):
            read_landmarks(str(path), str(number), LANDMARKS)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ArtifactError, match="not a regular file"):
        read_landmarks(str(path), "pipe", LANDMARKS)


def test_parts_of_another_width_with_a_right_receipt_are_refused(tmp_path: Path) -> None:
    """Compiled loops took the width of the landmarks for that of the vectors."""
    source, run = write_vectors(tmp_path / "source.parquet", cloud(300)), tmp_path / "run"
    fold_files(source, run, of_vectors())
    part = run / "landmarks/part-00000.parquet"
    table = pq.read_table(part)
    narrow = fixed_lists(np.ones((len(table), 5), dtype=np.float32))
    pq.write_table(table.set_column(1, "vector", narrow), part)
    rewrite(run / "receipts/landmarks-00000.json", sha256=sha256_of(part), size=part.stat().st_size)
    with pytest.raises(ArtifactError, match="landmarks of 12 dimensions"):
        fold_files(source, run, of_vectors())
