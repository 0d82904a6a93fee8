"""A whole run in one process: its answer, what it keeps of an earlier one, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from pipeline.artifacts import sha256_of
from pipeline.errors import ArtifactError, ParameterError
from pipeline.manifold.landmarks_io import map_parquet
from pipeline.partitions.files import hold_target
from pipeline.partitions.fold import Mapper, check_target, fold_partitions, map_here
from pipeline.partitions.tasks import Task
from tests.checkout import ROOT, environment
from tests.partitions.corpus import (
    LANDMARKS,
    SOLVER,
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


def stopping_after(step: str, number: int) -> Mapper:
    """A mapper that is stopped after some tasks of one step."""

    def mapper(function: Callable[[Any], Any], items: Sequence[Any], *, label: str) -> list[Any]:
        if getattr(items[0], "step", "") == step:
            map_here(function, items[:number], label=label)
            raise StoppedError
        return map_here(function, items, label=label)

    return mapper


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """900 vectors in three files."""
    x = cloud()
    for name, start, stop in (("a", 0, 300), ("b", 300, 310), ("c", 310, 900)):
        write_vectors(tmp_path / "source" / f"{name}.parquet", x[start:stop])
    return tmp_path / "source"


# --- the answer -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "selection"), [(37, "random"), (200, "kmeans++"), (10_000, "random")])
def test_partitions_give_the_numbers_of_the_route_that_has_none(
    tmp_path: Path, source: Path, rows: int, selection: str
) -> None:
    landmarks = LANDMARKS.model_copy(update={"selection": selection, "landmarks": 60})
    record = map_parquet(source, tmp_path / "whole.parquet", landmarks, SOLVER)
    summary = fold_partitions(source, tmp_path / "run", of_vectors(rows=rows, landmarks=landmarks))
    whole = pq.read_table(tmp_path / "whole.parquet").column("vector").combine_chunks()
    np.testing.assert_array_equal(read_folded(tmp_path / "run").ravel(), np.asarray(whole.flatten()))
    assert (summary.rows, summary.notes) == (900, record["notes"])


def test_texts_are_embedded_and_their_vectors_folded_row_for_row(tmp_path: Path) -> None:
    texts, request = sentences()[:700], of_texts()
    write_texts(tmp_path / "source" / "1.parquet", texts[:250])
    write_texts(tmp_path / "source" / "2.parquet", texts[250:])
    fold_partitions(tmp_path / "source", tmp_path / "run", request)
    assert request.encoder
    vectors = write_vectors(tmp_path / "vectors.parquet", request.encoder.encode(texts)[0])
    map_parquet(vectors, tmp_path / "whole.parquet", LANDMARKS, SOLVER)
    whole = pq.read_table(tmp_path / "whole.parquet").column("vector").combine_chunks()
    np.testing.assert_array_equal(read_folded(tmp_path / "run").ravel(), np.asarray(whole.flatten()))


def test_the_manifest_names_every_file_with_its_sha256_and_tells_nothing_of_time_or_place(
    tmp_path: Path, source: Path
) -> None:
    fold_partitions(source, tmp_path / "run", of_vectors())
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
    fold_partitions(moved, tmp_path / "again", of_vectors())
    assert contents(tmp_path / "again") == contents(tmp_path / "run")


def test_whoever_takes_the_tasks_in_another_order_leaves_the_same_bytes(tmp_path: Path, source: Path) -> None:
    def backwards(function: Callable[[Any], Any], items: Sequence[Any], *, label: str) -> list[Any]:
        return map_here(function, items[::-1], label=label)[::-1]

    fold_partitions(source, tmp_path / "one", of_vectors(rows=50))
    fold_partitions(source, tmp_path / "other", of_vectors(rows=50), mapper=backwards)
    assert contents(tmp_path / "one") == contents(tmp_path / "other")


# --- what stands ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "number"), [("drawn", 2), ("landmarks", 0), ("folded", 0), ("folded", 3)])
def test_a_stopped_run_goes_on_from_what_stands(tmp_path: Path, source: Path, step: str, number: int) -> None:
    whole, target = tmp_path / "whole", tmp_path / "run"
    fold_partitions(source, whole, of_vectors())
    with pytest.raises(StoppedError):
        fold_partitions(source, target, of_vectors(), mapper=stopping_after(step, number))
    with pytest.raises(ArtifactError, match="not finished"):
        check_target(target)
    before = identities(target)
    summary = fold_partitions(source, target, of_vectors())
    assert before.items() <= identities(target).items()
    assert sum(summary.reused.values()) == len(before) and summary.reused[step] == number
    assert contents(target) == contents(whole)


def test_a_finished_run_is_not_done_again(tmp_path: Path, source: Path) -> None:
    fold_partitions(source, tmp_path / "run", of_vectors())
    before, held = identities(tmp_path / "run"), contents(tmp_path / "run")
    summary = fold_partitions(source, tmp_path / "run", of_vectors())
    assert identities(tmp_path / "run") == before and contents(tmp_path / "run") == held
    assert summary.reused == {"drawn": 7, "landmarks": 1, "folded": 7}
    assert "stood already" in str(summary)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


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
    "the landmarks": lambda run: flip(run / "landmarks/part-00000.parquet"),
    "a stranger's part": lambda run: (run / "folded/part-00007.parquet").write_bytes(b"of an earlier plan"),
    "half a part of a killed writer": lambda run: (run / "folded" / f".part.{'0' * 32}.tmp").write_bytes(b"half"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_what_was_damaged_is_made_again_and_nothing_else(tmp_path: Path, source: Path, case: str) -> None:
    run = tmp_path / "run"
    fold_partitions(source, run, of_vectors())
    held, before = contents(run), identities(run)
    DAMAGE[case](run)
    summary = fold_partitions(source, run, of_vectors())
    assert contents(run) == held
    changed = {name for name, identity in identities(run).items() if identity != before[name]}
    assert len(changed) <= 1 and sum(summary.reused.values()) >= 14


@pytest.mark.parametrize("name", ["folded/part-00001.parquet", "drawn/part-00000.parquet"])
def test_a_check_of_the_target_names_the_part_that_is_wrong(tmp_path: Path, source: Path, name: str) -> None:
    fold_partitions(source, tmp_path / "run", of_vectors())
    flip(tmp_path / "run" / name)
    with pytest.raises(ArtifactError, match=f"(?s){name}.*make"):
        check_target(tmp_path / "run")


def test_other_parameters_of_the_manifold_embed_no_text_again(tmp_path: Path) -> None:
    write_texts(tmp_path / "source.parquet", list(sentences()[:500]))
    request = of_texts()
    fold_partitions(tmp_path / "source.parquet", tmp_path / "run", request)
    other = LANDMARKS.model_copy(update={"neighbors": 9})
    changed = type(request)(request.encoder, other, SOLVER, request.rows)
    summary = fold_partitions(tmp_path / "source.parquet", tmp_path / "run", changed)
    assert summary.reused == {"vectors": 3, "drawn": 3, "landmarks": 0, "folded": 0}
    fold_partitions(tmp_path / "source.parquet", tmp_path / "fresh", changed)
    assert contents(tmp_path / "run") == contents(tmp_path / "fresh")


def test_a_changed_file_of_the_source_costs_its_own_partitions_and_all_maps(tmp_path: Path) -> None:
    source, request = tmp_path / "source", of_texts()
    write_texts(source / "a.parquet", list(sentences()[:400]))
    write_texts(source / "b.parquet", list(sentences()[400:500]))
    fold_partitions(source, tmp_path / "run", request)
    write_texts(source / "b.parquet", list(sentences()[500:600]))
    summary = fold_partitions(source, tmp_path / "run", request)
    assert summary.reused == {"vectors": 3, "drawn": 3, "landmarks": 0, "folded": 0}
    fold_partitions(source, tmp_path / "fresh", request)
    assert contents(tmp_path / "run") == contents(tmp_path / "fresh")


def test_parts_of_a_plan_with_more_of_them_do_not_stay(tmp_path: Path, source: Path) -> None:
    fold_partitions(source, tmp_path / "run", of_vectors(rows=50))
    (tmp_path / "run" / "notes.txt").write_text("a user's")
    fold_partitions(source, tmp_path / "run", of_vectors(rows=400))
    assert (tmp_path / "run" / "notes.txt").read_text() == "a user's"
    (tmp_path / "run" / "notes.txt").unlink()
    fold_partitions(source, tmp_path / "fresh", of_vectors(rows=400))
    assert contents(tmp_path / "run") == contents(tmp_path / "fresh")


# --- what is refused --------------------------------------------------------------------------------


def test_a_target_that_holds_something_else_is_left_alone(tmp_path: Path, source: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    with pytest.raises(ParameterError, match=r"(?s)holds something else.*thesis\.txt"):
        fold_partitions(source, tmp_path / "mine", of_vectors())
    assert contents(tmp_path / "mine") == {"thesis.txt": b"all of it"}
    for place in (source, source / "within", source.parent):
        with pytest.raises(ParameterError, match="apart from the source"):
            fold_partitions(source, place, of_vectors())
    with pytest.raises(ParameterError, match="a file"):
        fold_partitions(source, write_vectors(tmp_path / "x.parquet", cloud(3)), of_vectors())


def test_two_runs_do_not_write_into_one_folder(tmp_path: Path, source: Path) -> None:
    target = tmp_path / "run"
    with hold_target(target, source=source), pytest.raises(ParameterError, match=r"(?s)another run.*process \d+ on"):
        fold_partitions(source, target, of_vectors())
    fold_partitions(source, target, of_vectors())


def test_a_bad_vector_in_one_partition_stops_the_run_and_keeps_the_other_parts(tmp_path: Path, source: Path) -> None:
    x = cloud()[310:]
    x[200, 0] = np.nan
    write_vectors(source / "c.parquet", x)
    with pytest.raises(ArtifactError, match=r"(?s)c\.parquet.*row 200.*finished parts are kept"):
        fold_partitions(source, tmp_path / "run", of_vectors())
    assert len(identities(tmp_path / "run")) == 4


LIMITED = """
import resource, signal, sys
from pathlib import Path
from tests.partitions.corpus import of_vectors
from pipeline.partitions.fold import fold_partitions
from pipeline.errors import ArtifactError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
try:
    fold_partitions(Path(sys.argv[1]), Path(sys.argv[2]), of_vectors())
except ArtifactError as error:
    print(error)
"""


def test_a_disk_that_refuses_leaves_no_partial_file(tmp_path: Path, source: Path) -> None:
    arguments = [sys.executable, "-c", LIMITED, str(source), str(tmp_path / "run")]
    done = subprocess.run(arguments, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert "cannot write a file of a partitioned dataset" in done.stdout and "EFBIG" in done.stdout, done.stderr
    assert not list((tmp_path / "run").rglob("*.tmp")) and not list((tmp_path / "run").rglob("*.parquet"))
    fold_partitions(source, tmp_path / "run", of_vectors())
    check_target(tmp_path / "run")


def test_a_receipt_tells_what_its_file_was_made_from(tmp_path: Path, source: Path) -> None:
    tasks: list[Task] = []

    def watched(function: Callable[[Any], Any], items: Sequence[Any], *, label: str) -> list[Any]:
        tasks.extend(item for item in items if hasattr(item, "step"))
        return map_here(function, items, label=label)

    fold_partitions(source, tmp_path / "run", of_vectors(), mapper=watched)
    for task in tasks:
        receipt = json.loads((tmp_path / f"run/receipts/{task.step}-{task.number:05d}.json").read_text())
        assert receipt["record"] == json.loads(json.dumps(task.record()))
        for entry in receipt["record"]["inputs"]:
            path = source / entry["file"] if "/" not in entry["file"] else tmp_path / "run" / entry["file"]
            assert entry["sha256"] == sha256_of(path)
