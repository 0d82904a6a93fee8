"""Which rows go together, and what of a source is refused before anything is computed."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentfold.errors import ArtifactError, ParameterError
from sentfold.files import fixed_lists
from sentfold.fold.source import (
    MOST,
    Rows,
    cut_partitions,
    digest_of,
    list_source,
    read_texts,
    read_vectors,
    take_vectors,
)
from sentfold.fold.source import _ranges as ranges
from tests.fold.corpus import cloud, sentences, write_texts, write_vectors


def rows_of(path: Path, start: int, stop: int) -> Rows:
    """Rows of a file whose digest does not matter here."""
    return Rows(str(path), path.name, "", 0, start, stop)


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 40))
def test_ranges_cover_every_row_once_and_cut_only_row_groups_that_are_too_large(groups: list[int], most: int) -> None:
    found = list(ranges(groups, most))
    assert [row for start, stop in found for row in range(start, stop)] == list(range(sum(groups)))
    assert all(0 < stop - start <= most for start, stop in found)
    edges = {0, *np.cumsum(groups).tolist()}
    for start, stop in found:
        inside = [group for group, edge in zip(groups, np.cumsum(groups), strict=True) if edge - group <= start < edge]
        assert {start, stop} <= edges or inside[0] > most


@given(st.lists(st.integers(1, 20), min_size=1, max_size=30), st.integers(20, 40))
def test_two_partitions_that_follow_each_other_would_not_fit_into_one(groups: list[int], most: int) -> None:
    found = list(ranges(groups, most))
    for (start, _), (first, _) in pairwise(found):
        assert first - start + groups[np.cumsum(groups).tolist().index(first) + 1] > most


def test_a_folder_is_read_in_the_order_of_names_and_no_partition_spans_two_files(tmp_path: Path) -> None:
    for name, count in (("b", 130), ("a", 70), ("c", 5), (".a.old", 9), ("_b", 9)):  # old copies are no data
        write_texts(tmp_path / f"{name}.parquet", [f"{name} {row}" for row in range(count)], group=50)
    partitions = cut_partitions(list_source(tmp_path, "text"), ["1", "2", "3"], rows=100)
    assert [(part.name, part.sha256, part.start, part.stop) for part in partitions] == [
        ("a.parquet", "1", 0, 70),
        ("b.parquet", "2", 0, 100),
        ("b.parquet", "2", 100, 130),
        ("c.parquet", "3", 0, 5),
    ]


@pytest.mark.parametrize(
    "names",
    [
        ["part-0", "part-1", "part-2", "part-10", "part-11"],  # as pyarrow, polars and Dask number parts
        ["1-2", "1-10", "2-1"],
        ["0009", "000a", "000b", "0010"],  # hexadecimal numbers are no numbers
        ["a10", "a9", "b1"],
        ["train-00000-of-00002", "train-00001-of-00002", "validation", "test"],  # as `decide` reads a folder of parts
        ["test", "train", "x"],  # which is no folder of parts
    ],
)
def test_numbers_in_names_count_as_numbers_where_all_else_is_the_same(tmp_path: Path, names: list[str]) -> None:
    """Of 360 vectors, 60 belonged to their text."""
    for name in reversed(names):
        write_texts(tmp_path / f"{name}.parquet", [name], group=50)
    assert [Path(file.path).stem for file in list_source(tmp_path, "text")] == names


def test_files_of_a_folder_are_read_whatever_the_case_of_their_suffix(tmp_path: Path) -> None:
    for name in ("part-0.parquet", "part-1.PARQUET"):
        write_texts(tmp_path / name, [name], group=50)
    assert [Path(file.path).name for file in list_source(tmp_path, "text")] == ["part-0.parquet", "part-1.PARQUET"]


@pytest.mark.parametrize(("start", "stop"), [(0, 500), (0, 1), (130, 131), (60, 140), (499, 500), (7, 7)])
def test_any_range_of_rows_is_read_as_it_lies_in_the_file(tmp_path: Path, start: int, stop: int) -> None:
    texts, x = sentences()[:500], cloud(500)
    rows = rows_of(write_texts(tmp_path / "t.parquet", texts), start, stop)
    assert read_texts(rows) == texts[start:stop]
    rows = rows_of(write_vectors(tmp_path / "v.parquet", x), start, stop)
    blocks = list(read_vectors(rows, size=33))
    assert all(len(block) <= 33 for block in blocks)
    np.testing.assert_array_equal(np.concatenate([x[:0], *blocks]), x[start:stop])


def test_texts_of_arrow_s_large_strings_are_texts_too(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": pa.array(["one", "two"], pa.large_string())}), tmp_path / "t.parquet")
    assert [file.groups for file in list_source(tmp_path, "text")] == [(2,)]
    assert read_texts(rows_of(tmp_path / "t.parquet", 0, 2)) == ["one", "two"]


UNFIT: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (lambda path: None, "no such file"),
    "an empty folder": (lambda path: path.mkdir(), r"\*\.parquet"),
    "no Parquet": (lambda path: path.write_text("text"), "whole Parquet"),
    "no such column": (lambda path: pq.write_table(pa.table({"sentence": ["a"]}), path), "sentence"),
    "numbers": (lambda path: pq.write_table(pa.table({"text": [1]}), path), "int64"),
    "one file of two without the column": (
        lambda path: (write_texts(path / "a.parquet", ["a"]), write_vectors(path / "b.parquet", cloud(3))),
        "b.parquet",
    ),
    "the column twice": (
        lambda path: pq.write_table(pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], ["text", "text"]), path),
        "text",
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_a_source_without_texts_is_refused_by_its_footers(tmp_path: Path, case: str) -> None:
    make, told = UNFIT[case]
    make(tmp_path / "x.parquet")
    with pytest.raises(ArtifactError, match=told):
        list_source(tmp_path / "x.parquet", "text")


def test_vectors_of_mixed_widths_or_of_another_type_are_refused(tmp_path: Path) -> None:
    write_vectors(tmp_path / "a.parquet", cloud(5, 7))
    write_vectors(tmp_path / "b.parquet", cloud(5, 8))
    with pytest.raises(ArtifactError, match=r"(?s)b\.parquet.*width 7.*width 8"):
        list_source(tmp_path, "vector")
    pq.write_table(pa.table({"vector": fixed_lists(cloud(5, 7).astype(np.float64))}), tmp_path / "b.parquet")
    with pytest.raises(ArtifactError, match=r"(?s)b\.parquet.*float32.*double"):
        list_source(tmp_path, "vector")


def test_a_source_without_rows_or_with_too_many_partitions_is_refused(tmp_path: Path) -> None:
    write_texts(tmp_path / "a.parquet", [])
    with pytest.raises(ParameterError, match="0 of at most"):
        cut_partitions(list_source(tmp_path, "text"), [""])
    write_texts(tmp_path / "a.parquet", ["same"] * (MOST + 1), group=MOST + 1)
    with pytest.raises(ParameterError, match=f"{MOST + 1} of at most 1 rows"):
        cut_partitions(list_source(tmp_path, "text"), [""], rows=1)


def test_a_missing_text_is_named(tmp_path: Path) -> None:
    path = write_texts(tmp_path / "a.parquet", [*["there"] * 99, None])
    with pytest.raises(ArtifactError, match=r"(?s)a\.parquet.*row 99: null"):
        read_texts(rows_of(path, 10, 100))


def test_a_missing_vector_or_number_is_named(tmp_path: Path) -> None:
    rows = pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2))
    pq.write_table(pa.table({"vector": rows}), tmp_path / "a.parquet")
    with pytest.raises(ArtifactError, match="row 1: null"):
        list(read_vectors(rows_of(tmp_path / "a.parquet", 0, 3), size=3))
    rows = pa.array([[1.0, 2.0], [5.0, 6.0], [3.0, None]], pa.list_(pa.float32(), 2))
    pq.write_table(pa.table({"vector": rows}), tmp_path / "a.parquet")
    with pytest.raises(ArtifactError, match="row 2: a null"):
        list(read_vectors(rows_of(tmp_path / "a.parquet", 1, 3), size=3))


@given(st.sets(st.integers(0, 299)), st.integers(1, 400))
def test_chosen_rows_are_taken_from_any_partitions_by_any_block(chosen: set[int], size: int) -> None:
    x, numbers = cloud(300), np.array(sorted(chosen), dtype=np.int64)
    with TemporaryDirectory() as folder:
        for name, start, stop in (("a", 0, 120), ("b", 120, 121), ("c", 121, 300)):
            write_vectors(Path(folder, f"{name}.parquet"), x[start:stop])
        partitions = cut_partitions(list_source(Path(folder), "vector"), ["", "", ""], rows=70)
        np.testing.assert_array_equal(take_vectors(partitions, numbers, size=size), x[numbers])


def test_texts_without_an_encoder_are_refused_with_the_option_that_names_one(tmp_path: Path) -> None:
    write_texts(tmp_path / "a.parquet", ["a text"])
    with pytest.raises(ArtifactError, match=r"(?s)got +id, text.*rename_columns.*--encoder"):
        list_source(tmp_path, "vector")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_number_that_is_not_finite_is_named_by_its_row_in_the_file(tmp_path: Path, bad: float) -> None:
    x = cloud()
    x[451, 3] = bad
    path = write_vectors(tmp_path / "a.parquet", x)
    with pytest.raises(ArtifactError, match="row 451"):
        list(read_vectors(rows_of(path, 300, 900), size=100))


def test_a_damaged_page_is_noticed_where_it_is_read_and_nowhere_else(tmp_path: Path) -> None:
    path = write_vectors(tmp_path / "a.parquet", cloud())
    chunk = pq.read_metadata(path).row_group(5).column(0)
    place = chunk.data_page_offset + chunk.total_compressed_size // 2
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    list(read_vectors(rows_of(path, 0, 320), size=50))
    with pytest.raises(ArtifactError, match=r"(?s)a\.parquet.*checksums"):
        list(read_vectors(rows_of(path, 0, 321), size=50))


def test_what_to_do_about_columns_that_other_libraries_write_makes_a_file_that_is_read(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    texts = [f"text {row % 9}" for row in range(40)]
    pl.DataFrame({"vector": x.tolist()}).write_parquet(tmp_path / "lists.parquet")
    pl.DataFrame({"vector": x.astype(np.float64)}).write_parquet(tmp_path / "doubles.parquet")
    pl.DataFrame({"text": pl.Series(texts, dtype=pl.Categorical)}).write_parquet(tmp_path / "text.parquet")
    pl.DataFrame({"id": range(40), "embedding": x.tolist()}).write_parquet(tmp_path / "named.parquet")
    with pytest.raises(ArtifactError) as refused:
        list_source(tmp_path / "named.parquet", "vector")
    remedy = (refused.value.remedy or "").partition(", where NAME")[0]
    exec(remedy, {"pq": pq, "OLD": tmp_path / "named.parquet", "NEW": tmp_path / "again.parquet", "NAME": "embedding"})
    for name, column in (("lists", "vector"), ("doubles", "vector"), ("again", "vector"), ("text", "text")):
        with pytest.raises(ArtifactError) as refused:
            list_source(tmp_path / f"{name}.parquet", column)
        remedy = (refused.value.remedy or "").partition(", where D")[0]
        old, new = tmp_path / f"{name}.parquet", tmp_path / f"{name}-new.parquet"
        exec(remedy, {"pa": pa, "pq": pq, "OLD": old, "NEW": new, "D": 6})
        if column == "text":
            assert list_source(new, column) and read_texts(rows_of(new, 0, 40)) == texts
        else:
            assert list_source(new, column)[0].width == 6
            np.testing.assert_array_equal(np.concatenate([*read_vectors(rows_of(new, 0, 40), size=7)]), x)


def test_a_table_that_is_no_parquet_is_refused_with_the_command_that_makes_one(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("text,label\na,b\n")
    with pytest.raises(ArtifactError) as refused:
        list_source(tmp_path / "labels.csv", "text")
    assert "labels.csv --encoder NAME --out vectors.parquet" in (refused.value.remedy or "")


def test_a_file_that_changes_or_vanishes_after_it_was_listed_is_noticed(tmp_path: Path) -> None:
    path = write_texts(tmp_path / "a.parquet", ["one", "two"])
    (file,) = list_source(tmp_path, "text")
    assert len(digest_of(file)) == 64
    write_texts(path, ["one", "three"])
    with pytest.raises(ArtifactError, match="changed while it was read"):
        digest_of(file)
    path.unlink()
    with pytest.raises(ArtifactError, match="No such file"):
        digest_of(file)


def varint(number: int) -> bytes:
    """A number as Parquet's footer has it (Thrift's compact protocol, unsigned)."""
    digits = []
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])


def test_a_footer_of_more_rows_than_the_file_can_have_is_refused_before_they_are_cut(tmp_path: Path) -> None:
    path, rows = write_vectors(tmp_path / "v.parquet", cloud(7777)), 7777
    content = path.read_bytes()
    length = struct.unpack("<I", content[-8:-4])[0]
    footer = content[-8 - length : -8].replace(varint(2 * rows), varint(2 * 2**50))  # signed numbers are doubled
    path.write_bytes(content[: -8 - length] + footer + struct.pack("<I", len(footer)) + b"PAR1")
    assert pq.read_metadata(path).num_rows == 2**50
    with pytest.raises(ArtifactError, match="in a file of this size"):
        list_source(path, "vector")


def test_row_groups_of_more_and_of_fewer_than_no_rows_are_refused(tmp_path: Path) -> None:
    """Of 2^45 and -2^45 rows, the first filled the memory with ranges of rows."""
    path, x = tmp_path / "v.parquet", cloud(13332)
    table = pa.table({"vector": fixed_lists(x)})
    with pq.ParquetWriter(path, table.schema, use_dictionary=False) as writer:
        for part in (table.slice(0, 7777), table.slice(7777)):
            writer.write_table(part)
    content = path.read_bytes()
    length = struct.unpack("<I", content[-8:-4])[0]
    footer = content[-8 - length : -8]
    for old, new in ((7777, 2 * 2**45), (5555, 2 * 2**45 - 1), (13332, 0)):  # signed numbers are doubled, or odd
        assert varint(2 * old) in footer
        footer = footer.replace(varint(2 * old), varint(new))
    path.write_bytes(content[: -8 - length] + footer + struct.pack("<I", len(footer)) + b"PAR1")
    metadata = pq.read_metadata(path)
    assert [metadata.row_group(group).num_rows for group in range(2)] == [2**45, -(2**45)]
    with pytest.raises(ArtifactError, match="row groups that have the rows of the file"):
        list_source(path, "vector")


def test_a_text_that_all_rows_refer_to_is_counted_before_it_is_copied(tmp_path: Path) -> None:
    """Some hundred bytes, which are 4 GB of texts."""
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(4096, dtype=np.int32)), pa.array(["a" * 1_000_000]))
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"text": texts}), path, store_schema=False, compression="zstd")
    (file,) = list_source(path, "text")
    (rows,) = cut_partitions([file], [digest_of(file)])
    with pytest.raises(ArtifactError, match="in a file of this size"):
        read_texts(rows)


def test_a_pipe_in_place_of_a_file_of_the_source_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.parquet")
    with pytest.raises(ArtifactError, match="not a regular file"):
        list_source(tmp_path, "text")


def test_texts_of_many_row_groups_with_dictionaries_are_read_as_they_are(tmp_path: Path) -> None:
    texts = [f"text {row % 7}" for row in range(500)]
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"text": texts}), path, row_group_size=60, use_dictionary=True)
    assert read_texts(rows_of(path, 37, 431)) == texts[37:431]


def test_long_texts_that_are_packed_to_nothing_are_refused_by_the_footer(tmp_path: Path) -> None:
    texts = pa.array(["abc"[row % 3] * (4 << 20) + str(row) for row in range(24)])
    path = tmp_path / "texts.parquet"
    pq.write_table(pa.table({"text": texts}), path, compression="zstd", use_dictionary=False, write_statistics=False)
    with pytest.raises(ArtifactError, match="cannot be used"):
        list_source(path, "text")
