"""Artifacts: the same bytes for the same content, and no wrong content without an error."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pipeline.base.artifacts import (
    absence,
    fixed_lists,
    kind_of,
    read_json,
    read_lists,
    read_record,
    read_rows,
    read_table,
    read_vectors,
    space_path,
    write_absence,
    write_table,
    write_vectors,
)
from sentfold.errors import ArtifactError
from sentfold.files import sha256_of, write_bytes_atomically, write_json

ROOT = Path(__file__).parents[1]
FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
MATRICES = st.tuples(st.integers(0, 40), st.integers(1, 9)).flatmap(
    lambda shape: arrays(np.float32, shape, elements=FINITE)
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / space_path("quick", "minilm", "lee")


def write_small(path: Path, rows: int = 20, columns: int = 3) -> np.ndarray:
    vectors = np.random.default_rng(rows).standard_normal((rows, columns), dtype=np.float32)
    write_vectors(path, vectors, parameters={"seed": rows}, notes={"sentences": rows})
    return vectors


def leftovers(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.parent.iterdir() if entry != path)


def run_python(code: str, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **settings},
        timeout=60,
        check=False,
    )


# --- what is written is what is read ----------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(vectors=MATRICES)
def test_vectors_come_back_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, vectors: np.ndarray) -> None:
    path = tmp_path_factory.mktemp("round") / "spaces" / "a" / "b.parquet"
    write_vectors(path, vectors, parameters={})
    back = read_vectors(path)
    assert back.dtype == np.float32
    assert back.shape == vectors.shape
    assert back.tobytes() == vectors.tobytes()


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.text(st.characters(codec="utf-8"), max_size=30), max_size=30),
    notes=st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=8), st.integers(0, 2**53), max_size=4),
)
def test_tables_and_their_notes_come_back(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], notes: dict[str, int]
) -> None:
    path = tmp_path_factory.mktemp("round") / "corpora" / "a" / "sentences.parquet"
    table = pa.table({"text": pa.array(texts, pa.string()), "row": pa.array(range(len(texts)), pa.int32())})
    write_table(path, table, kind="sentences", parameters={"a": [1, 2.5]}, notes=notes)
    assert read_table(path, kind="sentences", columns={"text": pa.string(), "row": pa.int32()}).equals(table)
    record = read_record(path, kind="sentences")
    assert (record["notes"], record["parameters"], record["rows"]) == (notes, {"a": [1, 2.5]}, len(texts))


def test_a_fixed_k_graph_comes_back_with_its_shape_and_type(place: Path) -> None:
    graph = np.arange(5 * 4, dtype=np.int32).reshape(5, 4)
    write_table(place, pa.table({"neighbor": fixed_lists(graph)}), kind="graph", parameters={})
    table = read_table(place, kind="graph", columns={"neighbor": pa.list_(pa.int32(), 4)})
    back = read_lists(table, "neighbor", path=place)
    assert back.dtype == np.int32
    np.testing.assert_array_equal(back, graph)


def test_an_artifact_names_the_bytes_it_was_made_from(place: Path, tmp_path: Path) -> None:
    write_small(place)
    derived = tmp_path / space_path("quick", "minilm-pca", "lee")
    write_vectors(derived, read_vectors(place), parameters={}, inputs=[place])
    assert read_record(derived, kind="vectors")["inputs"] == {str(place): sha256_of(place)}


def test_an_absence_gives_its_reason_and_refuses_to_be_read_as_rows(place: Path) -> None:
    write_absence(place, "the mirror lacks 'lee/all.parquet'", kind="vectors")
    assert absence(place, kind="vectors") == "the mirror lacks 'lee/all.parquet'"
    with pytest.raises(ArtifactError, match="the mirror lacks 'lee"):
        read_vectors(place)


# --- the same content is the same bytes -------------------------------------------------------------


def chunked(table: pa.Table, sizes: list[int]) -> pa.Table:
    starts = np.cumsum([0, *sizes])
    return pa.concat_tables([table.slice(start, size) for start, size in zip(starts, sizes, strict=False)])


@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(0, 500), max_size=8))
def test_the_chunk_layout_in_memory_leaves_no_trace(tmp_path_factory: pytest.TempPathFactory, cuts: list[int]) -> None:
    vectors = np.random.default_rng(0).standard_normal((500, 4), dtype=np.float32)
    table = pa.table({"vector": fixed_lists(vectors), "text": pa.array([f"text {row}" for row in range(500)])})
    edges = [0, *sorted(cuts), 500]
    split = chunked(table, [b - a for a, b in pairwise(edges)])
    assert split.equals(table)
    folder = tmp_path_factory.mktemp("chunks")
    for name, content in (("one", table), ("other", split)):
        write_table(folder / name / "s" / "spaces" / "a" / "b.parquet", content, kind="vectors", parameters={})
    assert sha256_of(folder / "one/s/spaces/a/b.parquet") == sha256_of(folder / "other/s/spaces/a/b.parquet")


WRITE_MANY = """
import sys
from pathlib import Path
import numpy as np, pyarrow as pa
from pipeline.base.artifacts import read_vectors, write_vectors
pa.set_cpu_count(int(sys.argv[2]))
x = np.random.default_rng(7).standard_normal((70_000, 8), dtype=np.float32)
write_vectors(Path(sys.argv[1]), x, parameters={"b": 2, "a": 1}, notes={"z": "é", "y": 0.1})
assert (read_vectors(Path(sys.argv[1])) == x).all()
"""


@pytest.mark.slow
def test_the_bytes_depend_on_no_thread_count_and_no_process(tmp_path: Path) -> None:
    digests = set()
    for threads, seed in (("1", "0"), ("2", "1"), ("8", "2")):
        path = tmp_path / threads / "quick" / "spaces" / "minilm" / "lee.parquet"
        done = run_python(WRITE_MANY, str(path), threads, PYTHONHASHSEED=seed)
        assert done.returncode == 0, done.stderr
        digests.add(sha256_of(path))
    assert len(digests) == 1
    # More than one row group, so that there was something to write in parallel.
    assert pq.read_metadata(path).num_row_groups == 3


def test_the_order_of_parameters_leaves_no_trace(tmp_path: Path) -> None:
    one, other = (tmp_path / name / "quick" / "spaces" / "a" / "b.parquet" for name in ("one", "other"))
    x = np.ones((2, 2), dtype=np.float32)
    write_vectors(one, x, parameters={"a": 1, "b": 2})
    write_vectors(other, x, parameters={"b": 2, "a": 1})
    assert one.read_bytes() == other.read_bytes()


# --- damage is noticed ------------------------------------------------------------------------------


def refused(path: Path, kind: str = "vectors") -> str:
    """The message of the ArtifactError that reading must raise; it names the file and a remedy."""
    with pytest.raises(ArtifactError) as caught:
        read_lists(read_table(path, kind=kind), "vector", path=path)
    assert str(path) in caught.value.where
    assert "dvc repro" in caught.value.remedy
    return str(caught.value)


def test_a_missing_artifact_is_named(place: Path) -> None:
    assert "missing" in refused(place)


@pytest.mark.slow
def test_an_artifact_cut_anywhere_is_refused(place: Path) -> None:
    write_small(place)
    whole = place.read_bytes()
    for size in range(len(whole)):
        place.write_bytes(whole[:size])
        assert "cannot be read" in refused(place)


def test_bytes_appended_to_an_artifact_are_refused(place: Path) -> None:
    write_small(place)
    place.write_bytes(place.read_bytes() + b"x")
    refused(place)


def page_payload(path: Path) -> range:
    """Offsets of the values of the single data page of a single-column artifact, without its header."""
    metadata = pq.read_metadata(path)
    column = metadata.row_group(0).column(0)
    assert (metadata.num_columns, metadata.num_row_groups, column.compression) == (1, 1, "UNCOMPRESSED")
    end = column.data_page_offset + column.total_compressed_size
    values = 4 * column.num_values
    return range(end - values, end)


@pytest.mark.slow
def test_every_flipped_bit_of_the_values_fails_its_checksum(place: Path) -> None:
    vectors = write_small(place)
    whole = place.read_bytes()
    payload = page_payload(place)
    assert whole[payload.start : payload.stop] == vectors.tobytes()
    for offset in payload:
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[offset] ^= 1 << bit
            place.write_bytes(damaged)
            assert "checksum" in refused(place).lower()


@pytest.mark.slow
def test_no_flipped_bit_anywhere_in_the_file_yields_other_content(place: Path) -> None:
    # Headers and the footer have bits that mean nothing; all that is promised of them is: an error,
    # or the very same rows and record. One bit of each byte, chosen at random.
    vectors = write_small(place, rows=8)
    record = read_record(place, kind="vectors")
    whole = place.read_bytes()
    choose = random.Random(20)
    errors = 0
    for offset in range(len(whole)):
        damaged = bytearray(whole)
        damaged[offset] ^= 1 << choose.randrange(8)
        place.write_bytes(damaged)
        try:
            back, said = read_vectors(place), read_record(place, kind="vectors")
        except ArtifactError:
            errors += 1
        else:
            assert back.tobytes() == vectors.tobytes(), offset
            assert said == record, offset
    assert errors > len(whole) // 2


def test_a_foreign_parquet_file_is_refused(place: Path) -> None:
    place.parent.mkdir(parents=True)
    pq.write_table(pa.table({"vector": [[1.0, 2.0]]}), place)
    assert "no artifact of sentfold" in refused(place)


def test_a_file_that_is_no_parquet_is_refused(place: Path) -> None:
    place.parent.mkdir(parents=True)
    for content in (b"", b"PAR1", b"not parquet at all\n" * 50, b"PAR1" + bytes(100) + b"PAR1"):
        place.write_bytes(content)
        assert "cannot be read" in refused(place)


def test_a_pipe_in_place_of_an_artifact_is_refused_and_not_waited_for(place: Path) -> None:
    place.parent.mkdir(parents=True)
    os.mkfifo(place)
    assert "not a regular file" in refused(place)


def forge(path: Path, table: pa.Table, **options: Any) -> None:
    """Give a table the sealed record of an artifact, and write it otherwise than `write_table` does."""
    write_table(path, table.slice(0, 0), kind="vectors", parameters={})
    record = json.loads(pq.read_metadata(path).metadata[b"sentfold"])
    text = json.dumps(record | {"rows": table.num_rows}, sort_keys=True).encode()
    seal = hashlib.sha256(text).hexdigest()
    sealed = table.replace_schema_metadata({"sentfold": text, "sentfold-sha256": seal})
    pq.write_table(sealed, path, use_compliant_nested_type=False, **options)


def test_a_small_forged_artifact_of_many_rows_is_refused_before_it_is_decoded(place: Path) -> None:
    rows = pa.array([[0.0] * 100] * 50_000, pa.list_(pa.float32(), 100))
    forge(place, pa.table({"vector": rows}), compression="zstd")
    assert place.stat().st_size < 100_000
    assert "may take" in refused(place)
    forge(place, pa.table({"vector": pa.array([None] * 10, pa.list_(pa.float32(), 1_000_000))}), compression="none")
    assert "may take" in refused(place)


FORGED: dict[str, tuple[Callable[[], pa.Array], dict[str, Any]]] = {
    "one text in all rows": (lambda: pa.array(["a" * 200_000] * 1000), {"compression": "none"}),
    "one text in one page": (lambda: pa.array(["x" * (150 << 20)]), {"compression": "zstd", "use_dictionary": False}),
    "one number in one list": (lambda: pa.array([np.zeros(30_000_000, np.int8)]), {"compression": "none"}),
    "null lists in a struct": (
        lambda: pa.StructArray.from_arrays([pa.array([None] * 40, pa.list_(pa.float32(), 1_000_000))], ["inner"]),
        {"compression": "none"},
    ),
}

PEAK = """
import sys
from pathlib import Path
from pipeline.base.artifacts import read_table
from sentfold.errors import ArtifactError
def peak():  # of this process; getrusage counts the peak of the process that started it, too
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
before = peak()
try:
    read_table(Path(sys.argv[1]), kind="vectors")
except ArtifactError as error:
    print(error.got)
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("case", FORGED)
def test_a_forged_artifact_whose_pages_are_not_plain_takes_no_memory(case: str, place: Path) -> None:
    make, options = FORGED[case]
    forge(place, pa.table({"text": make()}), **options)
    assert place.stat().st_size < 1_000_000
    done = run_python(PEAK, str(place))
    message, kilobytes = done.stdout.splitlines()
    assert "may take" in message
    assert int(kilobytes) < 75_000


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "[]", "1", "{}", '{"kind": "vectors", "notes": []}', '{"kind": 1, "notes": {}}'],
    ids=["brackets", "a list", "a number", "an empty one", "notes that are a list", "a kind that is a number"],
)
def test_a_record_that_is_none_is_refused(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True)
    seal = hashlib.sha256(text.encode()).hexdigest()
    table = pa.table({"text": ["a"]}).replace_schema_metadata({"sentfold": text, "sentfold-sha256": seal})
    pq.write_table(table, place)
    for read in (kind_of, partial(absence, kind="vectors"), partial(read_table, kind="vectors")):
        with pytest.raises(ArtifactError, match="no artifact of sentfold"):
            read(place)


@pytest.mark.parametrize(
    "rows",
    [
        np.array([[1, 2], [0, 3], [0, 1]]),
        np.array([[1, 2], [0, -1], [0, 1]]),
        np.array([[1, 2], [0, 2**31 - 1], [0, 1]], dtype=np.int32),
        np.array([[1.0, 2.0], [0.0, 2.0], [0.0, 1.0]]),
        np.array([[1, 2], [0, 1]]),
    ],
    ids=["beyond the last", "below 0", "far beyond", "fractions", "of another table"],
)
def test_numbers_that_are_no_rows_are_refused(place: Path, rows: np.ndarray) -> None:
    write_table(place, pa.table({"neighbor": fixed_lists(rows)}), kind="graph", parameters={})
    with pytest.raises(ArtifactError, match="no rows") as caught:
        read_rows(read_table(place, kind="graph"), "neighbor", path=place, of=3)
    assert str(place) in caught.value.where


def test_a_row_number_that_is_null_is_refused(place: Path) -> None:
    column = pa.array([[1, None], [0, 1]], pa.list_(pa.int32(), 2))
    write_table(place, pa.table({"neighbor": column}), kind="graph", parameters={})
    with pytest.raises(ArtifactError, match="no rows"):
        read_rows(read_table(place, kind="graph"), "neighbor", path=place)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[]", "null", "{}", '{"corpus": "a", "method": 1}', "9" * 5000, "{", "\udcff"], ids=range(8)
)
def test_json_that_no_stage_writes_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ArtifactError, match="the choice cannot be read") as caught:
        read_json(path, "the choice", corpus=str, method=str)
    assert str(path) in caught.value.where


def test_a_pipe_and_a_device_in_place_of_json_are_refused_and_not_read_for_ever(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    for name in ("pipe.json", "zero.json", "absent.json"):
        with pytest.raises(ArtifactError, match="the choice cannot be read"):
            read_json(tmp_path / name, "the choice")


@pytest.mark.parametrize("row", [None, [1.0, float("nan")], [float("inf"), 1.0], [None, 1.0]], ids=str)
def test_an_artifact_with_a_vector_that_is_none_is_refused(place: Path, row: Any) -> None:
    rows = pa.array([[1.0, 2.0]] * 3 + [row], pa.list_(pa.float32(), 2))
    forge(place, pa.table({"vector": rows}), compression="none", use_dictionary=False)
    with pytest.raises(ArtifactError):
        read_vectors(place)


LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
import numpy
from pipeline.base.artifacts import read_vectors
from sentfold.errors import ArtifactError
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[2]), -1))
try:
    print(read_vectors(Path(sys.argv[1])).shape)
except ArtifactError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_sound_artifact_is_not_called_damaged_where_memory_is_short(place: Path) -> None:
    write_vectors(place, np.ones((20_000, 384), dtype=np.float32), parameters={})
    said = set()
    for spare in (0, 10, 20, 30, 40, 60, 80, 100, 1000):
        arguments = [sys.executable, "-c", LITTLE_MEMORY, str(place), str(spare << 20)]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
        said.add(done.stdout.splitlines()[0] if done.stdout else f"{done.returncode} {done.stderr[-300:]}")
        assert "delete" not in done.stdout
    # Where not even the message fits, Python ends with its own MemoryError: no advice, so no wrong advice.
    said = {one for one in said if not one.endswith("MemoryError\n")}
    assert said == {"(20000, 384)", "there is too little memory to read an artifact"}


def test_a_folder_in_place_of_an_artifact_is_refused(place: Path) -> None:
    place.mkdir(parents=True)
    refused(place)


def test_another_kind_of_artifact_is_refused(place: Path) -> None:
    write_small(place)
    message = refused(place, kind="graph")
    assert "another kind" in message
    assert "vectors" in message


def test_another_corpus_moved_onto_an_artifact_is_refused(place: Path) -> None:
    other = place.with_name("simlex.parquet")
    write_small(other)
    write_small(place)
    other.replace(place)
    message = refused(place)
    assert "spaces/minilm/simlex.parquet" in message
    assert "spaces/minilm/lee.parquet" in message


def test_another_schema_version_is_refused(place: Path) -> None:
    code = (
        "import sys; from pathlib import Path; import numpy as np; import pipeline.base.artifacts as a\n"
        "a.SCHEMA_VERSION += 1; a.write_vectors(Path(sys.argv[1]), np.ones((2, 2), dtype=np.float32), parameters={})"
    )
    assert run_python(code, str(place)).returncode == 0
    assert "schema version" in refused(place)


def test_a_column_of_another_type_is_refused(place: Path) -> None:
    write_table(place, pa.table({"text": [1, 2]}), kind="sentences", parameters={})
    for columns in ({"text": pa.string()}, {"words": pa.string()}):
        with pytest.raises(ArtifactError, match="wrong column") as caught:
            read_table(place, kind="sentences", columns=columns)
        assert str(place) in caught.value.where
        assert caught.value.remedy


def test_vectors_of_ragged_lists_are_refused(place: Path) -> None:
    write_table(place, pa.table({"vector": [[1.0], [1.0, 2.0]]}), kind="vectors", parameters={})
    assert "fixed_size_list" in refused(place)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_not_finite_is_refused_by_its_row(place: Path, value: float) -> None:
    x = np.zeros((5, 2), dtype=np.float32)
    x[3, 1] = value
    with pytest.raises(ArtifactError, match="row 3 of 5"):
        write_vectors(place, x, parameters={})
    assert not place.parent.exists()


def test_a_number_that_json_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "scores.json", {"value": float("nan")})
    assert list(tmp_path.iterdir()) == []


# --- a failed write changes nothing -----------------------------------------------------------------

WRITE_UNDER_A_LIMIT = """
import resource, sys
from pathlib import Path
import numpy as np
from pipeline.base.artifacts import write_vectors
from sentfold.errors import ArtifactError
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write_vectors(Path(sys.argv[1]), np.ones((5000, 8), dtype=np.float32), parameters={})
except ArtifactError as error:
    print(error)
    sys.exit(2)
"""


def test_a_write_that_exceeds_a_limit_keeps_the_old_artifact(place: Path) -> None:
    vectors = write_small(place)
    done = run_python(WRITE_UNDER_A_LIMIT, str(place))
    assert done.returncode == 2, done.stderr
    assert "EFBIG" in done.stdout
    assert str(place) in done.stdout
    assert "free space" in done.stdout
    assert leftovers(place) == []
    np.testing.assert_array_equal(read_vectors(place), vectors)


def test_a_full_disk_keeps_the_old_artifact(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        path = disk / space_path("quick", "minilm", "lee")
        vectors = write_small(path)
        with pytest.raises(ArtifactError, match="ENOSPC") as caught:
            write_vectors(path, np.ones((100_000, 8), dtype=np.float32), parameters={})
        assert caught.value.where == str(path)
        assert leftovers(path) == []
        np.testing.assert_array_equal(read_vectors(path), vectors)
        # The space came back: a write that fits still succeeds.
        write_small(path, rows=1000)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_path_through_a_file_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file stands where a folder should")
    path = tmp_path / space_path("quick", "minilm", "lee")
    with pytest.raises(ArtifactError, match="cannot write") as caught:
        write_small(path)
    assert caught.value.where == str(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["data"]


def test_a_folder_at_the_place_of_an_artifact_is_kept(place: Path) -> None:
    place.mkdir(parents=True)
    with pytest.raises(ArtifactError, match="cannot write"):
        write_small(place)
    assert place.is_dir()
    assert leftovers(place) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write into a read-only folder")
def test_a_read_only_folder_keeps_the_old_artifact(place: Path) -> None:
    vectors = write_small(place)
    place.parent.chmod(0o555)
    try:
        with pytest.raises(ArtifactError, match="EACCES"):
            write_small(place, rows=30)
        assert leftovers(place) == []
        np.testing.assert_array_equal(read_vectors(place), vectors)
    finally:
        place.parent.chmod(0o755)


# --- a killed writer --------------------------------------------------------------------------------

WRITE_FOREVER = """
import sys
from pathlib import Path
import numpy as np
from pipeline.base.artifacts import write_vectors
value = 0
while True:
    value += 1
    write_vectors(Path(sys.argv[1]), np.full((200_000, 8), value, dtype=np.float32), parameters={"value": value})
    print(value, flush=True)
"""


@pytest.mark.slow
def test_a_killed_writer_never_leaves_a_wrong_artifact_and_the_next_write_sweeps(place: Path) -> None:
    choose = random.Random(9)
    caught_in_the_act = 0
    for attempt in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", WRITE_FOREVER, str(place)], stdout=subprocess.PIPE, cwd=ROOT
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline()
            time.sleep(choose.uniform(0.0, 0.03))
            # Half the kills wait for a half-written file, so that they surely fall into a write.
            deadline = time.monotonic() + 5
            while attempt % 2 and not leftovers(place) and time.monotonic() < deadline:
                pass
            writer.kill()
        vectors = read_vectors(place)
        assert vectors.shape == (200_000, 8)
        assert (vectors == vectors[0, 0]).all()
        assert read_record(place, kind="vectors")["parameters"] == {"value": int(vectors[0, 0])}
        caught_in_the_act += bool(leftovers(place))
    assert caught_in_the_act > 0
    write_small(place)
    assert leftovers(place) == []


def test_the_sweep_spares_the_temporary_file_of_a_living_writer(place: Path) -> None:
    place.parent.mkdir(parents=True)
    living = place.with_name(f".{place.name}.{os.uname().nodename}.1.tmp")  # process 1 lives as long as the machine
    living.write_bytes(b"half")
    write_small(place)
    assert leftovers(place) == [living.name]


def test_two_writers_of_different_artifacts_do_not_sweep_each_other(place: Path) -> None:
    other = place.with_name("lee2.parquet")
    place.parent.mkdir(parents=True)
    dead = place.with_name(f".{other.name}.{os.uname().nodename}.999999999.tmp")
    dead.write_bytes(b"half")
    write_bytes_atomically(place, b"whole")
    assert leftovers(place) == [dead.name]
    write_bytes_atomically(other, b"whole")
    assert leftovers(place) == [other.name]
