"""Which column of a table plays which role: as the user says, else by known names. Contents can only refuse."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from sentfold.data.tables import IN_NO_COLUMN, TRUE_WORDS, DataError, Table, is_number, plain_name

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
        "labels", "is_duplicate", "match", "relevance", "target",
    ),
    "text": (
        "text", "sentence", "content", "question", "review", "utterance", "message", "query", "title", "document",
    ),
    "label": ("label", "labels", "class", "category", "intent", "target", "topic"),
    "split": ("split", "part", "partition"),
}  # fmt: skip
# Names of columns that are no text, score or label: they tell rows apart, or say where the rows come from. Further
# ones are names such as `user_id`, and those that pandas gives the numbers of rows.
IDLE_NAMES = (
    "id", "ids", "idx", "index", "row", "no", "nr", "number", "pid", "qid", "uuid", "guid", "hash", "url", "uri",
    "link", "path", "file", "filename", "file_name", "date", "time", "timestamp", "created_at", "author", "user",
    "lang", "language", "source", "genre",
)  # fmt: skip
PANDAS = ("__index_level_", "unnamed:")
# Names of a third text, as of triples, whose score is about all three.
THIRD = re.compile(r"(^|_)neg(ative)?s?(_?\d+)?$|^(text|sentence|sent|s|passage|document|answer|response)_?(3|c)$")
KINDS = {"pairs": ("left", "right", "score"), "labels": ("text", "label"), "sentences": ("text",)}


def assign_columns(table: Table, wanted: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The kind of a table (pairs, labels, sentences), and the column of each role.

    wanted  role -> column, as the user gave them
    Raises DataError where a column is missing, and where names leave a choice: several columns have known names of one
    role, or there are more texts, or columns that may be labels.
    """
    require_columns(table, wanted)
    named = _by_names(table, wanted) | dict(wanted)
    kind = next((kind for kind, roles in KINDS.items() if set(roles) <= set(named) and _fits(kind, wanted)), None)
    if kind is None:
        found = list(dict.fromkeys(named.values()))
        error = _unclear(table, f"known of these: {', '.join(found) or 'none'}")
        if not found and len(table.columns) > 1 and not _names_columns(table):
            error.remedy = (
                "if the first line is an item and no header, put a header above it, separated as the items are: "
                "left,right,score or text,label; "
                f"else {error.remedy}"
            )
        raise error
    roles = {role: named[role] for role in (*KINDS[kind], "split") if role in named}
    for role in roles.keys() - wanted.keys():
        if len(several := _known(table, role, wanted)) > 1:
            raise _unclear(table, f"each of {', '.join(several)} may be the {role}")
    if kind == "pairs" and not set(KINDS[kind]) <= wanted.keys():
        used = [roles[role] for role in KINDS[kind]]
        rest = [name for name in table.columns if name not in roles.values() and THIRD.search(_plain(name))]
        if rest := [name for name in rest if len({v for v in table.columns[name] if not _is_value(v)}) > 2]:
            error = _unclear(table, f"besides {', '.join(used)} there is {', '.join(rest)}")
            option = _option(roles)
            error.remedy = f"if each {used[2]} is about {used[0]} and {used[1]} alone: {option}"
            raise error
    if "text" in roles and "text" not in wanted and (rest := _unused(table, roles)):
        raise _unclear(table, f"besides {', '.join(roles[role] for role in KINDS[kind])} there is {', '.join(rest)}")
    return kind, roles


def refuse_classes(table: Table, roles: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Raise DataError for pairs whose score, taken by its name, may be a class."""
    if {"left", "score"} <= set(roles) and "score" not in wanted and _may_be_classes(table, roles["score"]):
        error = _unclear(table, f"{roles['score']} may be a class, or a grade")
        option = _option(roles)
        error.remedy = f"if larger numbers are for pairs that are more alike: {option}"
        raise error


def describe_columns(roles: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """A note: the column of each role, and which of them were taken by their names."""
    named = ", ".join(f"{role} = {column}" for role, column in roles.items())
    by_name = ", ".join(role for role in roles if role not in wanted)
    return f"columns: {named}" + (f" ({by_name} by name; --columns overrides)" if by_name else "")


def _unused(table: Table, roles: Mapping[str, str]) -> list[str]:
    """The columns without a role that may have one: of sentences all, of labelled texts those of texts and names.

    Columns with an idle name, with one value in all rows, or that say the label in other words have none.
    """
    rest = [name for name in table.columns if name not in roles.values() and not _is_idle(name)]
    if "label" not in roles:
        return [name for name in rest if _is_plain(table.columns[name])]
    labels = [str(label) for label in table.columns[roles["label"]]]
    found = []
    for name in rest:
        values = [str(value) for value in table.columns[name]]
        one_to_one = len(set(zip(values, labels, strict=True))) == len(set(values)) == len(set(labels))
        if len(set(values)) > 1 and not one_to_one and not all(map(_is_value, table.columns[name])):
            found.append(name)
    return found


def _may_be_classes(table: Table, column: str) -> bool:
    """Whether a score is called a label, and has three or more values, all whole, such as those of NLI."""
    values = {str(value) for value in table.columns[column] if is_number(value)}
    return _plain(column) in NAMES["label"] and len(values) > 2 and all(float(value) % 1 == 0 for value in values)


def _is_value(cell: object) -> bool:
    """Whether a cell is a number, nothing, or no plain value."""
    return cell is None or isinstance(cell, (dict, list)) or not str(cell).strip() or is_number(cell)


def _fits(kind: str, wanted: Mapping[str, str]) -> bool:
    return set(wanted) <= {*KINDS[kind], "split"}


def _unclear(table: Table, why: str) -> DataError:
    first = [f"{note}. If they may be left out, " for note in table.notes if IN_NO_COLUMN in note]
    return DataError(
        "it cannot be told which columns to use",
        where=table.name,
        expected="two columns of texts and one of scores; one of texts and one of labels; or one of texts",
        got=f"{', '.join(table.columns)} ({why})",
        remedy="".join(first) + _example(table),
    )


def _option(roles: Mapping[str, str]) -> str:
    """The option for a shell, which runs what a name of a stranger has in `$()`, also in double quotes.

    Advice to rename columns instead where the option would be read as other names.
    """
    columns = ",".join(f"{role}={column}" for role, column in roles.items())
    try:
        is_read = parse_columns(columns) == roles
    except DataError:
        is_read = False
    return f"--columns {shlex.quote(columns)}" if is_read else "first rename columns without a name, or with `,` or `=`"


def _example(table: Table) -> str:
    """How to name the columns, with those of the file where texts can be told from others."""
    texts = [name for name in table.columns if _is_text(table.columns[name]) and not _is_idle(name)]
    known = [name for name in _known(table, "text", {}) if name in texts and _plain(name) != "title"]
    best = [*texts[-1:], *known[:1]][-1] if texts else ""
    others = [name for name in table.columns if name not in texts and not _is_idle(name)]
    parts = dict(zip(("split",), _known(table, "split", {}), strict=False))
    others = [name for name in others if name not in parts.values()]
    order = (*NAMES["score"], *NAMES["label"])
    others.sort(key=lambda name: order.index(_plain(name)) if _plain(name) in order else len(order))
    if 1 <= len(texts) <= 2 and others:
        forms = [f"of texts with classes: {_option({'text': best, 'label': others[0], **parts})}"]
        if len(texts) == 2:
            scores = f"scores are numbers, or {', '.join(TRUE_WORDS)}"
            pairs = _option({"left": texts[0], "right": texts[1], "score": others[0], **parts})
            forms.insert(0, f"of pairs: {pairs}, where {scores}")
        return f"name them, {'; '.join(forms)}; of texts alone: {_option({'text': best})}"
    if len(table.columns) == 1:
        only = next(iter(table.columns))
        option = _option({"text": only})
        if _names_columns(table):
            return f"if its values are the texts: {option}"
        return f"if this is the first text, put a line above it: text. If it is the header: {option}"
    header = "" if _names_columns(table) else "; the first line must be a header"
    return f"name them: --columns left=a,right=b,score=c, or --columns text=a,label=b{header}"


def _names_columns(table: Table) -> bool:
    """Whether its form has names of columns and no header, by its ending."""
    return table.name.lower().endswith((".json", ".jsonl", ".ndjson", ".parquet"))


def parse_columns(text: str | None) -> dict[str, str]:
    """`left=a,right=b,score=c` as role -> column, whose name may have commas. Raises DataError."""
    roles: dict[str, str] = {}
    # A comma without a role behind it belongs to the name before it: such as `Same? (1=yes, 0=no)`.
    for part in re.split(rf",(?=\s*(?:{'|'.join(NAMES)})\s*=|\s*$)", text or ""):
        role, sign, column = (plain_name(piece) for piece in part.partition("="))
        if part.strip() and (not sign or role not in NAMES or not column or role in roles):
            raise DataError(
                "--columns cannot be read",
                where="--columns",
                expected=f"role=column, each role once, separated by commas; roles: {', '.join(NAMES)}",
                got=part,
            )
        if part.strip():
            roles[role] = column
    return roles


def require_columns(table: Table, wanted: Mapping[str, str]) -> None:
    """Raise DataError unless a table has the columns that the user named."""
    for role, column in wanted.items():
        if column not in table.columns:
            raise DataError(
                f"there is no column '{column}'",
                where=f"{table.name}, {role}",
                expected=f"one of: {', '.join(table.columns)}",
                got=column,
                remedy="correct --columns" + f"; the roles are {', '.join(NAMES)}" * ("=" in column),
            )


def _by_names(table: Table, wanted: Mapping[str, str]) -> dict[str, str]:
    """The first column with a known name of each role that has one."""
    return {role: known[0] for role in NAMES if (known := _known(table, role, wanted))}


def _known(table: Table, role: str, wanted: Mapping[str, str]) -> list[str]:
    """The columns with known names of a role, in the order of NAMES, less those to which the user gave a role."""
    free = [name for name in table.columns if name not in wanted.values()]
    return [name for known in NAMES[role] for name in free if _plain(name) == known]


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def _is_idle(name: str) -> bool:
    """Whether a column has no role, by its name."""
    plain = _plain(name)
    return plain in IDLE_NAMES or plain.endswith(("_id", "uid")) or plain.startswith(PANDAS)


def _is_text(values: list[object]) -> bool:
    """Whether at least half of the values are strings of several words, or in a script that may have no blanks, and not
    only few of them differ, as names of classes do. For advice alone.
    """
    texts = [value.strip() for value in values if isinstance(value, str)]
    texts = [text for text in texts if " " in text or not text.isascii()]
    return 2 * len(texts) >= len(values) and len(texts) < 10 * len(set(texts))


def _is_plain(values: list[object]) -> bool:
    """Whether a column has texts, names or numbers, and not only lists, keys with values, or nothing."""
    return any(value is not None and not isinstance(value, (dict, list)) for value in values)
