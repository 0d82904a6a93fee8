"""Files of a stranger that crash, fill the memory or command a terminal: each is one message, soon."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from sentfold.cli.encode import read_sentences
from sentfold.cli.similar import one_line
from sentfold.data.datasets import read_dataset
from sentfold.data.tables import DataError, read_table, refuse_holes
from sentfold.data.vectors import read_arrays
from sentfold.data.words import read_centroids, read_columns, read_word_vectors
from sentfold.decision.encoders import PAGE_START, is_page
from sentfold.decision.spaces import ARRAYS, SETTINGS, Unchanged, load_space, save_space
from sentfold.decision.use import append_vectors, new_texts
from sentfold.errors import ArtifactError
from sentfold.fold.source import list_source

ROWS = 20
TEXTS = pa.array([f"text {row} here" for row in range(ROWS)])
SCORES = pa.array([row % 5 for row in range(ROWS)], pa.float64())


def spoil(data: pa.Array, place: int, old: bytes, new: bytes) -> pa.Array:
    """The array with other bytes in one of its buffers."""
    buffers = data.buffers()
    buffers[place] = pa.py_buffer(buffers[place].to_pybytes().replace(old, new))
    return pa.Array.from_buffers(data.type, len(data), buffers)


ODD: dict[str, pa.Table] = {
    "texts that are not UTF-8": pa.table({"left": spoil(TEXTS, 2, b"t", b"\xff"), "right": TEXTS, "score": SCORES}),
    "two columns of one name": pa.Table.from_arrays([TEXTS, TEXTS, SCORES], ["left", "left", "score"]),
}  # fmt: skip


PAIRS = pa.table({"left": TEXTS, "right": TEXTS, "score": SCORES})


@pytest.mark.parametrize("case", ODD)
def test_a_parquet_file_that_python_cannot_hold_is_refused(tmp_path: Path, case: str) -> None:
    parquet.write_table(ODD[case], tmp_path / "p.parquet")
    with pytest.raises(DataError, match="a file cannot be read") as caught:
        read_dataset(tmp_path / "p.parquet")
    assert caught.value.where == str(tmp_path / "p.parquet")


@pytest.mark.parametrize(
    "times",
    [
        pa.array([2**30] * ROWS, pa.int32()).cast(pa.date32()),
        pa.array([0] * ROWS).cast(pa.timestamp("us", "Nowhere/Land")),
    ],
    ids=["a date that Python lacks", "a time zone that nobody has"],
)
def test_a_column_of_times_that_python_lacks_is_left_out(tmp_path: Path, times: pa.Array) -> None:
    parquet.write_table(PAIRS.append_column("when", times), tmp_path / "p.parquet")
    data = read_dataset(tmp_path / "p.parquet")
    assert len(data) == ROWS and "columns of values that Python lacks are left out: when" in data.notes


def test_nanoseconds_are_left_out_where_pandas_is_not_installed(tmp_path: Path) -> None:
    times = pa.array([1_700_000_003_333_333_254] * ROWS).cast(pa.timestamp("ns"))
    parquet.write_table(PAIRS.append_column("when", times), tmp_path / "p.parquet")
    hide = "\nclass Hidden:\n def find_spec(name, *_):\n  if name == 'pandas': raise ImportError(name)\n"
    code = f"import sys{hide}sys.meta_path.insert(0, Hidden)\nfrom pathlib import Path\n"
    code += "import sentfold.data.datasets as d\nprint(d.read_dataset(Path(sys.argv[1])).notes)"
    words = [sys.executable, "-c", code, str(tmp_path / "p.parquet")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "columns of values that Python lacks are left out: when" in done.stdout


def test_words_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    words = pa.table({"word": spoil(TEXTS, 2, b"t", b"\xff"), "vector": pa.array([[1.0]] * ROWS)})
    parquet.write_table(words, tmp_path / "w.parquet")
    with pytest.raises(ArtifactError, match="a file cannot be read"):
        read_columns(tmp_path / "w.parquet", "word", "vector")


# --- text files -------------------------------------------------------------------------------------------------


def test_lines_of_ever_other_keys_are_refused_before_they_fill_the_memory(tmp_path: Path) -> None:
    """50,000 lines of one key each, 700 KB, were 2.5 billion cells, 20 GB."""
    (tmp_path / "k.jsonl").write_text("".join(f'{{"k{row}": 1}}\n' for row in range(5_000)))
    with pytest.raises(DataError, match="different keys") as caught:
        read_table(tmp_path / "k.jsonl")
    assert caught.value.got == "5,000 keys in 5,000 lines"
    wide = json.dumps({f"k{key}": "a" for key in range(3_000)})
    (tmp_path / "k.jsonl").write_text(wide + '\n{"k0": "a"}' * 3_000)  # of 4,992 keys, 1.9 MB took 40 s
    with pytest.raises(DataError, match="different keys"):
        read_table(tmp_path / "k.jsonl")
    (tmp_path / "k.jsonl").write_text("".join(f'{{"text": "a b c", "k{row % 700}": 1}}\n' for row in range(5_000)))
    assert len(read_table(tmp_path / "k.jsonl")) == 5_000
    (tmp_path / "k.jsonl").write_text('{"a": 1, "b": 2}\n{"a": 3, "c": 4}\n')
    assert read_table(tmp_path / "k.jsonl").columns == {"a": [1, 3], "b": [2, None], "c": [None, 4]}


def test_numbers_of_thousands_of_digits_are_texts_and_no_rows(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("left,right,score\n" + "".join(f"{'9' * 5000},{n},{n}\n" for n in range(3)))
    assert read_dataset(tmp_path / "p.csv").texts == ("9" * 5000, "0", "1", "2")


def test_sentences_from_a_pipe_or_a_device_are_refused(tmp_path: Path) -> None:
    (tmp_path / "zero.txt").symlink_to("/dev/zero")
    for name in ("pipe.txt", "pipe.parquet"):
        os.mkfifo(tmp_path / name)
    for name in ("pipe.txt", "pipe.parquet", "zero.txt"):
        with pytest.raises((ArtifactError, DataError), match="cannot be read"):
            read_sentences(tmp_path / name)


def test_a_text_commands_no_terminal_and_keeps_its_letters() -> None:
    assert one_line("a\x1b[2J\r\nb\x9b\u2028") == "a\\x1b[2J\\r\\nb\\x9b\\u2028"
    assert one_line("a\u202eb\u2066c\u061cd\u200f") == r"a\u202eb\u2066c\u061cd\u200f"
    assert one_line("naïve\xa0café 日本 👩\u200d💻") == "naïve\xa0café 日本 👩\u200d💻"


# --- spaces, appended files, centroids ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", [SETTINGS, ARRAYS])
def test_a_pipe_in_place_of_a_part_of_a_space_is_refused_and_not_waited_for(tmp_path: Path, name: str) -> None:
    save_space(Unchanged(), tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(ArtifactError, match="no space that can be read"):
        load_space(tmp_path)


NO_FILES_TO_GROW: dict[str, dict[str, Any]] = {
    "vectors that are texts": {"text": TEXTS, "vector": TEXTS},
    "texts that are lists": {"text": pa.array([[1]] * ROWS), "vector": pa.array([[1.0]] * ROWS)},
    "texts that are numbers": {"text": pa.array([1] * ROWS), "vector": pa.array([[1.0]] * ROWS)},
    "vectors that are structs": {"text": TEXTS, "vector": pa.array([{"a": 1.0}] * ROWS)},
}


@pytest.mark.parametrize("case", NO_FILES_TO_GROW)
def test_a_file_of_other_columns_is_not_appended_to(tmp_path: Path, case: str) -> None:
    path = tmp_path / "v.parquet"
    parquet.write_table(pa.table(NO_FILES_TO_GROW[case]), path)
    before = path.read_bytes()
    with pytest.raises(DataError, match="no texts with vectors"):
        new_texts(path, ["a"])
    with pytest.raises(DataError, match="no texts with vectors"):
        append_vectors(path, ["a"], np.ones((1, 1), dtype=np.float32))
    assert path.read_bytes() == before


def test_a_struct_or_a_map_is_no_column_of_vectors(tmp_path: Path) -> None:
    pairs = pa.array([[("a", 1.0)]] * ROWS, pa.map_(pa.string(), pa.float64()))
    parquet.write_table(
        pa.table({"text": TEXTS, "m": pairs, "s": pa.array([{"a": 1.0}] * ROWS)}), tmp_path / "v.parquet"
    )
    with pytest.raises(DataError, match="no column of vectors"):
        read_arrays(tmp_path / "v.parquet")


def test_centroids_with_numbers_far_apart_are_refused(tmp_path: Path) -> None:
    for last, fits in ((3, True), (2**40, False)):
        table = pa.table({"cluster": pa.array([0, last]), "vector": pa.array([[1.0, 2.0], [3.0, 4.0]])})
        parquet.write_table(table, tmp_path / "c.parquet")
        if fits:
            assert read_centroids(tmp_path / "c.parquet").tolist() == [[1, 2], [0, 0], [0, 0], [3, 4]]
        else:
            with pytest.raises(ArtifactError, match="leave too many out"):
                read_centroids(tmp_path / "c.parquet")


def test_vectors_that_are_texts_or_not_finite_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    for rows in ([["a", "b"]], [[1.0, None]], [[True, False]]):
        parquet.write_table(pa.table({"cluster": [0], "word": ["a"], "vector": pa.array(rows)}), path)
        with pytest.raises(DataError, match="vectors are no numbers"):
            read_centroids(path)
        with pytest.raises(DataError, match="vectors are no numbers"):
            read_word_vectors(["a"], "regex", str(path), 1, False)
    parquet.write_table(pa.table({"cluster": [0], "vector": pa.array([[1.0, np.nan]])}), path)
    with pytest.raises(ArtifactError, match="a centroid is not finite"):
        read_centroids(path)


def test_words_of_a_stranger_s_folder_do_not_take_the_place_of_the_installed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wordllama").write_text("cat 1 2\n")
    with pytest.raises(ArtifactError, match="a file here and an installed package are both called 'wordllama'"):
        read_word_vectors(["cat"], "regex", "wordllama", 2, False)
    assert read_word_vectors(["cat"], "regex", "./wordllama", 2, False)[1].tolist() == [[1.0, 2.0]]


def test_arrays_that_are_packed_in_another_way_than_numpy_does_are_refused_unread(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((4, 4)))
    for packing, read in ((zipfile.ZIP_STORED, True), (zipfile.ZIP_DEFLATED, True), (zipfile.ZIP_BZIP2, False)):
        for name in ("v.npz", "v.npy"):  # numpy tells an archive by its first bytes
            with zipfile.ZipFile(tmp_path / name, "w", packing) as archive:
                archive.write(tmp_path / "x.npy", "x.npy")
            if read:
                assert read_arrays(tmp_path / name)[1]["x"].shape == (4, 4)
            else:
                with pytest.raises(DataError, match="packed in another way"):
                    read_arrays(tmp_path / name)


@pytest.mark.parametrize(("rows", "columns"), [(2_100_000, 1), (20_000_000, 1), (500_000, 60)])
def test_millions_of_cells_in_a_file_of_some_bytes_are_refused(tmp_path: Path, rows: int, columns: int) -> None:
    flags = pa.repeat(True, rows)
    parquet.write_table(pa.table({f"flag {number}": flags for number in range(columns)}), tmp_path / "rows.parquet")
    before = pa.total_allocated_bytes()
    with pytest.raises(DataError, match="too many rows for its size"):
        read_table(tmp_path / "rows.parquet")
    assert pa.total_allocated_bytes() <= before + (1 << 20)


def test_all_pairs_of_few_texts_are_read_though_they_take_less_than_a_byte_a_row(tmp_path: Path) -> None:
    """As record linkage has them. Runs of equal values take next to nothing in Parquet."""
    left, right = np.triu_indices(900, 1)
    names = np.array([f"product {number}" for number in range(900)])
    pairs = {"left": names[left], "right": names[right], "match": (right - left) % 97 == 0}
    parquet.write_table(pa.table(pairs), tmp_path / "p.parquet", compression="zstd")
    assert (tmp_path / "p.parquet").stat().st_size < len(left)
    assert len(read_table(tmp_path / "p.parquet")) == len(left) == 404_550


def test_a_tensor_in_parquet_is_an_error_and_no_traceback(tmp_path: Path) -> None:
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((ROWS, 4), np.float32))
    parquet.write_table(pa.table({"text": TEXTS, "embedding": tensors}), tmp_path / "v.parquet")
    with pytest.raises(DataError, match=r"(?s)cannot be read.*pq\.read_table\(OLD\), NEW, store_schema=False\)"):
        read_arrays(tmp_path / "v.parquet")
    parquet.write_table(parquet.read_table(tmp_path / "v.parquet"), tmp_path / "n.parquet", store_schema=False)
    assert [array.shape for array in read_arrays(tmp_path / "n.parquet")[1].values()] == [(ROWS, 4)]


def test_a_file_of_thousands_of_columns_is_refused_before_it_takes_minutes(tmp_path: Path) -> None:
    columns = {f"c{number}": pa.array([b"a", b"b"]) for number in range(5_001)}
    parquet.write_table(pa.table(columns), tmp_path / "wide.parquet", write_statistics=False)
    with pytest.raises(DataError, match="5,001 columns; at most 5,000 are read"):
        read_table(tmp_path / "wide.parquet")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_text_files_of_many_columns_are_refused(tmp_path: Path, suffix: str) -> None:
    """The search for the columns of texts takes time that grows with the square of their number."""
    names = [f"c{number}" for number in range(5_001)]
    between = "\t" if suffix == ".tsv" else ","
    content = "\n".join([between.join(names), *[between.join("é" for _ in names)] * 2])
    (tmp_path / f"a{suffix}").write_text(content if suffix != ".jsonl" else json.dumps(dict.fromkeys(names, "é")))
    with pytest.raises(DataError, match=r"(?s)too many columns.*5,001"):
        read_table(tmp_path / f"a{suffix}")
    if suffix != ".jsonl":  # the cells without a name of a sheet that was saved with all its columns
        lines = [between.join(cells + [""] * 16_000) for cells in (["left", "right", "score"], ["é", "è", "1"])]
        (tmp_path / f"a{suffix}").write_text("\n".join(lines))
        assert [*read_table(tmp_path / f"a{suffix}").columns] == ["left", "right", "score"]


# --- holes ------------------------------------------------------------------------------------------------------


def test_a_file_of_which_most_was_never_written_is_refused_whatever_reads_it(tmp_path: Path) -> None:
    """An archive carries such a file of any size in some bytes, and lifts every limit that counts a file's size."""
    for name in ("t.csv", "t.parquet", "v.npy", "lines.txt", "whole.txt"):
        (tmp_path / name).write_text("text\na cat\na cow\n")
        if name != "whole.txt":
            os.truncate(tmp_path / name, 1 << 40)
    space = tmp_path / "space"
    save_space(Unchanged(), space)
    os.truncate(space / ARRAYS, 1 << 40)
    for read in (
        lambda: read_dataset(tmp_path / "t.csv"), lambda: read_dataset(tmp_path / "t.parquet"),
        lambda: read_arrays(tmp_path / "v.npy"), lambda: read_columns(tmp_path / "t.parquet", "text"),
        lambda: read_sentences(tmp_path / "lines.txt"), lambda: load_space(space),
        lambda: list_source(tmp_path / "t.parquet", "text"),
    ):  # fmt: skip
        with pytest.raises((DataError, ArtifactError), match="most of a file was never written"):
            read()
    (tmp_path / "whole.txt").write_text("a cat\n" * 1_000_000)
    with (tmp_path / "whole.txt").open("r+b") as stream:
        stream.truncate(8_000_000)  # a fourth is a hole
    refuse_holes(tmp_path / "whole.txt")
    refuse_holes(tmp_path / "none.txt")
    refuse_holes(tmp_path)


def test_of_a_page_the_first_bytes_alone_are_read(tmp_path: Path) -> None:
    """Whether a file may be replaced by the page of a decision: a file of holes can have any size."""
    page = tmp_path / "verdict.html"
    page.write_bytes(PAGE_START)
    os.truncate(page, 1 << 40)
    assert is_page(page)
    page.write_bytes(b"<html>")
    os.truncate(page, 1 << 40)
    assert not is_page(page)
