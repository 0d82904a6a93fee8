"""Malformed inputs: each gets one message that names the file and, where there is one, the line and the column."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from safetensors.numpy import save_file
from scipy.sparse import csr_matrix

import sentfold
from sentfold.data.columns import parse_columns
from sentfold.data.datasets import read_dataset
from sentfold.data.tables import DataError
from sentfold.data.vectors import encode_texts, read_vectors

PAGE = Path(__file__).parents[2] / "docs" / "malformed-inputs.md"
GOOD = "left,right,score\na cat,a dog,1\na cow,a hen,0\nan owl,an eel,1\n"
TABS = GOOD.replace(",", "\t")
HEAD = "left,right,score\n"
TOPICS = "text,label\n"

PAGE_ROWS = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]


def row_of(case: str, error: DataError, folder: Path) -> str:
    """The row of docs/malformed-inputs.md for a case."""
    where = error.where.replace(f"{folder}/", "")
    return f"| {case} | {error.what} | {where} |"


# name of the file, its content, what the message must name: the problem, and the place
TABLES: dict[str, tuple[str, bytes, str, str]] = {
    "Latin-1 instead of UTF-8": ("p.csv", HEAD.encode() + "a café,b,1\n".encode("latin1"), "not UTF-8", "line 2"),
    "half a UTF-16 character": ("p.csv", b"\xff\xfe" + GOOD.encode("utf-16-le")[:-1], "not UTF-8", "p.csv"),
    "a binary file": ("p.csv", b"\x7fELF\0\0\0", "binary", "line 1"),
    "a picture named .csv": ("p.csv", b"\x89PNG\r\n\x1a\n" + bytes(20), "binary", "p.csv"),
    "an empty file": ("p.csv", b"", "empty", "p.csv"),
    "empty lines alone": ("p.csv", b"\n\n\n", "empty", "p.csv"),
    "a header alone": ("p.csv", HEAD.encode(), "no rows", "p.csv"),
    "one row": ("p.csv", HEAD.encode() + b"a cat,a dog,1\n", "too few rows", "p.csv"),
    "an open quote": ("p.csv", HEAD.encode() + b'"a cat,a dog,1\na,b,0\n', "cannot be read", "line 2"),
    "text behind a quote": ("p.csv", HEAD.encode() + b'"a" cat,a dog,1\n', "cannot be read", "line 2"),
    "a comma without quotes": ("p.csv", GOOD.encode() + b"a cat, a red one,a dog,1\n", "number of cells", "line 5"),
    "a short row": ("p.csv", GOOD.encode() + b"a cat,a dog\n", "number of cells", "line 5"),
    "another delimiter in one row": ("p.csv", GOOD.encode() + b"a cat;a dog;1\n", "number of cells", "line 5"),
    "two columns of one name": ("p.csv", b"left,left,score\na,b,1\n", "one name", "line 1"),
    "a cell of 10 MB": ("p.csv", HEAD.encode() + b"x" * 10_000_000 + b",b,1\n", "cannot be read", "line 2"),
    "text in a score": ("p.csv", GOOD.encode() + b"a,b,high\n", "no number", "line 5, column score"),
    "a decimal comma": ("p.tsv", TABS.encode() + b"a\tb\t0,5\n", "no number", "line 5, column score"),
    "an empty score": ("p.csv", GOOD.encode() + b"a,b,\n", "no number", "line 5, column score"),
    "NaN as a score": ("p.csv", GOOD.encode() + b"a,b,nan\n", "not finite", "line 5, column score"),
    "an infinite score": ("p.csv", GOOD.encode() + b"a,b,inf\n", "not finite", "line 5, column score"),
    "equal scores": ("p.csv", HEAD.encode() + b"a,b,1\nc,d,1\n", "all scores are equal", "column score"),
    "no column of scores": ("p.csv", b"left,right\na cat,a dog\na cow,a hen\n", "which columns", "p.csv"),
    "names that say nothing": ("p.csv", b"x,y,z\n1,2,3\n4,5,6\n", "which columns", "p.csv"),
    "two columns that may be the label": (
        "t.csv", b"text,label,category\na cat,x,1\na dog,y,2\n", "which columns", "t.csv",
    ),
    "a list as a label": (
        "t.jsonl", b'{"text": "a b", "label": "x"}\n{"text": "b c", "label": ["x", "y"]}\n', "list of labels",
        "line 2, column label",
    ),
    "texts that are all empty": ("p.csv", HEAD.encode() + b",,1\n , ,0\n", "too few rows", "p.csv"),
    "one class": ("t.csv", TOPICS.encode() + b"a cat,x\na dog,x\n", "one class", "column label"),
    "an empty label": ("t.csv", TOPICS.encode() + b"a cat,x\na dog,\n", "label is empty", "line 3, column label"),
    "a split of another name": (
        "t.csv", b"text,label,split\na,x,train\nb,y,test\nc,y,holdout\n", "another name", "line 4, column split",
    ),
    "JSON that ends early": ("p.jsonl", b'{"left": "a",\n', "not JSON", "line 1"),
    "a list instead of an object": ("p.jsonl", b'["a", "b", 1]\n', "no JSON object", "line 1"),
    "a number as a text": (
        "p.jsonl", b'{"left": "a b", "right": "b", "score": 1}\n{"left": 3.5, "right": "b", "score": 0}\n',
        "another type", "line 2, column left",
    ),
    "a null as a score": (
        "p.jsonl", b'{"left": "a", "right": "b", "score": 1}\n{"left": "c", "right": "d", "score": null}\n',
        "no number", "line 2, column score",
    ),
    "brackets without end": ("p.jsonl", b'{"left": ' + b"[" * 100_000 + b"\n", "not JSON", "line 1"),
    "text named .parquet": ("p.parquet", GOOD.encode(), "cannot be read", "p.parquet"),
    "half a Parquet file": ("p.parquet", b"PAR1" + bytes(50), "cannot be read", "p.parquet"),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_a_malformed_table_is_refused_with_its_place(case: str, tmp_path: Path) -> None:
    name, content, problem, place = TABLES[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as refused:
        read_dataset(tmp_path / name)
    assert problem in refused.value.what
    assert place in refused.value.where
    assert name.partition(".")[0] in refused.value.where
    assert row_of(case, refused.value, tmp_path) in PAGE_ROWS


@pytest.mark.parametrize(("name", "delimiter"), [("p.csv", ";"), ("p.tsv", "\t")])
def test_a_header_of_other_delimiters_is_told(tmp_path: Path, name: str, delimiter: str) -> None:
    """Whoever follows the advice to put a header above items has to know how to separate it."""
    rows = [delimiter.join((f"one, {n}", f"two {n}", str(n))) for n in range(3)]
    for header, rest in (([], "separated as the items are"), (["left,right,score"], "as the rows are")):
        (tmp_path / name).write_text("\n".join([*header, *rows]))
        with pytest.raises(DataError, match=f"(?s)to do.*{rest}"):
            read_dataset(tmp_path / name)
    (tmp_path / name).write_text("\n".join([delimiter.join(("left", "right", "score")), *rows]))
    assert read_dataset(tmp_path / name).texts[0] == "one, 0"


def test_a_device_and_a_pipe_are_refused_and_not_read_for_ever(tmp_path: Path) -> None:
    (tmp_path / "train.csv").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.csv")
    for place in (tmp_path / "train.csv", tmp_path / "pipe.csv"):
        with pytest.raises(DataError, match="cannot be read") as refused:
            read_dataset(place)
        assert "not a regular file" in refused.value.got


def test_a_folder_without_data_and_a_path_without_a_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no data"):
        read_dataset(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        read_dataset(tmp_path / "none.csv")


@pytest.mark.parametrize("text", ["left", "top=a", "left=", "=a"])
def test_roles_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(DataError, match="--columns"):
        parse_columns(text)


def test_a_role_for_a_column_that_the_file_lacks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(GOOD)
    with pytest.raises(DataError, match="no column 'gold'"):
        read_dataset(tmp_path / "p.csv", {"score": "gold"})


# --- vectors ------------------------------------------------------------------------------------------

FINE = np.arange(24, dtype=np.float64).reshape(6, 4) + 1.0


def _npy(array: object) -> Callable[[Path], None]:
    return lambda path: np.save(path, np.asarray(array), allow_pickle=True)


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "no array")


def _parquet(**columns: object) -> Callable[[Path], None]:
    return lambda path: parquet.write_table(pa.table(columns), path)


def _with(row: int, value: float, dtype: type = np.float64) -> np.ndarray:
    array = FINE.astype(dtype)
    array[row, 2] = value
    return array


TEXTS = ["a cat", "a cow", "an owl", "a dog", "a hen", "an eel"]
VECTORS: dict[str, tuple[str, Callable[[Path], None], str, str]] = {
    "an archive of something else": ("v.npz", _zip, "cannot be read", "v.npz"),
    "one vector too few": ("v.npy", _npy(FINE[:5]), "not as many vectors", "v.npy"),
    "a flat array": ("v.npy", _npy(FINE.ravel()), "no vectors", "v.npy"),
    "vectors of no dimension": ("v.npy", _npy(FINE[:, :0]), "no vectors", "v.npy"),
    "three axes": ("v.npy", _npy(FINE.reshape(2, 3, 4)), "no vectors", "v.npy"),
    "NaN in a vector": ("v.npy", _npy(_with(4, np.nan)), "not finite", "row 4"),
    "float16 that overflowed": ("v.npy", _npy(_with(3, np.inf, np.float16)), "not finite", "row 3"),
    "a number too large for float32": ("v.npy", _npy(_with(2, 1e300)), "not finite", "row 2"),
    "a number too large to square in float32": ("v.npy", _npy(_with(2, 1e30)), "too large or too small", "row 2"),
    "numbers too small to square in float32": ("v.npy", _npy(FINE * 1e-40), "too large or too small", "row 0"),
    "zero vectors": ("v.npy", _npy(np.zeros((6, 4))), "equal", "v.npy"),
    "mostly zero vectors": ("v.npy", _npy(FINE * np.eye(6)[:, :1]), "zero", "row 1"),
    "constant vectors": ("v.npy", _npy(np.ones((6, 4))), "equal", "v.npy"),
    "complex numbers": ("v.npy", _npy(FINE + 1j), "no numbers", "v.npy"),
    "strings": ("v.npy", _npy(FINE.astype(str)), "no numbers", "v.npy"),
    "objects": ("v.npy", _npy(np.array([[None] * 4] * 6, dtype=object)), "cannot be read", "v.npy"),
    "text named .npy": ("v.npy", lambda path: path.write_text(GOOD) and None, "cannot be read", "v.npy"),
    "half an npz": ("v.npz", lambda path: path.write_bytes(b"PK\3\4abc") and None, "cannot be read", "v.npz"),
    "two arrays without names": ("v.npz", lambda path: np.savez(path, a=FINE, b=FINE), "one array", "v.npz"),
    "text named .safetensors": (
        "v.safetensors", lambda path: path.write_text(GOOD) and None, "cannot be read", "v.safetensors",
    ),
    "halves of two widths": (
        "v.safetensors", lambda path: save_file({"left": FINE[:3], "right": FINE[:3, :2].copy()}, path),
        "one array", "v.safetensors",
    ),
    "an archive of zeros": (
        "v.npz", lambda path: np.savez_compressed(path, a=np.zeros(10_000_000)), "cannot be read",
        "v.npz",
    ),
    "lists of two lengths": ("v.parquet", _parquet(vector=[[1.0, 2.0]] * 5 + [[1.0]]), "one length", "row 6"),
    "a null among lists": ("v.parquet", _parquet(vector=[[1.0, 2.0]] * 5 + [None]), "missing", "column vector"),
    "lists of texts": ("v.parquet", _parquet(vector=[["a", "b"]] * 6), "no numbers", "column vector"),
    "a text without a vector": (
        "v.parquet", _parquet(text=[*TEXTS[:5], "a fox"], vector=FINE.tolist()), "no vector", "v.parquet",
    ),
    "no vectors in Parquet": ("v.parquet", _parquet(text=TEXTS), "no column of vectors", "v.parquet"),
    "another kind of file": ("v.csv", lambda path: path.write_text(GOOD) and None, "cannot be read", "v.csv"),
}  # fmt: skip


@pytest.mark.parametrize("case", VECTORS)
def test_malformed_vectors_are_refused_with_their_place(case: str, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(GOOD)
    data = read_dataset(tmp_path / "p.csv")
    name, write, problem, place = VECTORS[case]
    write(tmp_path / name)
    with pytest.raises(DataError) as refused:
        read_vectors(tmp_path / name, data)
    assert problem in refused.value.what
    assert place in refused.value.where
    assert row_of(case, refused.value, tmp_path) in PAGE_ROWS


def test_of_a_file_that_numpy_did_not_save_nobody_is_advised_to_load_a_pickle(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(GOOD)
    for content in (b"PAR1", b"", b"\x80\x04."):
        (tmp_path / "v.npy").write_bytes(content)
        with pytest.raises(DataError, match="array of numbers that numpy saved") as refused:
            read_vectors(tmp_path / "v.npy", read_dataset(tmp_path / "p.csv"))
        assert "pickle" not in str(refused.value)


def test_vectors_in_the_order_of_rows_are_refused_where_a_text_repeats(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(GOOD + "a cat,an eel,0\n")
    data = read_dataset(tmp_path / "p.csv")
    cells = np.array([0, 3, 1, 4, 2, 5, 0, 5])  # left and right in turn, instead of all left and then all right
    np.save(tmp_path / "v.npy", FINE[cells])
    with pytest.raises(DataError, match="order of the vectors"):
        read_vectors(tmp_path / "v.npy", data)


def test_a_row_that_the_vectors_lack_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("row1,row2,score\n0,1,1\n2,6,0\n")
    np.save(tmp_path / "v.npy", FINE)
    with pytest.raises(DataError, match="rows 0 to 5"):
        read_vectors(tmp_path / "v.npy", read_dataset(tmp_path / "p.csv"))


def test_an_encoder_that_gives_no_matrix_is_refused() -> None:
    with pytest.raises(DataError, match="no matrix"):
        encode_texts(lambda texts: [1.0] * len(texts), TEXTS)


def test_a_sparse_matrix_is_refused() -> None:
    """As TfidfVectorizer of scikit-learn makes it."""
    with pytest.raises(DataError, match=r"(?s)a sparse matrix.*toarray"):
        sentfold.decide(csr_matrix(FINE), labels=["a", "b"] * 3)


@pytest.mark.parametrize("given", [Path("my-model"), {"a": FINE}, (row for row in FINE), None])
def test_what_is_neither_an_array_nor_an_encoder_is_refused(given: object) -> None:
    with pytest.raises(DataError, match=r"(?s)neither an array nor an encoder.*a name as text"):
        sentfold.decide(given, labels=["a", "b"] * 3)


# --- queries ------------------------------------------------------------------------------------------

JUDGED = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n"
QUERIES: dict[str, tuple[dict[str, str], str, str]] = {
    "no judgements": ({"qrels/test.tsv": ""}, "empty", "test.tsv"),
    "a document that does not exist": (
        {"qrels/test.tsv": JUDGED + "q1\td9\t1\n"},
        "does not exist",
        "column corpus-id",
    ),
    "a query that does not exist": ({"qrels/test.tsv": JUDGED + "q9\td1\t1\n"}, "does not exist", "line 4"),
    "a grade in words": ({"qrels/test.tsv": JUDGED + "q1\td2\tgood\n"}, "no number", "line 4, column score"),
    "an infinite grade": ({"qrels/test.tsv": JUDGED + "q1\td2\tinf\n"}, "no number", "line 4, column score"),
    "a grade of 300 digits": ({"qrels/test.tsv": JUDGED + "q1\td2\t1e300\n"}, "no number", "line 4, column score"),
    "two grades of one document": ({"qrels/test.tsv": JUDGED + "q1\td1\t0\n"}, "judged twice", "line 4, column score"),
    "a list as the text of a document": (
        {"corpus.jsonl": '{"_id": "d1", "text": ["a", "b"]}\n{"_id": "d2", "text": "c"}\n'},
        "another type",
        "line 1, column text",
    ),
    "two columns": ({"qrels/test.tsv": "query\tdocument\nq1\td1\n"}, "other columns", "test.tsv"),
    "no relevant document": ({"qrels/test.tsv": JUDGED.replace("1\n", "0\n")}, "too few queries", "qrels"),
    "an identifier twice": ({"corpus.jsonl": '{"_id": "d1", "text": "a"}\n' * 2}, "repeated", "line 2, column _id"),
    "empty documents alone": (
        {"corpus.jsonl": '{"_id": "d1", "text": ""}\n{"_id": "d2", "text": " "}\n'},
        "text is empty",
        "line 1, column text",
    ),
    "an empty query": (
        {"queries.jsonl": '{"_id": "q1", "text": "a"}\n{"_id": "q2", "text": ""}\n'},
        "text is empty",
        "line 2, column text",
    ),
    "documents without _id": ({"corpus.jsonl": '{"id": "d1", "text": "a"}\n'}, "no key '_id'", "corpus.jsonl"),
    "no queries": ({"queries.jsonl": ""}, "no rows", "queries.jsonl"),
}


@pytest.mark.parametrize("case", QUERIES)
def test_a_malformed_folder_of_queries_is_refused_with_its_place(case: str, tmp_path: Path) -> None:
    replaced, problem, place = QUERIES[case]
    files = {
        "corpus.jsonl": "".join(json.dumps({"_id": f"d{n}", "title": "", "text": f"text {n}"}) + "\n" for n in (1, 2)),
        "queries.jsonl": "".join(json.dumps({"_id": f"q{n}", "text": f"query {n}"}) + "\n" for n in (1, 2)),
        "qrels/test.tsv": JUDGED,
    }
    (tmp_path / "qrels").mkdir()
    for name, content in (files | replaced).items():
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as refused:
        read_dataset(tmp_path)
    assert problem in refused.value.what
    assert place in refused.value.where
    assert row_of(case, refused.value, tmp_path) in PAGE_ROWS


def test_the_page_lists_each_malformed_input_once() -> None:
    cases = [*TABLES, *VECTORS, *QUERIES]
    assert sorted(row.split(" | ")[0].removeprefix("| ") for row in PAGE_ROWS) == sorted(cases)
    assert len(cases) >= 40
