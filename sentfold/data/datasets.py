"""Pairs, labels, queries and sentences: distinct texts, items that refer to them by row, and what is odd about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sentfold.data.columns import assign_columns, describe_columns, refuse_classes
from sentfold.data.tables import (
    LONGEST,
    SPLITS,
    TRUE_WORDS,
    DataError,
    Table,
    is_score,
    left_out_notes,
    parse_number,
    read_table,
    refuse_value,
    shorten,
)
from sentfold.forms import compose

Ints = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
Kind = Literal["pairs", "labels", "queries", "sentences"]

SCORE = f"a number, or one of {', '.join(TRUE_WORDS)}"
THOUSANDS = re.compile(r"[1-9]\d{0,2}(\.\d{3})+", re.ASCII)
WHOLE = re.compile(r"-?\d+\.0", re.ASCII)  # a whole number as pandas writes it
# What spreadsheets, databases and programs write for a cell without a value; pandas reads them so, too.
MISSING = {"#NA", "\\N", "<NA>", "NA", "N/A", "N/a", "n/a", "NULL", "null", "NaN", "nan", "NaT"}
ERROR = re.compile(r"#NV|#[NН]/\w|#\w+/0!|#[^\W\d_a-z]+[!?]")  # of a spreadsheet: #NV, #N/A, #N/D, #DIV/0!, #BEZUG!
# So many rows, and such a share of them, have one word as their text before a note asks what the word means.
LEAST_REPEATS, REPEATED_SHARE = 3, 0.02
# Between labels of a text, as forms, label tools and dumps write them; and what can also be a part of one name.
JOINED = re.compile(r"[>\]}]?\s*[,;|#/、，；·•]\s*[<\[{]?|^[<\[{]|[>\]}]\s*[<\[{]|[>\]}]$")
PERHAPS = re.compile(r"\s+(?:and|or|und|et|y)\s+|[\s&+:@\\<>\[\]{}-]")
CODE = 0.75  # so far from all others, in units of their range, is a score that a note asks about
CLASSES = SCORES = 8  # that a note names
MANY_ROWS = 100_000  # from which on nearly all may not be repeats
JUDGED = 20  # texts from which on a verdict is given


@dataclass(frozen=True)
class Dataset:
    """Distinct texts, and items that refer to them by row.

    name    of the file
    kind    pairs (rows (m, 2), values: scores), labels (rows (m,), values: classes from 0), queries (rows (q,) of
            the queries, values: the document that is the query itself or -1), or sentences (rows (m,), no values)
    texts   the distinct texts: those of the first column in their order, then the new ones of the second. For
            queries all documents, then all queries. Empty where a file names rows of the vectors instead of texts
    splits  "train", "dev" or "test" per item; () without
    classes     the names of the labels
    documents   (D,) rows of the documents; relevant: per query, row of a document -> grade; names: of all texts
    parts       of queries that several files judge, the part of each, also where these are not train and test
    copies      (n,) for vectors that come for every cell of the columns: where each distinct text is first. The cells
                of queries are all documents, then all queries, also those that are left out
    cells       number of these cells
    unclear     numbers of vectors, of one array or of two, that fit two orders: that of the texts here, and that of all
                texts of a file of which rows are left out, or of queries as the judgements have them
    notes       how the file was read, and what is odd, in words
    files       that were read
    """

    name: str
    kind: Kind
    texts: tuple[str, ...]
    rows: Ints
    values: Float64
    splits: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    documents: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    relevant: tuple[Mapping[int, float], ...] = ()
    names: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    copies: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    cells: int = 0
    unclear: frozenset[int | tuple[int, int]] = frozenset()
    notes: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def numbered_rows(self) -> Ints:
        """The rows, numbered anew from 0 without gaps: a file may name row 10^18, and nothing is that long."""
        return np.unique(self.rows, return_inverse=True)[1].reshape(self.rows.shape)


def read_dataset(path: Path, columns: Mapping[str, str] | None = None, *, judged: bool = True) -> Dataset:
    """The data of a file or folder, its columns known by their names unless given as role -> column.

    judged  False where texts alone matter: labels are not read, and all scores are 0

    Raises DataError that names file, line and column. Cost: the file in memory.
    """
    from sentfold.data.beir import is_beir, read_beir, with_titles

    if is_beir(path, columns or {}):
        return read_beir(path)
    table = with_titles(read_table(path, (columns or {}).values()), columns or {})
    kind, roles = assign_columns(table, columns or {})
    if judged:
        refuse_classes(table, roles, columns or {})
    else:
        roles = {role: column for role, column in roles.items() if role in ("text", "left", "right")}
        kind = "sentences" if kind == "labels" else kind
    notes = [describe_columns(roles, columns or {}), *table.notes, *left_out_notes(table, roles.values())]
    build = {"pairs": _read_pairs, "labels": _read_labels, "sentences": _read_sentences}[kind]
    data = build(table, roles, notes)
    if judged and len(data) > MANY_ROWS and 10 * (different := len(np.unique(data.rows, axis=0))) < len(data):
        # Some kilobytes of Parquet can hold millions, of which each is resampled.
        raise DataError(
            "nearly all rows come again", where=table.name,
            expected=f"above {MANY_ROWS:,} rows, a tenth of different texts or pairs at least",
            got=f"{different:,} different ones in {len(data):,} rows",
            remedy="keep each once, with the mean of its scores or its commonest class",
        )  # fmt: skip
    return replace(data, files=tuple(dict.fromkeys(Path(file) for file, _, _ in table.places)))


def _read_pairs(table: Table, roles: Mapping[str, str], notes: list[str]) -> Dataset:
    left, right = roles["left"], roles["right"]
    kept = _drop_empty(table, (left, right), notes)
    scores = parse_scores(table, roles["score"], kept) if "score" in roles else np.zeros(len(kept))
    splits = _parse_splits(table, roles, kept, notes)
    if all(_is_row(table.columns[name][row]) for name in (left, right) for row in kept):
        pairs = np.array([[int(class_name(table.columns[name][row])) for name in (left, right)] for row in kept])
        notes.append(f"{left} and {right} are rows of the vectors, counted from 0")
        data = Dataset(table.name, "pairs", (), pairs, scores, splits)
    else:
        texts, copies, rows = distinct_texts(table, (left, right), kept)
        pairs = rows.reshape(2, -1).T
        unclear = _unclear(table, (left, right), kept)
        data = Dataset(
            table.name, "pairs", texts, pairs, scores, splits, copies=copies, cells=rows.size, unclear=unclear
        )  # fmt: skip
    if "score" in roles:
        notes += odd_pairs(pairs, scores, splits, lambda item: table.place(kept[item]))
    return replace(data, notes=tuple(notes))


def describe_classes(names: Iterable[object]) -> str:
    """The classes with their numbers of texts, the largest first: a code for no class, such as -1, is seen there."""
    counts = Counter(names).most_common()
    shown = [f"{shorten(name, 40) if len(str(name)) > 40 else name} ({count:,})" for name, count in counts[:CLASSES]]
    return f"{len(counts):,} classes: {', '.join(shown)}" + ", ..." * (len(counts) > CLASSES)


def describe_scores(scores: npt.NDArray[Any]) -> str:
    """The scores with their numbers of pairs if they are few, else their range: codes such as 99 are seen there."""
    values, counts = np.unique(scores, return_counts=True)
    if len(values) > SCORES:
        return f"scores from {values[0]:.9g} to {values[-1]:.9g}, median {np.median(scores):.9g}"
    return f"scores: {', '.join(f'{value:.9g} ({count:,})' for value, count in zip(values, counts, strict=True))}"


def refuse_label(label: object, refuse: Callable[..., DataError]) -> None:
    """Raise DataError for a label that names no class: none, a word for none, or several labels.

    refuse  (what, expected=, remedy=) -> the error, with the place of the label
    """
    written = str(label).strip()
    ends = written[:1] + written[-1:]
    lists = {"[]": r"[,\s]", "{}": "[,:]", "()": ","}  # numpy writes lists with blanks
    is_list = ends in lists and re.search(lists[ends], written)
    if is_list or isinstance(label, (list, tuple, Set, dict, np.ndarray)):
        raise refuse(
            "a text has a list of labels", expected="one class a text",
            remedy="keep one label of each text, or make a file for each label with yes and no. If it is the name of a "
            "class, write the name without brackets",
        )  # fmt: skip
    if label is None or (isinstance(label, float) and label != label) or not written:  # NaN is not itself
        raise refuse("a label is empty", expected="a class", remedy="leave out the rows without a label")
    if written in MISSING or ERROR.fullmatch(written):
        raise refuse(
            "a label may be missing", expected="a class",
            remedy="leave out the rows without a label; if it is the name of a class, call the class otherwise",
        )  # fmt: skip


def refuse_joined(names: Sequence[str], *, where: str) -> None:
    """Raise DataError for the name of a class that joins the names of others: a text has several labels."""
    if found := _joined(names, JOINED):
        raise DataError(
            "a label joins others", where=where, expected="one class a text",
            got=f"{shorten(found)}, in {names.count(found):,} texts",
            remedy="keep one label of each text, or make a file for each label with yes and no. If it is a number, "
            "write 3.5 for 3,5 and 1649 for 1,649; if it is a class of its own, call the class otherwise",
        )  # fmt: skip


def joined_notes(names: Sequence[str]) -> list[str]:
    """A note on a class whose name is those of others with blanks or such signs: some forms join several labels so."""
    if not (found := _joined(names, PERHAPS)):
        return []
    return [f"the class {shorten(found)} has the names of others: if texts have several labels, keep one of each text"]


def _joined(names: Sequence[str], between: re.Pattern[str]) -> str:
    """The first class whose name is made of those of others; "" if there is none."""
    parts = {name: tuple(filter(None, map(str.strip, between.split(name)))) for name in sorted(set(names))}
    known = {*parts.values()}
    return next((n for n, own in parts.items() if len(own) > 1 and all((part,) in known for part in own)), "")


def _read_labels(table: Table, roles: Mapping[str, str], notes: list[str]) -> Dataset:
    kept = _drop_empty(table, (roles["text"],), notes)
    names = []
    for row in kept:
        value = table.columns[roles["label"]][row]
        if isinstance(value, list) and len(value) == 1:  # as doccano writes the one class of a text
            (value,) = value
        refuse_label(value, partial(refuse_value, table, row, roles["label"]))
        names.append(class_name(value))
    classes = tuple(sorted(set(names), key=_natural))
    refuse_joined(names, where=f"{table.name}, column {roles['label']}")
    spellings = Counter(name.casefold() for name in classes)
    if twins := [name for name in classes if spellings[name.casefold()] > 1]:
        notes.append(f"{len(twins)} classes differ from others in capitals alone; the first: {twins[0]}")
    notes += [describe_classes(names), *joined_notes(names)]
    if len(classes) < 2:
        raise DataError(
            "there is one class alone", where=f"{table.name}, column {roles['label']}", expected="at least two classes",
            got=classes[0],
        )  # fmt: skip
    single = [name for name, count in Counter(names).items() if count == 1]
    if len(names) >= JUDGED and 2 * len(single) > len(names):
        raise DataError(
            "most texts have a class of their own, so no neighbour can tell it",
            where=f"{table.name}, column {roles['label']}",
            expected="classes of several texts; numbers that rank texts are no classes",
            got=f"{len(single)} of {len(names)} texts, such as {single[0]}",
            remedy="give another column, or join the labels to classes",
        )
    number = {name: place for place, name in enumerate(classes)}
    values = np.array([float(number[name]) for name in names])
    splits = _parse_splits(table, roles, kept, notes)
    refuse_hidden(values, splits, classes, where=table.name)
    new = {int(value) for value, split in zip(values, splits, strict=False) if split == "test"}
    new -= {int(value) for value, split in zip(values, splits, strict=False) if split != "test"}
    if new:
        notes.append(f"{len(new)} classes of the test part are in no other part; the first: {classes[min(new)]}")
    texts, copies, rows = distinct_texts(table, (roles["text"],), kept)
    notes += odd_labels(rows, values, splits, lambda item: table.place(kept[item]))
    return Dataset(
        table.name, "labels", texts, rows, values, splits, classes, copies=copies, cells=len(rows), notes=tuple(notes)
    )  # fmt: skip


def refuse_hidden(values: npt.NDArray[Any], splits: Sequence[str], classes: Sequence[str], *, where: str) -> None:
    """Raise DataError if no text of the test part has a class that another part has: then no text can be right.

    values  (n,) of each text, the number of its class in `classes`
    """
    is_test = np.array([split == "test" for split in splits], dtype=bool)
    if is_test.any() and not is_test.all() and not np.isin(values[is_test], values[~is_test]).any():
        raise DataError(
            "the test part has no class of the other parts",
            where=where,
            expected="labels of the same classes in all parts",
            got=f"the classes of test: {', '.join(classes[int(value)] for value in np.unique(values[is_test])[:5])}",
            remedy="if the labels of test are hidden, as -1 in GLUE, call another part test and leave this one out",
        )


def _read_sentences(table: Table, roles: Mapping[str, str], notes: list[str]) -> Dataset:
    kept = _drop_empty(table, (roles["text"],), notes)
    texts, copies, rows = distinct_texts(table, (roles["text"],), kept)
    again = np.setdiff1d(np.arange(len(rows)), copies).tolist()
    notes += _counted("sentences repeat earlier ones and count once", again, lambda item: table.place(kept[item]))
    return Dataset(
        table.name, "sentences", texts, rows, np.empty(0), copies=copies, cells=len(rows), notes=tuple(notes)
    )


# --- cells --------------------------------------------------------------------------------------------


def distinct_texts(table: Table, columns: Sequence[str], kept: list[int]) -> tuple[tuple[str, ...], Ints, Ints]:
    """The distinct texts of the columns one after the other, the first cell of each, and the row of each cell."""
    row_of: dict[str, int] = {}
    copies: list[int] = []
    rows = np.empty(len(columns) * len(kept), dtype=np.int64)
    for cell, (column, row) in enumerate((column, row) for column in columns for row in kept):
        value = table.columns[column][row]
        if not isinstance(value, str):
            raise refuse_value(table, row, column, "a text is of another type", expected="a text")
        if len(value) > LONGEST:
            raise DataError(
                "a text is too long", where=table.place(row, column), expected=f"at most {LONGEST:,} characters",
                got=f"{len(value):,}", remedy="cut the text, or remove its row",
            )  # fmt: skip
        if value not in row_of:
            row_of[value] = len(copies)
            copies.append(cell)
        rows[cell] = row_of[value]
    return tuple(row_of), np.array(copies, dtype=np.int64), rows


def _unclear(table: Table, columns: tuple[str, str], kept: list[int]) -> frozenset[int | tuple[int, int]]:
    """See Dataset.unclear. The distinct texts of all rows can be as many as those of the rows `kept`, in another order.

    columns  left and right
    """

    def distinct(names: Sequence[str], rows: Iterable[int]) -> tuple[str, ...]:
        cells = (table.columns[name][row] for name in names for row in rows)
        return tuple(dict.fromkeys(cell for cell in cells if isinstance(cell, str) and not _is_empty(cell)))

    found: set[int | tuple[int, int]] = set()
    if len(kept) < len(table):
        for names in (columns, columns[:1], columns[1:]):
            of_kept, of_all = distinct(names, kept), distinct(names, range(len(table)))
            if len(of_kept) == len(of_all) and of_kept != of_all:
                if names == columns:
                    found.add(len(of_kept))
                elif len(of_kept) == len(kept):  # no text comes twice in this column, so its texts count as pairs do
                    found.add((len(kept), len(kept)))
    return frozenset(found)


def parse_scores(table: Table, column: str, kept: list[int]) -> Float64:
    """The scores of the rows. Raises DataError for one that is no finite number, and for scores that are all equal."""
    scores = np.empty(len(kept))
    for place, row in enumerate(kept):
        value = table.columns[column][row]
        word = str(value).strip().lower()
        try:
            scores[place] = TRUE_WORDS[word] if word in TRUE_WORDS else parse_number(word)
        except ValueError:
            others = Counter(
                word for word in map(str, (table.columns[column][row] for row in kept)) if not is_score(word)
            )
            remedy = (
                "write 3.5 for 3,5 and 1649 for 1,649" if "," in word else "write grades as numbers, such as 2, 1, 0"
            )
            remedy = "write 1 for a match and 0" if len(others) == 2 and "," not in word else remedy
            raise DataError(
                "a score is no number", where=table.place(row, column), expected=SCORE,
                got=", ".join(f"{shorten(word)} in {count:,} rows" for word, count in others.most_common(3)),
                remedy=f"{remedy}; or remove these rows",
            ) from None  # fmt: skip
        if not np.isfinite(scores[place]):
            raise refuse_value(table, row, column, "a score is not finite", expected="a finite number")
    _refuse_thousands(table, column, kept)
    if (scores == scores[0]).all():
        raise DataError(
            "all scores are equal, so there is nothing to rank", where=f"{table.name}, column {column}",
            expected="at least two different scores", got=f"{len(scores)} times {scores[0]:g}",
        )  # fmt: skip
    return scores


def _refuse_thousands(table: Table, column: str, kept: list[int]) -> None:
    """Raise DataError where all scores are whole numbers, above 100 too, or have three digits behind a point."""
    cells = [table.columns[column][row] for row in kept]
    words = [cell.strip() if isinstance(cell, str) else "" for cell in cells]  # a number of JSON has no such points
    pointed = [place for place, word in enumerate(words) if THOUSANDS.fullmatch(word)]
    whole = [int(word) for word in words if len(word) <= 3 and word.isdecimal()]
    if pointed and len(pointed) + len(whole) == len(words) and max(whole, default=0) > 100:
        word = words[pointed[0]]
        raise refuse_value(
            table, kept[pointed[0]], column, "a point may stand between thousands", expected="numbers as 1049 or 1.05",
            remedy=f"write {word.replace('.', '')} for {word}; if {word} is a fraction, write {word}0",
        )  # fmt: skip


# Soft hyphen, zero-width and variation characters, marks of the direction of writing. Tags of flags and joiners within
# a word or an emoji tell one name from another, so they stay.
UNSEEN = re.compile("[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe0e\ufe0f\ufeff]")
JOINERS = "\u200c\u200d"  # which say nothing at the ends of a name


def class_name(label: object) -> str:
    """The name of a class, with single blanks and letters composed: a file of macOS can write one as two characters.

    Without characters that cannot be seen, such as U+200B, which copying from a web page or a PDF brings along. 1 for
    1.0 too, as pandas writes a column with gaps.
    """
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    seen = " ".join(UNSEEN.sub("", str(label)).strip(JOINERS).split())
    name = compose(seen or " ".join(str(label).split()))
    return name.removesuffix(".0") if WHOLE.fullmatch(name) else name


def _drop_empty(table: Table, columns: Sequence[str], notes: list[str]) -> list[int]:
    """The rows whose texts are not empty. Raises DataError if fewer than two are left."""
    empty = [
        row for row in range(len(table)) if any(_is_empty(table.columns[column][row]) for column in columns)
    ]  # fmt: skip
    gone = set(empty)
    kept = [row for row in range(len(table)) if row not in gone]
    if len(kept) < 2:
        raise DataError(
            "a file has too few rows", where=table.name, expected="at least two rows with texts", got=str(len(kept))
        )
    if empty:
        notes.append(f"{len(empty)} rows with an empty text are left out; the first: {table.place(empty[0])}")
    cells = Counter(str(table.columns[column][row]) for column in columns for row in kept)
    (text, most), (_, next_most) = [*cells.most_common(2), ("", 0), ("", 0)][:2]
    is_frequent = most >= max(LEAST_REPEATS, REPEATED_SHARE * len(kept), 5 * next_most) and len(text.split()) == 1
    if is_frequent and not all(map(_is_row, cells)):  # a row of vectors can be in many pairs
        notes.append(f"{most} rows have the text {shorten(text)}; does it mean that there is none? then leave them out")
    return kept


def _is_empty(value: Any) -> bool:
    missing = value is None or (isinstance(value, float) and value != value)  # NaN, as Python writes it to JSON
    return missing or (isinstance(value, str) and not value.strip())


def _is_row(value: Any) -> bool:
    text = class_name(value)  # which knows 267.0, as pandas writes a column that had a gap
    return text.isdecimal() and len(text) < 19  # more digits fit into no row number


def _natural(name: str) -> tuple[int, float, str]:
    return (0, float(name), name) if name.removeprefix("-").isdecimal() else (1, 0.0, name)


def _parse_splits(table: Table, roles: Mapping[str, str], kept: list[int], notes: list[str]) -> tuple[str, ...]:
    """train, dev or test per item; () where the column does not have both train and test."""
    if "split" not in roles:
        return ()
    said = [str(table.columns[roles["split"]][row]).strip().lower() for row in kept]
    splits = tuple(SPLITS.get(name, name) for name in said)
    unknown = next((place for place, name in enumerate(splits) if name not in ("train", "dev", "test")), None)
    if {"train", "test"} <= set(splits) and unknown is not None:
        raise refuse_value(
            table, kept[unknown], roles["split"], "a split has another name", expected="train, dev or test",
            remedy="rename it, or leave its rows out",
        )  # fmt: skip
    if not {"train", "test"} <= set(splits):
        names = ", ".join(sorted(set(splits))[:5])
        notes.append(f"the column {roles['split']} has no train and test parts ({names}); folds are made instead")
        return ()
    return splits


# --- what is odd ------------------------------------------------------------------------------------


def odd_pairs(pairs: Ints, scores: Float64, splits: Sequence[str], place: Callable[[int], str]) -> list[str]:
    """What is odd about pairs, in words: copies, contradictions, scores off the scale, texts in two parts."""
    keys = [tuple(sorted(pair)) for pair in pairs.tolist()]
    same = [int(item) for item in np.flatnonzero(pairs[:, 0] == pairs[:, 1])]
    beyond = np.flatnonzero(_far_scores(scores))
    marked = len(np.unique(scores)) > 2 and bool(((scores == -1) | (scores >= 0)).all())
    unknown = np.flatnonzero(scores == -1) if marked else beyond[:0]
    return [
        describe_scores(scores),
        *_counted("pairs of a text with itself", same, place),
        *_repeats("pairs", keys, scores.tolist(), place),
        *_counted("scores are far from all others; do they mean that there is none?", beyond.tolist(), place),
        *_counted("scores are -1 and all others at least 0; does -1 mean that there is none?", unknown.tolist(), place),
        *_leaks([set(key) for key in keys], splits, place),
    ]


def _far_scores(scores: Float64) -> npt.NDArray[np.bool_]:
    """Scores far from 98% of all, and a value that is far from all others, as codes such as 99 or -9 are.

    A value written in nines is asked about where it is three times as far from the next as others are from each other.
    """
    low, high = np.quantile(scores, [0.01, 0.99])
    reach = 3 * (high - low)
    far = (reach > 0) & ((scores < low - reach) | (scores > high + reach))
    values = np.unique(scores)
    if len(values) > 3:
        far |= (scores == values[-1]) & (values[-1] - values[-2] >= CODE * (values[-2] - values[0]))
        far |= (scores == values[0]) & (values[1] - values[0] >= CODE * (values[-1] - values[1]))
        gaps = np.diff(values)
        for code, gap in ((values[0], gaps[0]), (values[-1], gaps[-1])):
            if set(f"{abs(code):g}") == {"9"} and gap >= 1 and gap >= 3 * np.median(gaps):
                far |= scores == code
    return np.asarray(far, dtype=np.bool_)


def odd_labels(rows: Ints, values: Float64, splits: Sequence[str], place: Callable[[int], str]) -> list[str]:
    """What is odd about labelled texts, in words: copies, contradictions, texts in two parts."""
    keys = [(row,) for row in rows.tolist()]
    return [*_repeats("texts", keys, values.tolist(), place), *_leaks([set(key) for key in keys], splits, place)]


def _repeats(
    what: str, keys: Sequence[tuple[int, ...]], values: Sequence[float], place: Callable[[int], str]
) -> list[str]:
    first: dict[tuple[int, ...], int] = {}
    copies: list[int] = []
    contradictions: list[int] = []
    for item, key in enumerate(keys):
        before = first.setdefault(key, item)
        if before != item:
            (copies if values[before] == values[item] else contradictions).append(item)
    return [
        *_counted(f"{what} repeat earlier ones", copies, place),
        *_counted(f"{what} repeat earlier ones with another value", contradictions, place),
    ]


def _leaks(texts: Sequence[set[int]], splits: Sequence[str], place: Callable[[int], str]) -> list[str]:
    seen = {row for rows, split in zip(texts, splits, strict=False) if split != "test" for row in rows}
    leaks = [item for item, split in enumerate(splits) if split == "test" and texts[item] & seen]
    return _counted("items of the test part share a text with the other parts", leaks, place)


def _counted(what: str, items: Sequence[int], place: Callable[[int], str]) -> list[str]:
    return [f"{len(items)} {what}; the first: {place(items[0])}"] if items else []


def count_parts(splits: Iterable[str]) -> str:
    """`5452 train, 500 test`."""
    counts = Counter(splits)
    return ", ".join(f"{counts[part]} {part}" for part in ("train", "dev", "test") if counts[part])
