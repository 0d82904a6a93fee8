"""Which column of a table plays which role: by its name, else by its contents, else as the user says."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sentfold.data.tables import TRUE_WORDS, DataError, Table, is_score

# Names that columns of public data sets have, by role; the first that a table has is taken.
NAMES: Mapping[str, tuple[str, ...]] = {
    "left": (
        "left", "sentence1", "text1", "sentence_1", "text_1", "sent1", "s1", "a", "question1", "premise",
        "sentence_a", "text_a", "row1", "query", "anchor", "question",
    ),
    "right": (
        "right", "sentence2", "text2", "sentence_2", "text_2", "sent2", "s2", "b", "question2", "hypothesis",
        "sentence_b", "text_b", "row2", "candidate", "positive", "document", "passage", "answer", "response",
        "sentence",
    ),
    "score": (
        "score", "similarity", "similarity_score", "relatedness", "relatedness_score", "rating", "gold", "label",
        "is_duplicate", "match", "relevance", "target",
    ),
    "text": (
        "text", "sentence", "content", "question", "review", "utterance", "message", "query", "title", "document",
    ),
    "label": ("label", "labels", "class", "category", "intent", "target", "topic", "label_text", "label_name"),
    "split": ("split", "part", "partition"),
}  # fmt: skip
# Names of columns that number the rows, besides names such as `user_id`.
NUMBERS = ("id", "ids", "idx", "index", "row", "no", "nr", "number", "pid", "qid", "uuid", "guid")
PANDAS = ("__index_level_", "unnamed:")  # how pandas calls the numbers of rows
FEWEST = 10  # rows from which on 0, 1, 2, ... or 1, 2, 3, ... are no scores
KINDS = {"pairs": ("left", "right", "score"), "labels": ("text", "label"), "sentences": ("text",)}


def assign_columns(table: Table, wanted: Mapping[str, str]) -> tuple[str, dict[str, str], bool]:
    """The kind of a table (pairs, labels, sentences), the column of each role, and whether any was guessed.

    wanted  role -> column, as the user gave them
    Raises DataError where a column is missing, or where neither names nor contents tell.
    """
    _check_wanted(table, wanted)
    roles = dict(wanted)
    named, shown = _by_names(table, wanted), _by_contents(table, wanted)
    # One column with a name like `question` makes no sentences of a table that holds pairs by its contents.
    classes = ("labels",) if not wanted and _repeats(table, shown.get("label")) else ()
    for guess, kinds in (
        (named, ("pairs", "labels")), (shown, ("pairs", *classes)), (named, ("sentences",)), (shown, KINDS),
    ):  # fmt: skip
        for kind in kinds:
            needed = KINDS[kind]
            if all(role in guess for role in needed) and set(wanted) <= {*needed, "split"}:
                roles = {role: guess[role] for role in (*needed, "split") if role in guess}
                return kind, roles, roles != dict(wanted)
    raise DataError(
        "it cannot be told which columns to use",
        where=table.name,
        expected="two columns of texts and one of scores; one of texts and one of labels; or one of texts",
        got=", ".join(table.columns),
        remedy=_example(table),
    )


def unused_texts(table: Table, roles: Mapping[str, str]) -> list[str]:
    """The columns of texts of a table that no role takes."""
    return [name for name in table.columns if name not in roles.values() and _is_text(table.columns[name])]


def unused_classes(table: Table, roles: Mapping[str, str]) -> list[str]:
    """The columns of a table that no role takes, and that hold names of classes."""
    return [name for name in table.columns if name not in roles.values() and _repeats(table, name)]


def _repeats(table: Table, name: str | None) -> bool:
    """Whether a column has names of classes in all rows: several, and each of them twice or more often, on average."""
    values = [] if name is None else table.columns[name]
    cells = ["" if value is None or value != value else str(value).strip() for value in values]
    return all(cells) and 2 <= len(set(cells)) <= len(cells) / 2


def _example(table: Table) -> str:
    """How to name the columns, with the names of the file's own columns where texts can be told from others."""
    texts = [name for name in table.columns if _is_text(table.columns[name])]
    others = [name for name in table.columns if name not in texts and not _has_row_names(table, name)]
    if len(texts) == 2 and others:
        others.sort(key=lambda name: _plain(name) not in NAMES["score"])
        why = f"; scores are numbers, or {', '.join(TRUE_WORDS)}"
        return f'name them: --columns "left={texts[0]},right={texts[1]},score={others[0]}"{why}'
    return "name them: --columns left=a,right=b,score=c, or --columns text=a,label=b"


def parse_columns(text: str | None) -> dict[str, str]:
    """`left=a,right=b,score=c` as role -> column, whose name may have commas. Raises DataError."""
    roles: dict[str, str] = {}
    # A comma without a role behind it belongs to the name before it.
    for part in re.split(r",(?=[^,=]*=|\s*$)", text or ""):
        role, sign, column = (piece.strip() for piece in part.partition("="))
        if part.strip() and (not sign or role not in NAMES or not column):
            raise DataError(
                "--columns cannot be read",
                where="--columns",
                expected=f"role=column, separated by commas; roles: {', '.join(NAMES)}",
                got=part,
            )
        if part.strip():
            roles[role] = column
    return roles


def _check_wanted(table: Table, wanted: Mapping[str, str]) -> None:
    for role, column in wanted.items():
        if column not in table.columns:
            raise DataError(
                f"there is no column '{column}'",
                where=f"{table.name}, {role}",
                expected=f"one of: {', '.join(table.columns)}",
                got=column,
                remedy="correct --columns",
            )


def _by_names(table: Table, wanted: Mapping[str, str]) -> dict[str, str]:
    plain = {_plain(name): name for name in reversed(table.columns)}
    found = {role: next((plain[name] for name in names if name in plain), "") for role, names in NAMES.items()}
    return {role: column for role, column in found.items() if column} | dict(wanted)


def _by_contents(table: Table, wanted: Mapping[str, str]) -> dict[str, str]:
    """Two texts and one other column are pairs, one text and one other are labels, a text alone is sentences."""
    split = _by_names(table, {}).get("split", "")
    free = [name for name in table.columns if name not in {*wanted.values(), split}]
    texts = [name for name in free if _is_text(table.columns[name])]
    others = [name for name in free if name not in texts and not _has_row_names(table, name)]
    found = dict(wanted) | ({"split": split} if split and "split" not in wanted else {})
    if len(texts) == 2:
        numbers = [name for name in others if all(is_score(cell) for cell in table.columns[name])]
        known = _by_names(table, {}).get("score", "")
        numbers = [known] if known in numbers else numbers
        found |= {"left": texts[0], "right": texts[1]} | ({"score": numbers[0]} if len(numbers) == 1 else {})
    elif len(texts) == 1:
        found |= {"text": texts[0]} | ({"label": others[0]} if len(others) == 1 else {})
    elif not texts and len(free) == 1 and not wanted:
        found |= {"text": free[0]}
    return found | dict(wanted)


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def _has_row_names(table: Table, name: str) -> bool:
    """Whether a column only tells the rows apart: by its name, or by numbers one after another."""
    plain = _plain(name)
    if plain in NUMBERS or plain.endswith(("_id", "uid")) or plain.startswith(PANDAS):
        return True
    cells = [str(cell) for cell in table.columns[name]]
    first = int(cells[0]) if cells[0] in ("0", "1") else -1
    return first >= 0 and len(cells) >= FEWEST and cells == [str(row) for row in range(first, first + len(cells))]


def _is_text(values: list[object]) -> bool:
    """Whether at least half of the values are strings of several words."""
    return 2 * sum(isinstance(value, str) and " " in value.strip() for value in values) >= len(values)
