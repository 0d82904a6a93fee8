"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from sentfold.errors import ArtifactError
from sentfold.files import json_bytes, read_parquet, replace_whole, sha256_of, write_json, write_text


def names(folder: Path) -> set[str]:
    """What a folder holds."""
    return {path.name for path in folder.iterdir()}


def test_a_reader_sees_the_old_file_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    write_text(path, "old")
    with replace_whole(path) as temporary:
        temporary.write_text("half")
        assert path.read_text() == "old\n"
    assert path.read_text() == "half" and names(path.parent) == {"a.txt"}


@pytest.mark.parametrize("error", [ValueError("of the caller"), KeyboardInterrupt()])
def test_a_block_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path, error: BaseException) -> None:
    write_text(tmp_path / "a.txt", "old")
    with pytest.raises(type(error)), replace_whole(tmp_path / "a.txt") as temporary:
        temporary.write_text("half")
        raise error
    assert (tmp_path / "a.txt").read_text() == "old\n" and names(tmp_path) == {"a.txt"}


def test_a_target_that_is_a_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt" / "kept").mkdir(parents=True)
    with pytest.raises(ArtifactError, match=r"(?s)cannot write a file.*a\.txt"):
        write_text(tmp_path / "a.txt", "text")
    assert names(tmp_path) == {"a.txt"}


def test_temporary_files_of_another_machine_and_of_living_processes_stay(tmp_path: Path) -> None:
    host = os.uname().nodename
    kept = {".a[1].txt.other-host.999999999.tmp", f".a[1].txt.{host}.1.tmp", f".b.txt.{host}.999999999.tmp"}
    for name in (*kept, f".a[1].txt.{host}.999999999.tmp"):
        (tmp_path / name).write_text("half")
    write_text(tmp_path / "a[1].txt", "text")
    assert names(tmp_path) == {*kept, "a[1].txt"}


def test_a_link_that_another_user_made_under_a_guessed_temporary_name_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (tmp_path / f".a.txt.{os.uname().nodename}.{os.getpid()}.tmp").symlink_to(victim)  # the name of earlier versions
    with replace_whole(tmp_path / "a.txt") as first:
        first.write_text("one")
    with replace_whole(tmp_path / "a.txt") as second:
        second.write_text("two")
    assert victim.read_text() == "kept" and first.name != second.name
    assert (tmp_path / "a.txt").read_text() == "two" and not (tmp_path / "a.txt").is_symlink()


def test_json_has_one_form_and_refuses_what_json_has_not(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": 1, "a": "é"})
    assert (tmp_path / "a.json").read_bytes() == json_bytes({"a": "é", "b": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"a": float("nan")})
    assert (tmp_path / "a.json").read_bytes() == json_bytes({"a": "é", "b": 1})


# --- Parquet of anyone's making -------------------------------------------------------------------------

MEASURE = """
import sys
from pathlib import Path
import pyarrow
from sentfold.files import read_parquet
def peak():  # of this process; getrusage counts the peak of the process that started it, too
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
before = peak()
try:
    read_parquet(Path(sys.argv[1]))
except pyarrow.ArrowInvalid as error:
    print(error)
print(peak() - before)
"""


def repeat(value: object, kind: pa.DataType, rows: int) -> pa.DictionaryArray:
    """One value in every row, which a dictionary page holds once."""
    return pa.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int32), pa.array([value], kind))


def nulls(width: int, rows: int) -> pa.FixedSizeListArray:
    """Null lists of a great width."""
    return pa.array([None] * rows, pa.list_(pa.float32(), width))


# Made when its test runs: the tables take seconds and hundreds of megabytes.
BOMBS: dict[str, Callable[[], pa.Array]] = {
    "one text in all rows": lambda: repeat("x" * 1000, pa.string(), 3_000_000),
    "one number in all rows": lambda: repeat(7, pa.int64(), 20_000_000).dictionary_decode(),
    "null vectors of a great width": lambda: pa.array([None] * 100, pa.list_(pa.float32(), 1_000_000)),
    "null vectors in a struct": lambda: pa.StructArray.from_arrays([nulls(1_000_000, 100)], ["inner"]),
    "null vectors in a list": lambda: pa.ListArray.from_arrays([0, 100], nulls(1_000_000, 100)),
    "null tensors": lambda: pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.float32(), [1000, 1000]), nulls(1_000_000, 100)
    ),
    "one text in all lists": lambda: pa.ListArray.from_arrays(
        [0, 1_000_000], repeat("x" * 1000, pa.string(), 1_000_000)
    ),
    "one binary value in all rows": lambda: repeat(b"x" * 1000, pa.binary(), 1_000_000).dictionary_decode(),
    "one text in all fixed-size lists": lambda: pa.FixedSizeListArray.from_arrays(
        repeat("x" * 1000, pa.string(), 400_000).dictionary_decode(), 1
    ),
    "one text in all maps": lambda: pa.MapArray.from_arrays(
        [0, 400_000],
        repeat("k", pa.string(), 400_000).dictionary_decode(),
        repeat("x" * 1000, pa.string(), 400_000).dictionary_decode(),
    ),
    "one text of JSON in all rows": lambda: pa.ExtensionArray.from_storage(
        pa.json_(), repeat('"' + "x" * 1000 + '"', pa.string(), 400_000).dictionary_decode()
    ),
}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] * (number > 4)) for number, case in enumerate(BOMBS)]
)
def test_a_small_file_that_decodes_to_gigabytes_is_refused_before_it_takes_them(case: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    table = pa.table({"column": BOMBS[case]()})
    parquet.write_table(table, path, compression="zstd", row_group_size=50_000_000)
    assert path.stat().st_size < 400_000
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    message, kilobytes = done.stdout.splitlines()
    assert "may take" in message
    assert int(kilobytes) < 300_000


def test_null_vectors_in_lists_over_many_row_groups_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    column = pa.ListArray.from_arrays(list(range(0, 101, 10)), nulls(200_000, 100))
    parquet.write_table(pa.table({"column": column}), path, compression="zstd", row_group_size=1)
    with pytest.raises(pa.ArrowInvalid, match="may take"):
        read_parquet(path)


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_texts_in_an_encoding_that_cannot_be_counted_are_refused_with_what_to_do(encoding: str) -> None:
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table({"a": ["x", "yy"]}), sink, use_dictionary=False, column_encoding={"a": encoding})
    with pytest.raises(pa.ArrowInvalid, match=r"write the file again.*write_table"):
        read_parquet(sink.getvalue().to_pybytes())


def test_a_page_that_unpacks_to_more_than_the_file_may_take_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "page.parquet"
    table = pa.table({"text": pa.array(["x" * (150 << 20)])})
    parquet.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    message, kilobytes = done.stdout.splitlines()
    assert "may take" in message
    assert int(kilobytes) < 75_000


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["{}", None], pa.json_()),
        pa.array([b"0123456789abcdef", None], pa.uuid()),
        pa.array([b"a", None], pa.large_binary()),
        pa.array([[("a", "b"), ("c", None)], None], pa.map_(pa.string(), pa.string())),
        pa.array([["a", "b"], None], pa.list_(pa.string(), 2)),
    ],
    ids=lambda column: str(column.type),
)
def test_sound_columns_of_rarer_types_are_read_as_pyarrow_reads_them(column: pa.Array, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"a": column}), path)
    read, direct = read_parquet(path), parquet.read_table(path)
    assert read.equals(direct) and read.schema.equals(direct.schema)


@settings(max_examples=20, deadline=None)
@example(texts=[None] * 8, packing="none", dictionary=True)  # texts of structs in two row groups
@given(
    texts=st.lists(st.one_of(st.none(), st.sampled_from(["", "a", "ä\0b"]), st.text(max_size=9)), max_size=30),
    packing=st.sampled_from(["none", "zstd", "snappy"]),
    dictionary=st.booleans(),
)
def test_an_honest_file_is_read_as_it_was_written(texts: list[str | None], packing: str, dictionary: bool) -> None:
    table = pa.table(
        {
            "text": pa.array(texts, pa.string()),
            "large": pa.array(texts, pa.large_string()),
            "category": pa.array(texts, pa.string()).dictionary_encode(),
            "words": pa.array([None if text is None else text.split() for text in texts], pa.list_(pa.string())),
            "inner": pa.array([{"text": text} for text in texts], pa.struct({"text": pa.string()})),
            "vector": pa.array([[1.0, 2.0]] * len(texts), pa.list_(pa.float32(), 2)),
        }
    )  # fmt: skip
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, compression=packing, use_dictionary=dictionary, row_group_size=7)
    back = read_parquet(sink.getvalue().to_pybytes())
    assert back.schema.names == table.schema.names
    assert back.to_pylist() == table.to_pylist()


def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "a.parquet"
    os.mkfifo(pipe)
    for read in (read_parquet, sha256_of):
        with pytest.raises(OSError, match="not a regular file"):
            read(pipe)


@pytest.mark.parametrize("plain", [pa.string_view(), pa.binary_view()], ids=str)
def test_views_of_texts_are_read_as_texts_under_the_same_bound(plain: pa.DataType) -> None:
    texts = pa.array(["a", None, "bc"], pa.string()).cast(plain)
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table({"x": texts}), sink)
    assert read_parquet(sink.getvalue().to_pybytes())["x"].to_pylist() == texts.to_pylist()
    sink = pa.BufferOutputStream()
    long = pa.concat_arrays([pa.array(["x" * 10_000]).cast(plain)] * 10_000)
    parquet.write_table(pa.table({"x": long}), sink)
    with pytest.raises(pa.ArrowInvalid, match="may take"):
        read_parquet(sink.getvalue().to_pybytes())


def test_views_in_lists_are_refused_with_a_remedy_that_helps() -> None:
    sink, again = pa.BufferOutputStream(), pa.BufferOutputStream()
    parquet.write_table(pa.table({"x": pa.array([["a"]], pa.list_(pa.string_view()))}), sink)
    with pytest.raises(pa.ArrowInvalid, match="store_schema=False"):
        read_parquet(sink.getvalue().to_pybytes())
    parquet.write_table(parquet.read_table(pa.BufferReader(sink.getvalue())), again, store_schema=False)
    assert read_parquet(again.getvalue().to_pybytes())["x"].to_pylist() == [["a"]]
