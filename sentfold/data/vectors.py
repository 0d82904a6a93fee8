"""Vectors of a data set's texts: from a file in any of several forms, or from an encoder."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sentfold.data.beir import join_title
from sentfold.data.datasets import Dataset, class_name
from sentfold.data.tables import DataError, read_arrow_table, refuse_holes, shorten
from sentfold.errors import first_line
from sentfold.files import FREE, RATIO

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Columns = dict[str, list[Any]]

HALVES = {"pairs": ("left", "right"), "queries": ("corpus", "queries")}  # names of two arrays in one file
TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
TWO_PROMPTS = (
    "if the encoder has two prompts, leave out each pair with a text that is on both sides; or save the vectors of one "
    "prompt, and the cosine of that prompt is judged"
)
LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
VECTORS = re.compile(r"(?i:(?:^|[^a-z])(?:vec|emb))|Vec|Emb")  # in the names of columns of vectors, and not in member
NAMES = ("vectors", "embedding", "embeddings", "emb")  # of columns that are vectors rather than others with such names
ZIP, NPY = b"PK", b"\x93NUMPY"  # the first bytes of an archive, and of an array that numpy saved
SAMPLE = 1_000  # vectors, about as many, that tell how far vectors are from each other
BLOCK = 65_536  # rows that are converted and checked at a time
LEAST, MOST = 1e-15, 1e15  # size of a vector's largest number; squares of others overflow or vanish in float32
# How far two vectors of one text may be from each other: 16 bits or the batches of an encoder make a hundredth or two,
# in units of the median distance of a vector from their mean, and two texts are about 1.4 apart.
ALIKE = 0.05


class SentenceEncoder(Protocol):
    """Anything with `encode`, such as a SentenceTransformer."""

    def encode(self, texts: list[str]) -> Any:
        """One vector per text."""


def read_vectors(path: Path, data: Dataset) -> tuple[Floats, list[str]]:
    """(N, d) float32 vectors, the first of them those of the texts of `data` by row; and notes.

    Further rows are unlabelled vectors. A file holds
      a Parquet column of texts and one of vectors, matched by text; or one array (npy, npz, safetensors, Parquet)
      and nothing else: one vector per distinct text, in the order of Dataset.texts; or one per cell: first column,
      then second; or (m pairs) shape (m, 2, d), or two arrays of m vectors called left and right; or (queries) one per
      line of corpus.jsonl and queries.jsonl, also as two arrays called corpus and queries
    If `data` names rows instead of texts, all vectors are taken as they are.
    Raises DataError. Memory: the file in its own type, and in float32 if that is another.
    """
    columns, arrays = read_arrays(path)
    array, halves = _join(arrays, data, path)
    taken = [name for name in arrays if name not in ("", "vector")][: len(arrays) == 1]
    if array.ndim != 2 or not array.shape[1]:
        raise DataError("an array has no vectors", where=str(path), expected="shape (n, d)", got=f"shape {array.shape}")
    texts = _texts_of(columns, data, path) if data.texts and len(arrays) == 1 else None
    if texts is None:
        _refuse_columns(columns, data, path)
    rows: Ints | None
    if texts is not None:
        vectors, rows, extra = _match(array, texts, data, path)
    else:
        (vectors, rows), extra = _place(array, halves, data, path), 0
    checked, notes = check_vectors(vectors, str(path), rows)
    if texts is None and data.texts:
        one = "distinct text" if rows is None else "cell"
        one = "document and query" if data.kind == "queries" else one
        orders = {"pairs": "the left column, then the right one", "queries": "corpus.jsonl, then queries.jsonl"}
        notes.insert(
            0, f"vectors without texts: in the order of {orders.get(data.kind, 'the rows')}, one for each {one}"
        )
    notes = [*(f"vectors: column {name}, {array.shape[-1]} numbers each" for name in taken), *notes]
    return checked, [*notes, *([f"{extra} vectors of other texts are used without labels"] if extra else [])]


def read_arrays(path: Path) -> tuple[Columns, dict[str, npt.NDArray[Any]]]:
    """The other columns of a Parquet file, with their values if these are texts, and the arrays of a file by name.

    Raises DataError.
    """
    readers: dict[str, Callable[[Path], tuple[Columns, dict[str, npt.NDArray[Any]]]]] = {
        ".npy": _read_npy,
        ".npz": _read_npy,
        ".safetensors": _read_safetensors,
        ".parquet": _read_lists,
    }
    if not path.is_file() or path.suffix.lower() not in readers:
        raise DataError(
            "vectors cannot be read",
            where=str(path),
            expected=f"a file: {', '.join(readers)}",
            got="a folder" if path.is_dir() else "another kind of file" if path.exists() else "no such file",
        )
    refuse_holes(path)
    return readers[path.suffix.lower()](path)


def refuse_masked(**parts: object) -> None:
    """Raise DataError for a masked array with a masked value: numpy would hand out the value behind the mask."""
    for name, part in parts.items():
        if np.ma.is_masked(part):
            mask = np.ma.getmaskarray(np.ma.asarray(part))
            rows = np.flatnonzero(mask.reshape(len(mask), -1).any(axis=1))
            raise DataError(
                "values are masked", where=f"{name}, row {rows[0]} (from 0)", expected="a value in each row",
                got=f"a mask in {len(rows):,} rows", remedy="leave out the rows without a value",
            )  # fmt: skip


def refuse_other_order(**parts: Any) -> None:
    """Raise DataError where two tables of pandas have the same index in another order: rows are matched by place."""
    indexed = [(name, [*map(_label_of, part.index)]) for name, part in parts.items() if _has_index(part)]
    for (first, one), (second, other) in combinations(indexed, 2):
        if one != other and sorted(one) == sorted(other):
            row = next(row for row, labels in enumerate(zip(one, other, strict=True)) if labels[0] != labels[1])
            raise DataError(
                "two tables have one index in two orders", where=f"{first} and {second}, row {row} (from 0)",
                expected="one order", got=f"{one[row][:80]} and {other[row][:80]}",
                remedy=f"if the index tells which rows belong together, give {second}.loc[{first}.index]; if rows "
                "belong together as they stand, give .to_numpy() of both",
            )  # fmt: skip


def refuse_index(vectors: Any) -> None:
    """Raise DataError for a table of pandas with numbers as its index that are not those of its rows.

    Items that name rows of vectors name them from 0, and these numbers could be meant.
    """
    if _has_index(vectors):
        index = np.asarray(vectors.index)
        if index.dtype.kind in "iu" and not np.array_equal(index, np.arange(len(index))):
            raise DataError(
                "vectors have numbers as an index that are not those of their rows", where="vectors",
                expected="rows 0, 1, 2, ...", got=f"an index of {', '.join(map(str, index[:3]))}, ...",
                remedy="give vectors.to_numpy(), if the items count its rows from 0; if they name the index, give "
                "vectors.index.get_indexer(...) of what they name",
            )  # fmt: skip


def _label_of(label: Any) -> str:
    """A label of an index as a text that is the same whatever the type of the index is: 7, 7.0 and np.int64(7)."""
    plain = label.item() if isinstance(label, np.generic) else label
    return repr(int(plain) if isinstance(plain, float) and plain.is_integer() else plain)


def _has_index(part: object) -> bool:
    """Whether an object is a table or a column of pandas: lists and texts have a method of this name."""
    return hasattr(part, "index") and hasattr(part, "iloc")


def check_vectors(array: npt.NDArray[Any], where: str, rows: Ints | None = None) -> tuple[Floats, list[str]]:
    """The rows as float32 to be judged, and notes. Raises DataError as check_numbers does, and for vectors all alike.

    rows  (n,) of the rows in their file, as errors and notes name them; None: as here
    """
    rows = np.arange(len(array)) if rows is None else rows
    vectors = check_numbers(array, where, rows)
    blocks = (vectors[start : start + BLOCK] for start in range(0, len(vectors), BLOCK))
    if len(vectors) > 1 and all((block == vectors[0]).all() for block in blocks):
        raise DataError(
            "all vectors are equal", where=where, expected="vectors that differ", got=f"{len(vectors)} copies"
        )
    zero = np.flatnonzero(~vectors.any(axis=1))
    if 2 * len(zero) > len(vectors):
        raise DataError(
            "most vectors are zero", where=f"{where}, row {rows[zero[0]]} (from 0)",
            expected="vectors with a direction", got=f"{len(zero)} of {len(vectors)}",
        )  # fmt: skip
    notes = []
    if len(zero):
        notes.append(f"{len(zero)} vectors are zero, their cosine counts as 0; the first: row {rows[zero[0]]}")
    if len(vectors) and _are_bytes(vectors[:BLOCK]):
        notes.append("all numbers are whole and fit into a byte: are these packed bits? then np.unpackbits them first")
    return vectors, notes


def check_numbers(array: npt.NDArray[Any], where: str, rows: Ints | None = None) -> Floats:
    """The rows as float32. Raises DataError for values that are no finite numbers, and for those that overflow.

    rows  as for check_vectors
    """
    rows = np.arange(len(array)) if rows is None else rows
    if array.dtype.kind not in "fiu":
        raise DataError(
            "vectors are no numbers", where=where, expected="float16, 32 or 64, or integers", got=str(array.dtype)
        )
    if array.dtype.itemsize == 1 and ((array < -1) | (array > 1)).any():
        raise DataError(
            "it cannot be told whether bytes are numbers or packed bits",
            where=where,
            expected="float16, 32 or 64, integers of 16 bits or more, or bytes of -1, 0 and 1",
            got=str(array.dtype),
            remedy="of numbers save x.astype('float32'); of packed bits, as quantize_embeddings writes them, "
            "np.unpackbits(x, axis=1) of 'ubinary', np.unpackbits((x + 128.0).astype('uint8'), axis=1) of 'binary'",
        )
    vectors = array if array.dtype == np.float32 else np.empty(array.shape, dtype=np.float32)
    for start in range(0, len(array), BLOCK):
        if vectors is not array:
            with np.errstate(over="ignore"):
                vectors[start : start + BLOCK] = array[start : start + BLOCK]
        bad = np.flatnonzero(~np.isfinite(vectors[start : start + BLOCK]).all(axis=1))
        if len(bad):
            values = array[start + bad[0]]
            wrong = values[~np.isfinite(vectors[start + bad[0]])][0]
            hint = "float16 holds at most 65504: save the vectors as float32" if array.dtype == np.float16 else ""
            raise DataError(
                "a vector is not finite",
                where=f"{where}, row {rows[start + bad[0]]} (from 0)",
                expected="finite numbers below 3.4e38",
                got=str(wrong),
                remedy=hint or "look at the text of that row, and encode it again",
            )
        _refuse_size(vectors[start : start + BLOCK], rows[start : start + BLOCK], where)
    return vectors


def _are_bytes(block: Floats) -> bool:
    """Whether all numbers are whole and fit into a byte, and are no bits."""
    low, high = block.min(initial=0.0), block.max(initial=0.0)
    return bool(low >= -128 and max(-low, high) > 1 and high <= 255 and (block == np.rint(block)).all())


def _refuse_size(block: Floats, rows: Ints, where: str) -> None:
    """Raise DataError for a row whose numbers are too large or too small to be squared in float32."""
    size = np.maximum(block.max(axis=1, initial=0.0), -block.min(axis=1, initial=0.0))
    bad = np.flatnonzero((size > MOST) | ((size > 0) & (size < LEAST)))
    if len(bad):
        raise DataError(
            "a vector is too large or too small to compute with",
            where=f"{where}, row {rows[bad[0]]} (from 0)",
            expected=f"a largest number between {LEAST:g} and {MOST:g}, or zeros",
            got=f"{size[bad[0]]:g}",
            remedy="divide all vectors by one number; the cosine stays the same",
        )


def encode_texts(encoder: str | SentenceEncoder | Callable[[list[str]], Any], texts: Sequence[str]) -> Floats:
    """(n, d) float32 vectors of texts.

    encoder  the name of an installed model, a model's folder, an object with `encode`, or a function of a list
    Raises EncoderError if there is no such model, or the extra `sentfold[text]` is missing; DataError for an answer
    that is no matrix of finite numbers.
    """
    if isinstance(encoder, str):
        from sentfold.fold.texts import find_text_encoder

        return check_vectors(find_text_encoder(encoder).encode(list(texts)).vectors, encoder)[0]
    call = cast(Callable[[list[str]], Any], getattr(encoder, "encode", encoder))
    array = as_array(call(list(texts)))
    if array.ndim != 2 or len(array) != len(texts):
        raise DataError(
            "an encoder gave no matrix", where=type(encoder).__name__, expected=f"shape ({len(texts)}, d)",
            got=f"shape {array.shape}",
        )  # fmt: skip
    return check_vectors(array, type(encoder).__name__)[0]


def as_array(vectors: Any) -> npt.NDArray[Any]:
    """An array of what numpy can read, or of tensors of torch with any type of numbers, wherever they are.

    Raises DataError for tensors of several shapes.
    """
    if isinstance(vectors, list | tuple) and vectors and hasattr(vectors[0], "detach"):
        arrays = [as_array(vector) for vector in vectors]
        if len(shapes := sorted({array.shape for array in arrays})) > 1:
            raise DataError(
                "tensors have several shapes", where="vectors", expected="a vector of each text, of one length",
                got=", ".join(map(str, shapes[:2])), remedy="of batches: give torch.cat(batches)",
            )  # fmt: skip
        return np.stack(arrays)
    if hasattr(vectors, "detach"):
        dense = vectors.detach() if str(vectors.layout) == "torch.strided" else vectors.detach().to_dense()
        short = dense.is_floating_point() and dense.dtype.itemsize < 4  # numpy has no bfloat16
        vectors = dense.float().cpu() if short else dense.cpu()
    return np.asarray(vectors)


# --- files --------------------------------------------------------------------------------------------


def _read_npy(path: Path) -> tuple[Columns, dict[str, npt.NDArray[Any]]]:
    try:
        with path.open("rb") as stream:
            begin = stream.read(6)
        if begin[:2] == ZIP:  # by which numpy tells an archive, whatever its name is
            _refuse_oversize(path)
        elif begin != NPY:  # else numpy takes it for a pickle, and advises to load it
            raise ValueError(f"a file that begins with {begin!r}")
        content = np.load(path, allow_pickle=False)
        arrays = {"": content} if isinstance(content, np.ndarray) else dict(content)
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):
            raise ValueError("a member that is no array")
        return {}, arrays
    except Exception as error:  # noqa: BLE001  # a damaged zip raises one of many
        raise DataError(
            "vectors cannot be read",
            where=str(path),
            expected="an array of numbers that numpy saved",
            got=first_line(error),
        ) from None


def _refuse_oversize(path: Path) -> None:
    """Raise ValueError for an archive of arrays that unpacks to far more than its own size.

    Other packings than numpy's own may hold more than a member says that it does.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    unpacked = sum(member.file_size for member in members)
    if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
        raise ValueError("a member that is packed in another way than numpy does")
    if unpacked > FREE + RATIO * path.stat().st_size:
        raise ValueError(
            f"arrays of {unpacked:,} bytes in a file of {path.stat().st_size:,}; if it is your own, save it by np.save"
        )


def _read_safetensors(path: Path) -> tuple[Columns, dict[str, npt.NDArray[Any]]]:
    from safetensors.numpy import load_file

    try:
        return {}, dict(load_file(path))
    except Exception as error:  # noqa: BLE001  # it raises errors of its own, and KeyError or TypeError for bfloat16
        raise DataError(
            "vectors cannot be read",
            where=str(path),
            expected="safetensors of float16, 32 or 64",
            got=first_line(error),
        ) from None


def _read_lists(path: Path) -> tuple[Columns, dict[str, npt.NDArray[Any]]]:
    """The columns of texts, others by their names alone, and the vectors: those whose names say so.

    Other lists of numbers, such as places on a map or the numbers of tokens, are never taken for vectors.
    """
    table = read_arrow_table(path)
    lists = [field.name for field in table.schema if any(test(field.type) for test in LISTS)]
    named = [name for name in table.column_names if VECTORS.search(name) and _may_be_vectors(table.column(name))]
    halves = [name for names in HALVES.values() if set(names) <= set(lists) for name in names]
    plain = [name for name in named if name in NAMES]
    vectors = ["vector"] if "vector" in named else halves or plain or named
    if not vectors:
        raise DataError(
            "a file has no column of vectors", where=str(path),
            expected="lists of numbers in a column `vector`, or in one with vec or emb in its name",
            got=f"the columns {', '.join(table.column_names[:20])}" + ", ..." * (table.num_columns > 20),
            remedy="call the column of the lists `vector`; of a column for each number (pandas): "
            "vectors = df[numbers].to_numpy().tolist(), and pd.DataFrame({'text': df.text, 'vector': vectors})",
        )  # fmt: skip
    columns: Columns = {}
    arrays = {}
    for name in sorted(table.column_names, key=lambda name: name in lists):  # what cannot be read is refused first
        column = table.column(name).combine_chunks()
        if name in vectors:
            arrays[name] = matrix_of(column, f"{path}, column {name}")
        else:
            numbers = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
            if name == "text" and numbers:  # pandas writes texts that are numerals as 7, or 7.0 where one is absent
                columns[name] = [None if cell is None else class_name(cell) for cell in column.to_pylist()]
            else:
                columns[name] = column.to_pylist() if _are_texts(column.type) else []
    return columns, arrays


def _may_be_vectors(column: pa.ChunkedArray) -> bool:
    """Whether a column has lists, or vectors in a form that cannot be read: lists as texts, bytes, structs, tensors."""
    if _are_texts(column.type):
        return next((text for text in (cell.as_py() for cell in column) if text), "").lstrip().startswith("[")
    kind = column.type.storage_type if isinstance(column.type, pa.BaseExtensionType) else column.type
    return pa.types.is_nested(kind) or any(test(column.type) for test in BYTES)


def _are_texts(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(test(kind) for test in TEXTS)


def matrix_of(column: pa.Array, where: str) -> npt.NDArray[Any]:
    """Lists of any Arrow kind, all of one length, as (n, d). Raises DataError."""
    if not any(test(column.type) for test in LISTS):
        raise DataError(
            "vectors are no numbers", where=where, expected="lists of numbers", got=str(column.type),
            remedy="save the vectors as lists of numbers in a column `vector` (from texts: json.loads; from bytes of "
            "numpy: np.frombuffer)",
        )  # fmt: skip
    if column.null_count:
        raise DataError("a vector is missing", where=where, expected="no nulls", got=f"{column.null_count} nulls")
    lengths = np.array(pa.compute.list_value_length(column)) if len(column) else np.empty(0)
    if not len(lengths) or (lengths != lengths[0]).any():
        row = int(np.flatnonzero(lengths != lengths[0])[0]) if len(lengths) else 0
        raise DataError(
            "lists are not of one length", where=f"{where}, row {row + 1}", expected="vectors of one length",
            remedy="if other lists are the vectors, call their column `vector`",
        )  # fmt: skip
    values = column.flatten()
    if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)) or values.null_count:
        raise DataError("vectors are no numbers", where=where, expected="lists of numbers", got=str(column.type))
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(column), -1)


# --- which vector is whose --------------------------------------------------------------------------


def _texts_of(columns: Columns, data: Dataset, path: Path) -> list[str] | None:
    """The column of texts: the one called `text`, with titles or these alone, or the only one with texts of the data.

    None without. Raises DataError for several.
    """
    texts = {name: cells for name, cells in columns.items() if not set(cells).isdisjoint(data.texts)}
    if plain := columns.get("text"):
        titles = columns.get("title") or [None] * len(plain)
        joined = [join_title(*parts) for parts in zip(titles, plain, strict=True)]  # as data with titles are read
        stripped = [join_title(text) for text in plain]
        forms = (plain, stripped, joined, titles)
        return max(forms, key=lambda one: len(set(one) & set(data.texts)))
    if len(texts) > 1:
        raise DataError(
            "it cannot be told which column has the texts", where=str(path), expected="a column `text`",
            got=", ".join(texts), remedy="call the column of texts `text`",
        )  # fmt: skip
    return next(iter(texts.values()), None)


def _refuse_columns(columns: Columns, data: Dataset, path: Path) -> None:
    """Raise DataError if a file whose vectors are matched by their place has other columns, such as identifiers.

    The rows may be in another order than the data. Then each text would get the vector of another text.
    """
    others = [name for name in columns if data.texts or name != "text"]
    texts = [] if data.texts else [class_name(text) for text in columns.get("text", ())]
    numbers = [int(text) if text.isdecimal() and len(text) < 19 else -1 for text in texts]  # of 0164 too
    named = {*np.unique(data.rows).tolist()}
    if numbers != [*range(len(texts))] and 2 * len(named & {*numbers}) > len(named):
        raise DataError(
            "pairs of numbers can be rows of the vectors, or texts that the vectors are of", where=data.name,
            expected="rows, and vectors without texts; or texts of which one is no number", got=f"a column `text` with "
            f"these numbers in {path}", remedy="if they are rows, leave the column `text` out; if they are texts or "
            "identifiers, write the row of each vector into the pairs in the place of its text",
        )  # fmt: skip
    alone = "leave the other columns out (pandas: vectors[['vector']].reset_index(drop=True))"
    if not data.texts:
        expected = "vectors alone: row 0, 1, 2, ... as the pairs call them"
        remedy = f"write the row of each vector into the pairs, in the place of its number; then {alone}"
    elif data.kind == "pairs":
        expected = f"a column `text`, one vector for each text; or vectors alone, in the order of {data.name}"
        remedy = f"sort the rows as those of {data.name} are, by what tells a pair; then leave the other columns out"
    else:
        expected = f"a column `text`; or vectors alone, in the order of {data.name}"
        remedy = f"add the texts by their identifiers (pandas: vectors.merge(data, on='id')); or, if in order, {alone}"
    if others:
        raise DataError(
            "a file of vectors has other columns and no texts", where=str(path), expected=expected,
            got=f"columns {', '.join(others[:5])}", remedy=remedy,
        )  # fmt: skip


def _join(
    arrays: Mapping[str, npt.NDArray[Any]], data: Dataset, path: Path
) -> tuple[npt.NDArray[Any], tuple[int, int] | None]:
    """One array out of those of a file, and the lengths of the two that it was made of, if there were two."""
    names = HALVES.get(data.kind, ())
    if names and set(names) == set(arrays):
        first, second = (arrays[name] for name in names)
        if first.ndim == second.ndim == 2 and first.shape[1] == second.shape[1]:
            return np.concatenate([first, second]), (len(first), len(second))
    if len(arrays) != 1:
        raise DataError(
            "a file does not hold one array of vectors",
            where=str(path),
            expected="one array" + (f", or two of one width: {', '.join(names)}" if names else ""),
            got=", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "none",
            remedy=_one_array(arrays, data),
        )
    array = next(iter(arrays.values()))
    if data.kind == "pairs" and array.ndim == 3 and array.shape[1] == 2:
        return np.concatenate([array[:, 0], array[:, 1]]), (len(array), len(array))
    return array, None


def _halves_of(data: Dataset) -> tuple[int, int]:
    """The lengths of two arrays."""
    first = len(data.documents) if data.kind == "queries" else len(data.rows)
    return first, data.cells - first


def _one_array(arrays: Mapping[str, npt.NDArray[Any]], data: Dataset) -> str:
    """What to do with several arrays, or none."""
    shapes = {array.shape for array in arrays.values()}
    if data.kind == "pairs" and len(arrays) == 2 and len(shapes) == 1:
        return "call the arrays of the two texts of each pair left and right"
    if not arrays:
        return "save the vectors as lists of floats, in a column `vector`"
    return (
        f"if the vectors are in the order of {data.name}, save them alone; else as Parquet with columns text, vector. "
        "Of columns of lists the one called `vector` is read"
    )


def _match(array: npt.NDArray[Any], texts: list[str], data: Dataset, path: Path) -> tuple[npt.NDArray[Any], Ints, int]:
    """The vectors of the data's texts, then those of all other texts; their rows; and how many others there are."""
    place = {text: row for row, text in reversed(list(enumerate(texts)))}
    if "" in data.texts and "" not in place:  # documents without a text need no vector
        array = np.concatenate([array, np.zeros_like(array[:1])])
        place[""] = len(texts)
    missing = [text for text in data.texts if text not in place]
    if missing:
        raise DataError(
            "a text has no vector", where=str(path), expected=f"the {len(data.texts)} texts of {data.name}",
            got=f"{len(missing)} are missing, the first: {shorten(missing[0])}",
            remedy="add them. A column `text` is taken for the texts: if another one was encoded, call that one `text`",
        )  # fmt: skip
    rows = [place[text] for text in data.texts]
    used = set(data.texts)
    again = np.array([row for row, text in enumerate(texts) if text in used and place[text] != row], dtype=np.int64)
    first = np.array([place[texts[row]] for row in again], dtype=np.int64)
    wanted = "one vector for each text"
    remedy = "keep one of the two rows"
    if data.kind == "pairs":
        remedy += f"; {TWO_PROMPTS}"
    if data.kind == "queries":
        remedy = "of an encoder with two prompts save two arrays: np.savez(FILE, corpus=..., queries=...)"
    _refuse_apart(array, again, first, path, wanted, lambda row: texts[row], remedy)
    others = [row for text, row in place.items() if text not in used and str(text).strip()]
    taken = np.array([*rows, *sorted(others)])
    return array[taken], taken, len(others)


def _place(
    array: npt.NDArray[Any], halves: tuple[int, int] | None, data: Dataset, path: Path
) -> tuple[npt.NDArray[Any], Ints | None]:
    """Vectors without texts, told by their number, one per distinct text or per cell; and their rows, if others.

    halves  the lengths of the two arrays that they were in, if there were two
    """
    if not data.texts:
        most = int(data.rows.max())
        if halves or most >= len(array):
            raise DataError(
                "a pair names a row that the vectors do not have", where=data.name,
                expected=f"one array of rows, as the pairs number them from 0, in {path}",
                got=f"two arrays of {halves} vectors" if halves else f"row {most} of rows 0 to {len(array) - 1}",
            )  # fmt: skip
        return array, None
    remedy = "save the vectors with their texts in Parquet: columns text, vector"
    given = halves or len(array)
    if given != _halves_of(data) if halves else given not in _counts_of(data):
        raise DataError(
            "there are not as many vectors as texts", where=str(path), expected=f"{_wanted(data, halves)} for "
            f"{data.name}", got=str(given), remedy=remedy,
        )  # fmt: skip
    if given in data.unclear:
        raise DataError(
            "vectors without texts can be in two orders", where=str(path), expected="vectors with their texts",
            got=f"{given} vectors for {data.name}, " + (
                "where the judgements have the queries in another order than queries.jsonl" if data.kind == "queries"
                else "a number that fits the texts with and without those of the rows that are left out"
            ),
            remedy=remedy + "; or " + (
                "write the judgements in the order of queries.jsonl, if the vectors have it" if data.kind == "queries"
                else "remove the rows with an empty text, and make the vectors again"
            ),
        )  # fmt: skip
    if len(array) == len(data.texts):
        return array, None
    if data.kind != "queries":
        _check_copies(array, data, path)
    return array[data.copies], data.copies


def _wanted(data: Dataset, halves: tuple[int, int] | None) -> str:
    """How many vectors there may be, in words."""
    if halves:
        return f"two arrays, {' and '.join(HALVES[data.kind])}, of {_halves_of(data)} vectors"
    if data.kind == "queries":
        return f"{data.cells} (one per document and query)"
    return f"{len(data.texts)} (one per distinct text)" + f" or {data.cells} (one per cell)" * bool(data.cells)


def _counts_of(data: Dataset) -> set[int]:
    """How many vectors there may be in one array."""
    return {data.cells} if data.kind == "queries" else {len(data.texts), data.cells}


def _check_copies(array: npt.NDArray[Any], data: Dataset, path: Path) -> None:
    """Raise DataError unless cells of one text have one vector: otherwise the order of the vectors is another."""
    rows = data.rows.T.ravel()
    wanted, remedy = "one vector per row", "save the vectors with their texts in Parquet: columns text, vector"
    if data.kind == "pairs":
        wanted = "one vector per row of the first column, then one per row of the second"
        remedy += f"; {TWO_PROMPTS}"
    _refuse_apart(
        array, np.arange(len(rows)), data.copies[rows], path, wanted, lambda cell: data.texts[rows[cell]], remedy,
        "two vectors of one text differ, so the order of the vectors may be another",
    )  # fmt: skip


def _refuse_apart(
    array: npt.NDArray[Any], rows: Ints, first: Ints, path: Path, wanted: str, text_of: Callable[[int], str],
    remedy: str, what: str = "two vectors of one text differ",
) -> None:  # fmt: skip
    """Raise DataError unless each of some rows has the vector of the first row of the same text, or nearly so."""
    sample = np.asarray(array[:: max(1, len(array) // SAMPLE)], dtype=np.float64)
    with np.errstate(all="ignore"):  # values that are not finite are refused later, by their row
        usual = float(np.median(np.linalg.norm(sample - sample.mean(axis=0), axis=1)))
    for start in range(0, len(rows), BLOCK):
        part = slice(start, start + BLOCK)
        own, other = (np.asarray(array[places[part]], dtype=np.float64) for places in (rows, first))
        with np.errstate(all="ignore"):
            apart = np.linalg.norm(own - other, axis=1) > ALIKE * usual
        if apart.any():
            row = int(rows[start + int(np.flatnonzero(apart)[0])])
            raise DataError(
                what, where=f"{path}, row {row} (from 0)", expected=wanted,
                got=f"text {shorten(text_of(row))} with two vectors", remedy=remedy,
            )  # fmt: skip
