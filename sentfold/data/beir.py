"""Queries with relevant documents, from a folder of the BEIR form: corpus.jsonl, queries.jsonl, qrels/*.tsv."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from sentfold.data.datasets import Dataset
from sentfold.data.tables import SPLITS, DataError, Table, is_number, read_table, refuse_value

Judgements = dict[str, dict[str, float]]  # query -> document -> grade

JUDGED = ("query-id", "corpus-id", "score")  # the columns of judgements
HIGHEST = 1_000_000  # grade; sums of gains stay exact


def is_beir(path: Path, columns: Mapping[str, str]) -> bool:
    """Whether a path is a folder of the BEIR form. Raises DataError for columns that the user named for one."""
    found = path.is_dir() and (path / "corpus.jsonl").exists()
    if found and columns:
        raise DataError(
            "a folder of the BEIR form has no columns to choose", where=f"--columns, {path}",
            expected="its title and text", got=", ".join(columns.values()),
            remedy=f"give {path / 'corpus.jsonl'} itself for one of its columns",
        )  # fmt: skip
    return found


def read_beir(folder: Path) -> Dataset:
    """The documents, then the queries that have a relevant document. Raises DataError that names file and line.

    A query that has the identifier of a document never finds that document, as in BEIR, but for a relevant document of
    another text: these two have one number by chance. Published corpora have some documents without a text: these keep
    their place, so that no vector moves to another document. So may the vectors of the queries that are left out.
    """
    documents, odd = _read_texts(folder / "corpus.jsonl", "documents")
    queries, odd_queries = _read_texts(folder / "queries.jsonl", "queries")
    judged = [(part, _read_judgements(path, set(documents), set(queries))) for part, path in _qrels(folder)]
    grades, parts, twice = _join_parts(judged)
    kept = [query for query in queries if any(grade > 0 for grade in grades.get(query, {}).values())]
    if len(kept) < 2:
        raise DataError(
            "too few queries have a relevant document",
            where=str(folder / "qrels"),
            expected="at least two",
            got=str(len(kept)),
        )
    row_of = {document: row for row, document in enumerate(documents)}
    relevant = tuple(
        {row_of[document]: grade for document, grade in sorted(grades[query].items()) if grade > 0} for query in kept
    )
    same = np.array([row_of.get(query, -1) for query in kept], dtype=np.float64)
    answers = [
        place
        for place, (query, found) in enumerate(zip(kept, relevant, strict=True))
        if same[place] in found and documents[query] != queries[query]
    ]
    same[answers] = -1
    known = set(kept)
    notes = [f"{len(documents)} documents, {len(kept)} queries", *odd, *odd_queries]
    left_out = [query for query in queries if query not in known]
    notes += _named("queries without a relevant document are left out", left_out)
    notes += _named("queries are judged in two parts and count for the first of these", twice)
    notes += _named("queries have the identifier of a relevant document, which counts", [kept[at] for at in answers])
    notes += _named(
        "queries have the identifier of a document, which is left out for them as in BEIR",
        [query for query, row in zip(kept, same, strict=True) if row >= 0],
    )
    part_of = {query: parts[query] for query in kept}
    notes += _part_notes(part_of, queries)
    order = [place for place, query in enumerate(queries) if query in known]
    # Libraries that read the form give the queries in the order of the judgements.
    turned = any(len(found) == len(queries) and [*found] != [*queries] for _, found in judged)
    return Dataset(
        name=folder.name,
        kind="queries",
        texts=(*documents.values(), *(queries[query] for query in kept)),
        rows=len(documents) + np.arange(len(kept)),
        values=same,
        splits=tuple(part_of.values()) if {"train", "test"} <= set(part_of.values()) else (),
        parts=tuple(part_of.values()) if len(judged) > 1 else (),
        documents=np.arange(len(documents)),
        relevant=relevant,
        names=(*documents, *kept),
        copies=np.concatenate([np.arange(len(documents)), len(documents) + np.array(order)]),
        cells=len(documents) + len(queries),
        unclear=frozenset({(len(documents), len(queries)), len(documents) + len(queries)} if turned else ()),
        notes=tuple(notes),
        files=(folder / "corpus.jsonl", folder / "queries.jsonl", *(path for _, path in _qrels(folder))),
    )


def _join_parts(judged: list[tuple[str, Judgements]]) -> tuple[Judgements, dict[str, str], list[str]]:
    """The judgements of all parts, the first part of each query, and the queries that a later part judges again.

    Raises DataError where two parts give a document other grades for one query.
    """
    grades: Judgements = {}
    parts: dict[str, str] = {}
    twice: list[str] = []
    for part, judgements in judged:
        for query, found in judgements.items():
            twice += [query] if parts.get(query, part) != part else []
            before = grades.setdefault(query, {})
            if odd := [document for document in before.keys() & found if before[document] != found[document]]:
                raise DataError(
                    "two parts grade a document differently for one query", where=f"qrels, query {query}",
                    expected=f"{before[min(odd)]:g} of {min(odd)}, as another part has it",
                    got=f"{found[min(odd)]:g} in {part}", remedy="keep one of the two judgements",
                )  # fmt: skip
            before.update(found)
            parts.setdefault(query, part)
    return grades, parts, twice


def _part_notes(part_of: Mapping[str, str], queries: Mapping[str, str]) -> list[str]:
    """What the parts of the judged queries mean for the verdict. part_of: query -> part; queries: query -> text."""
    named = set(part_of.values())
    if {"train", "test"} <= named:
        seen = {queries[query] for query, part in part_of.items() if part != "test"}
        leaks = [query for query, part in part_of.items() if part == "test" and queries[query] in seen]
        return _named("queries of the test part are in the other parts too", leaks)
    if len(named) > 1:
        return [f"the queries of {', '.join(sorted(named))} are judged together, as one of train and test is missing"]
    return []


def _named(what: str, names: list[str]) -> list[str]:
    return [f"{len(names)} {what}; the first: {names[0]}"] if names else []


def _read_texts(path: Path, what: str) -> tuple[dict[str, str], list[str]]:
    """Identifier -> title and text, and notes on the empty documents and on texts that repeat an earlier one.

    Raises DataError for an empty query, and where no document has a text.
    """
    table = read_table(path)
    for column in ("_id", "text"):
        if column not in table.columns:
            raise DataError(
                f"a file has no key '{column}'", where=str(path), expected="_id and text", got=", ".join(table.columns)
            )
    texts: dict[str, str] = {}
    copies: list[str] = []
    empty: list[int] = []
    seen: set[str] = set()
    for row, name in enumerate(table.columns["_id"]):
        if name is None or str(name) in texts:
            raise refuse_value(table, row, "_id", "an identifier is missing or repeated", expected="a new identifier")
        texts[str(name)] = titled_text(table, row)
        if not texts[str(name)]:
            empty.append(row)
            continue
        copies += [table.place(row)] if texts[str(name)] in seen else []
        seen.add(texts[str(name)])
    if empty and (what == "queries" or not seen):
        raise refuse_value(table, empty[0], "text", "a text is empty", expected="a text")
    bare = _named("documents have no text and rank behind all others", [table.place(row) for row in empty])
    return texts, [*bare, *_named(f"{what} repeat the text of an earlier one", copies)]


def titled_text(table: Table, row: int) -> str:
    """The title, if any, and the text of a row; null and NaN are none. Raises DataError for other types."""
    parts = []
    for column in ("title", "text"):
        value = table.columns[column][row] if column in table.columns else None
        if value is None or value != value or value == "":
            continue
        if not isinstance(value, str):
            raise refuse_value(table, row, column, f"a {column} is of another type", expected="a text, or null")
        parts.append(value)
    return join_title(*parts)


def join_title(*parts: str | None) -> str:
    """A title and a text, of which either can be missing, as one text."""
    return " ".join(part for part in parts if part).strip()


def with_titles(table: Table, named: Mapping[str, str]) -> Table:
    """A table of documents of the BEIR form, with the title before each text, as read_beir has them; others as is.

    named  role -> column, as the user named them: a title or text that is named stays as it is
    """
    if not {"_id", "title", "text"} <= table.columns.keys() or {"title", "text"} & set(named.values()):
        return table
    joined = [titled_text(table, row) for row in range(len(table))]
    notes = (*table.notes, "titles stand before the texts, as BEIR has it; --columns text=text leaves them out")
    columns = {name: values for name, values in table.columns.items() if name != "title"}
    return replace(table, columns={**columns, "text": joined}, notes=notes)


def _qrels(folder: Path) -> list[tuple[str, Path]]:
    paths = sorted((folder / "qrels").glob("[!.]*.tsv")) or [path for path in [folder / "qrels.tsv"] if path.is_file()]
    if not paths:
        raise DataError(
            "a folder has no relevance judgements", where=str(folder), expected="qrels/test.tsv: query, document, grade"
        )
    for path in paths:
        if len(paths) > 1 and path.stem.lower() not in SPLITS:
            raise DataError(
                "a file of judgements is named after no part", where=str(path), expected="train.tsv, dev.tsv, test.tsv",
                got=path.name, remedy="rename the file, or move it out of the folder",
            )  # fmt: skip
    return [(SPLITS.get(path.stem.lower(), "test"), path) for path in paths]


def _read_judgements(path: Path, documents: set[str], queries: set[str]) -> Judgements:
    table = read_table(path)
    if set(table.columns) != set(JUDGED):
        raise DataError(
            "judgements have other columns",
            where=str(path),
            expected=f"a first line with {', '.join(JUDGED)}",
            got=", ".join(table.columns),
            remedy="name the columns so in the first line, and leave others out",
        )
    query_column, document_column, grade_column = JUDGED
    found: Judgements = {}
    for row in range(len(table)):
        query, document = (str(table.columns[name][row]) for name in (query_column, document_column))
        grade = table.columns[grade_column][row]
        _check_judgement(table, row, (query_column, query in queries), (document_column, document in documents))
        if not is_number(grade) or not abs(float(grade)) <= HIGHEST:
            raise refuse_value(
                table, row, grade_column, "a grade is no number", expected=f"0, 1, 2, ..., at most {HIGHEST:,}"
            )
        if found.setdefault(query, {}).setdefault(document, float(grade)) != float(grade):
            raise refuse_value(
                table, row, grade_column, "a document is judged twice for one query, with two grades",
                expected=f"one grade, as {found[query][document]:g} above", remedy="keep one of the lines",
            )  # fmt: skip
    return found


def _check_judgement(table: Table, row: int, *known: tuple[str, bool]) -> None:
    for column, is_known in known:
        if not is_known:
            raise refuse_value(
                table,
                row,
                column,
                "a judgement names something that does not exist",
                expected="an _id of corpus.jsonl or queries.jsonl",
                remedy="remove the line, or add the text",
            )
