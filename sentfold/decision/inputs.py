"""Tasks from arrays or from a data set, the vectors that they need, and the vectors that they leave free."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from functools import partial
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sentfold.data.datasets import (
    Dataset,
    class_name,
    describe_classes,
    describe_scores,
    joined_notes,
    refuse_hidden,
    refuse_joined,
    refuse_label,
)
from sentfold.data.tables import DataError, shorten
from sentfold.data.vectors import as_array, encode_texts, refuse_index, refuse_masked, refuse_other_order
from sentfold.decision.encoders import count_notes, encode_by_name, object_notes
from sentfold.decision.tasks import LabelsTask, PairsTask, QueriesTask, Task
from sentfold.forms import forms

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

ROUNDING = 1e-5  # of a vector's largest number, by which two vectors of one text may differ
REACH = 256  # rows of similar projections that a row is compared with
IN_VAIN = 16  # comparisons a row, on average, that may show no copy: made-up files have vectors that all seem alike
BLOCK = 8_192  # rows that are held in float64 at a time

Three = tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]
Two = tuple[npt.ArrayLike, npt.ArrayLike]


def embed_texts(
    vectors: Any, pairs: Three | None, labels: Two | npt.ArrayLike | None, splits: Any = ()
) -> tuple[npt.NDArray[Any], Three | None, Two | npt.ArrayLike | None, tuple[str, ...], list[str]]:
    """Vectors, pairs or labels that name rows of these, the texts, and notes on texts that an encoder took otherwise.

    An array is returned as it is, without texts.

    vectors  an array; or an encoder: a name, an object with `encode`, or a function of a list of texts. `pairs` and
             `labels` then hold texts where they otherwise hold rows, and each distinct text is encoded once
    splits   part of each item, to compare the order of the tables alone
    Raises DataError where there are no texts, for masked values, and for tables of pandas in two orders; EncoderError.
    """
    named = zip(("left", "right", "scores"), () if pairs is None else pairs, strict=False)
    refuse_masked(vectors=vectors, **dict(named))
    for part in labels if isinstance(labels, tuple) else (labels,):
        refuse_masked(labels=part)
    if pairs is not None and (not hasattr(pairs, "__len__") or isinstance(pairs, Mapping) or len(pairs) != 3):
        raise DataError(
            "pairs are not given by columns", where="pairs", expected="pairs=(left, right, scores)",
            got=f"{len(pairs):,} parts" if hasattr(pairs, "__len__") else type(pairs).__name__,
            remedy="of a list of rows: left, right, scores = zip(*rows); of a table: (df.left, df.right, df.score)",
        )  # fmt: skip
    if pairs is not None:
        refuse_other_order(left=pairs[0], right=pairs[1], scores=pairs[2], splits=splits)
        refuse_index(vectors)
    elif isinstance(labels, tuple) and len(labels) == 2:
        refuse_other_order(texts=labels[0], classes=labels[1], splits=splits)
        refuse_index(vectors)
    else:
        refuse_other_order(vectors=vectors, labels=labels, splits=splits)
    if hasattr(vectors, "toarray"):
        raise DataError(
            "vectors are a sparse matrix", where="vectors", expected="an array", got=type(vectors).__name__,
            remedy="give vectors.toarray()",
        )  # fmt: skip
    if not (isinstance(vectors, str) or callable(vectors) or hasattr(vectors, "encode")):
        array = as_array(vectors)
        if array.ndim == 0:  # of a generator, a mapping, a Path or None, numpy makes one object
            raise DataError(
                "vectors are neither an array nor an encoder", where="vectors", got=type(vectors).__name__,
                expected="an (n, d) array; or a name as text, an object with `encode`, a function of a list of texts",
            )  # fmt: skip
        if array.dtype == object:  # as a column of arrays, a table of pandas' Float32, or rows of Decimal
            with suppress(ValueError, TypeError):
                array = np.stack([_numbers(vector) for vector in (array.ravel() if array.shape[1:] == (1,) else array)])
        if array.ndim != 2:
            raise DataError(
                "vectors are no matrix", where="vectors", expected="shape (n, d)", got=f"shape {array.shape}",
            )  # fmt: skip
        return array, pairs, labels, (), []
    columns: Sequence[Any] = pairs[:2] if pairs is not None else labels[:1] if isinstance(labels, tuple) else ()
    cells = [list(np.asarray(column, dtype=object).ravel()) for column in columns]
    if not cells or not all(any(isinstance(text, str) for text in column) for column in cells):
        raise DataError(
            "an encoder needs texts", where="pairs, labels", got="no texts",
            expected="pairs=(left texts, right texts, scores) or labels=(texts, classes)",
        )  # fmt: skip
    for number, column in enumerate(cells):
        if absent := [row for row, text in enumerate(column) if not isinstance(text, str) or not text.strip()]:
            raise DataError(
                "a text is missing or empty", where=f"column {number} of the texts, row {absent[0]} (both from 0)",
                expected="a text in each row", got=f"{column[absent[0]]!r:.40}; {len(absent):,} such rows",
                remedy="leave out rows without a text, as the commands do, and write a number as its text: str(5)",
            )  # fmt: skip
    row_of = {text: row for row, text in enumerate(dict.fromkeys(text for column in cells for text in column))}
    notes: list[str] = []
    if isinstance(vectors, str):
        encoded = encode_by_name(vectors, list(row_of))
        x, notes = encoded.vectors, count_notes(vectors, encoded.fallbacks)
    else:
        x, notes = encode_texts(vectors, list(row_of)), object_notes(vectors, list(row_of))
    rows = [np.array([row_of[text] for text in column]) for column in cells]
    if pairs is not None:
        return x, (rows[0], rows[1], pairs[2]), labels, tuple(row_of), notes
    assert isinstance(labels, tuple)
    return x, None, (rows[0], labels[1]), tuple(row_of), notes


def first_copies(*vectors: npt.NDArray[Any], texts: Sequence[str] = ()) -> Ints:
    """(n,) for each row the first row with the same vector in each of the arrays, or with the same text.

    A text under another spelling is no new text to an encoder that gives both one vector. Zero vectors have no
    direction: each is a row of its own. Rows that only some of the arrays have are left out. Vectors that differ by no
    more than rounding count as equal, as batches of an encoder give them. Cost O(n d).
    """
    n = min((len(array) for array in vectors), default=len(texts))
    copies, directed, row_of, row_of_text = np.arange(n), np.zeros(n, dtype=bool), dict[bytes, int](), dict[str, int]()
    for row in range(n):
        values = [array[row] + 0.0 for array in vectors]  # + 0.0 makes 0 of -0
        if any(part.any() for part in values):  # a digest has 16 bytes, a vector thousands
            digest = hashlib.blake2b(b"".join(part.tobytes() for part in values), digest_size=16).digest()
            copies[row], directed[row] = row_of.setdefault(digest, row), True
        if row < len(texts):
            copies[row] = copies[row_of_text.setdefault(texts[row], row)]
    first = np.flatnonzero(directed & (copies == np.arange(n)))
    joined = np.arange(n)
    if len(first) > 1:
        joined[first] = first[_join_near(vectors, first)]
    return joined[copies]


def _join_near(vectors: Sequence[npt.NDArray[Any]], rows: Ints) -> Ints:
    """(m,) for each of some rows the place of the first one that is equal but for rounding, directly or by others.

    Rows are put in the order of one projection. Each is compared with the following ones while all projections agree,
    with at most REACH of them, and with fewer where most comparisons are in vain. Cost O(IN_VAIN m d + REACH m).
    """
    keys, sizes = _project(vectors, rows)
    order = np.argsort(keys[0, :, 0], kind="stable")
    keys, sizes, ordered = keys[:, order], sizes[:, order], rows[order]
    chain: Ints = np.arange(len(rows))
    edges, in_vain = np.empty((2, 0), dtype=np.int64), 0
    for step in range(1, min(REACH, len(rows) - 1) + 1):
        left = np.flatnonzero(keys[0, step:, 0] - keys[0, :-step, 0] <= 4 * ROUNDING * sizes[0, :-step])
        if not len(left) or in_vain > IN_VAIN * len(rows):
            break
        left = left[chain[left] != chain[left + step]]
        reach = 4 * ROUNDING * sizes[:, left, None]
        left = left[(np.abs(keys[:, left + step] - keys[:, left]) <= reach).all(axis=(0, 2))]
        near = _near(vectors, ordered, sizes, left, left + step)
        left, in_vain = left[near], in_vain + int((~near).sum())
        if len(left):
            edges = np.concatenate([edges, [left, left + step]], axis=1)
            graph = coo_array((np.ones(edges.shape[1]), (edges[0], edges[1])), shape=(len(rows), len(rows)))
            chain = connected_components(graph, directed=False)[1].astype(np.int64)
    least = np.full(int(chain.max()) + 1, len(rows))
    np.minimum.at(least, chain, order)
    first = np.empty_like(order)
    first[order] = least[chain]
    return first


def _project(vectors: Sequence[npt.NDArray[Any]], rows: Ints) -> tuple[Floats, Floats]:
    """(arrays, m, 3) projections of rows on three directions, and (arrays, m) the largest number of each row.

    A hash of the rows decides the directions. Of fixed ones a file could have vectors at right angles to all three,
    which would take hundreds of times as long.
    """
    keys = np.empty((len(vectors), len(rows), 3), dtype=np.float32)  # whose rounding is a hundredth of ROUNDING
    sizes = np.empty(keys.shape[:2], dtype=np.float32)
    for place, array in enumerate(vectors):
        digest = hashlib.blake2b(digest_size=8)
        for start in range(0, len(rows), BLOCK):
            digest.update(array[rows[start : start + BLOCK]].tobytes())
        axes = np.random.default_rng([*digest.digest()]).standard_normal((array.shape[1], 3))
        axes /= np.linalg.norm(axes, axis=0)
        for start in range(0, len(rows), BLOCK):
            part = np.asarray(array[rows[start : start + BLOCK]], dtype=np.float64)
            sizes[place, start : start + BLOCK] = np.abs(part).max(axis=1)
            keys[place, start : start + BLOCK] = part @ axes
    return keys, sizes


def _near(
    vectors: Sequence[npt.NDArray[Any]], rows: Ints, sizes: Floats, left: Ints, right: Ints
) -> npt.NDArray[np.bool_]:
    """Whether the vectors at two places differ by no more than rounding, in each of the arrays."""
    near = np.ones(len(left), dtype=bool)
    for array, size in zip(vectors, sizes, strict=True):
        for start in range(0, len(left), BLOCK):
            one, two = left[start : start + BLOCK], right[start : start + BLOCK]
            apart = np.abs(np.subtract(array[rows[one]], array[rows[two]], dtype=np.float64)).max(axis=1)
            near[start : start + BLOCK] &= apart <= ROUNDING * size[one]
    return near


def kin_of(copies: Ints, texts: Sequence[str]) -> Ints:
    """(n,) for each row the first row with the same vector, or with the same text but for case, punctuation and blanks.

    Such texts are not independent: they are held out together. Without texts the copies alone count. Cost O(n).
    """
    if not texts:
        return copies
    first_of = dict[bytes, int]()
    keys = (hashlib.blake2b(form.encode("utf-8", "surrogatepass"), digest_size=16).digest() for form in forms(texts))
    same = np.array([first_of.setdefault(key, row) for row, key in enumerate(keys)])
    rows = np.arange(len(texts))
    edges = (np.concatenate([rows, rows]), np.concatenate([copies[: len(texts)], same]))
    graph = coo_array((np.ones(2 * len(rows)), edges), shape=(len(rows), len(rows)))
    _, first, kin = np.unique(connected_components(graph, directed=False)[1], return_index=True, return_inverse=True)
    return np.concatenate([first[kin], copies[len(texts) :]])


def copy_notes(copies: Ints, texts: Sequence[str] = ()) -> tuple[str, ...]:
    """How many rows are copies, and how many are near copies, in words; nothing where there are none."""
    rows, kin, notes = np.arange(len(copies)), kin_of(copies, texts), []

    def name(row: int) -> str:
        return shorten(texts[row]) if row < len(texts) else f"row {row} (from 0)"

    if len(again := np.flatnonzero(copies != rows)):
        notes.append(
            f"{len(again):,} texts have the vector of an earlier one and count as the same text; the first: "
            f"{name(again[0])}, as {name(copies[again[0]])}"
        )
    if len(near := np.flatnonzero((copies == rows) & (kin != rows))):
        notes.append(
            f"{len(near):,} texts differ from an earlier one in case, punctuation and blanks alone and are held out "
            f"together with it; the first: {name(near[0])}, as {name(kin[near[0]])}"
        )
    return tuple(notes)


def task_of(data: Dataset, copies: Ints) -> tuple[Task, Ints, Ints]:
    """The task of a data set, the rows of the vectors that it needs, and the free rows. Raises DataError.

    copies  (n,) of each vector, as first_copies gives them
    """
    kin = kin_of(copies, data.texts)
    if data.kind == "pairs":
        return pairs_task(copies, data.rows, data.values, kin)
    if data.kind == "labels":
        return labels_task(copies, data.rows, data.values.astype(np.int64), kin)
    if data.kind == "queries":
        held_out = np.isin(kin, kin[data.rows])
        held_out[data.documents] = False  # documents are known whenever a query is answered
        held_out[data.rows] = True
        empty = np.array([row for row in data.documents if not data.texts[row]], dtype=np.int64)
        held_out[empty] = True  # a space learns nothing from vectors of no text
        same = data.values.astype(np.int64)
        task = QueriesTask(data.rows, data.documents, data.relevant, same, kin, empty)
        return task, np.arange(len(copies)), np.flatnonzero(~held_out)
    raise DataError(
        "sentences without scores or labels cannot decide between spaces", where=data.name,
        expected="pairs with scores, texts with labels, or queries with relevant documents",
        remedy="give some of them scores or labels",
    )  # fmt: skip


def make_task(
    copies: Ints,
    pairs: Three | None,
    labels: Two | npt.ArrayLike | None,
    texts: Sequence[str] = (),
) -> tuple[Task, Ints, Ints]:
    """The task of arrays, the rows of the vectors that it needs, and the free rows; see task_of. Raises DataError.

    texts  of the vectors, where they are known
    """
    n, kin = len(copies), kin_of(copies, texts)
    if (pairs is None) == (labels is None):
        raise DataError("nothing to decide by", where="pairs, labels", expected="one of the two", got="both or neither")
    if pairs is not None:
        left, right, scores = (_numbers(part) for part in pairs)
        if left.shape != right.shape:
            got = f"shapes {left.shape} and {right.shape}"
            raise DataError("pairs are not of two rows each", where="left, right", expected="one shape (m,)", got=got)
        return pairs_task(copies, np.column_stack([_rows(left, n, "left"), _rows(right, n, "right")]), scores, kin)
    if isinstance(labels, tuple) and len(labels) == 2:
        return labels_task(copies, _rows(_numbers(labels[0]), n, "rows"), _classes(labels[1]), kin)
    return labels_task(copies, _rows(np.arange(n), n, "rows"), _classes(labels), kin)


def _classes(labels: Any) -> npt.NDArray[Any]:
    """The labels as an array; names without blanks around them, as in a file.

    Raises DataError for a label that names no class: numpy would take NaN for a class called `nan`.
    """
    if not hasattr(labels, "__len__") or isinstance(labels, Mapping | Set):  # of a mapping the keys would count
        raise DataError(
            "labels are no list", where="labels", expected="a class for each row", got=type(labels).__name__
        )
    array = as_array(labels) if hasattr(labels, "__array__") else None
    cells = list(labels) if array is None else (array.ravel() if array.shape[1:] == (1,) else array).tolist()
    for row, label in enumerate(cells):
        refuse_label(label, partial(DataError, where=f"labels, row {row} (from 0)", got=shorten(label)))
    names = [class_name(label) for label in cells]
    refuse_joined(names, where="labels")
    return np.array(names, dtype=object)


def model_notes(vectors: object) -> list[str]:
    """What has to be known of a model that was given by its name."""
    from sentfold.decision.encoders import learned_notes, prompt_notes

    return [*learned_notes(vectors), *prompt_notes(vectors)] if isinstance(vectors, str) else []


def value_notes(pairs: Three | None, labels: Two | npt.ArrayLike | None) -> list[str]:
    """What the scores or the classes are, in words."""
    if pairs is not None:
        return [describe_scores(np.asarray(_numbers(pairs[2]), dtype=np.float64))]
    classes = _classes(labels[1] if isinstance(labels, tuple) and len(labels) == 2 else labels).tolist()
    return [describe_classes(classes), *joined_notes([str(name) for name in classes])]


def pairs_task(copies: Ints, rows: Ints, scores: npt.NDArray[Any], kin: Ints) -> tuple[Task, Ints, Ints]:
    """Spearman of pairs of rows; see make_task. kin: as kin_of gives it."""
    _check_values(rows, scores, "scores")
    needed, places, near, free = _needed(copies, rows, kin)
    return PairsTask(places, np.asarray(scores, dtype=np.float64), near), needed, free


def labels_task(copies: Ints, rows: Ints, classes: npt.NDArray[Any], kin: Ints) -> tuple[Task, Ints, Ints]:
    """Nearest neighbours among labelled rows; see make_task. kin: as kin_of gives it."""
    numbers = np.unique(classes, return_inverse=True)[1]
    _check_values(rows, numbers, "classes")
    needed, places, near, free = _needed(copies, rows, kin)
    if (near == near[0]).all():
        raise DataError(
            "all labelled texts are forms of one text", where="texts", got=f"{len(rows):,} labels",
            expected="texts that differ in more than case, punctuation and spaces", remedy="look at the texts",
        )  # fmt: skip
    return LabelsTask(places, numbers.astype(np.int64), near), needed, free


def _needed(copies: Ints, rows: Ints, kin: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """The rows that items need, the items' places among them, the first kin of each among them, and the free rows."""
    needed, places = np.unique(copies[rows], return_inverse=True)
    _, first, near = np.unique(kin[needed], return_index=True, return_inverse=True)
    return needed, places.reshape(rows.shape), first[near], np.flatnonzero(~np.isin(kin, kin[needed]))


def refuse_one_cosine(task: Task, values: npt.NDArray[np.float64]) -> None:
    """Raise DataError where all pairs have one cosine, as vectors of one number have: there is nothing to rank."""
    if isinstance(task, PairsTask) and len(values) and (values == values[0]).all():
        raise DataError(
            "all pairs have one cosine, so there is nothing to rank", where="vectors",
            expected="pairs at different angles", got=f"{len(values):,} times {values[0]:.3f}",
            remedy="look at the vectors: have they more than one dimension, and a sign?",
        )  # fmt: skip


def check_splits(splits: Sequence[str], task: Task) -> None:
    """Raises DataError unless there are none, or train and test (and dev) for every item, and known labels."""
    known, items = {"train", "dev", "test"}, len(task.keys)
    if len(splits) and (len(splits) != items or not {"train", "test"} <= set(splits) <= known):
        got = f"{len(splits)}: {', '.join(sorted(map(str, set(splits))))}"
        raise DataError("splits do not fit", where="splits", expected=f"{items}, of train, dev and test", got=got)
    if isinstance(task, LabelsTask):
        numbers = [f"number {number} in their order" for number in range(int(task.labels.max()) + 1)]
        refuse_hidden(task.labels, splits, numbers, where="labels, splits")


def _numbers(values: npt.ArrayLike) -> npt.NDArray[Any]:
    """An array, of numbers where these are objects, as pandas and databases have them: 1.0, Decimal("1.0")."""
    array = as_array(values)
    if array.dtype == object:
        kinds = {bool if isinstance(value, bool | np.bool_) else Number for value in array.ravel()}
        if kinds == {bool}:
            return array.astype(bool)
        if kinds == {Number} and all(isinstance(value, Number) for value in array.ravel()):
            with suppress(TypeError, ValueError):  # of a complex number
                return array.astype(np.float64)
    return array


def _rows(rows: npt.NDArray[Any], n: int, name: str) -> Ints:
    if rows.dtype.kind == "f" and np.isfinite(rows).all() and (rows == np.floor(rows)).all():
        rows = rows.astype(np.int64)  # as pandas writes a column that had a gap
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(rows) < 2 or rows.min() < 0 or rows.max() >= n:
        got = f"{rows.dtype}, shape {rows.shape}"
        raise DataError(f"{name} are no rows of the vectors", where=name, expected=f"integers, 0 to {n - 1}", got=got)
    return rows.astype(np.int64)


def _check_values(rows: Ints, values: npt.NDArray[Any], name: str) -> None:
    if values.shape != rows.shape[:1] or values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        expected = f"{len(rows)} finite numbers"
        raise DataError(
            f"{name} do not fit", where=name, expected=expected, got=f"{values.dtype}, shape {values.shape}"
        )
    if (values == values[0]).all():
        raise DataError(f"all {name} are equal", where=name, expected="at least two different ones", got=str(values[0]))
