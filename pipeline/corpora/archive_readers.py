"""Readers of the formats of the official archives: bytes in, canonical columns out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn
from xml.parsers import expat

import polars as pl

from sentfold.errors import SourceError

# SentEval's order of the six coarse question classes.
TREC_CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")

# SemEval-2016 Task 3, subtask B: two of the three labels count as relevant in the official MAP.
CQA_RELEVANCE = {"PerfectMatch": 1, "Relevant": 1, "Irrelevant": 0}

# The XML elements with the texts that subtask B needs; comments are left out.
_CQA_TEXTS = ("OrgQSubject", "OrgQBody", "RelQSubject", "RelQBody")

_CQA_ATTRIBUTES = ("ORGQ_ID", "RELQ_ID", "RELQ_RANKING_ORDER", "RELQ_RELEVANCE2ORGQ")

# Characters of all rows together; the official files have about ten million. A question is in the rows of all its
# related questions, so a small file could stand for gigabytes.
_CQA_MOST = 128 * 2**20
_CQA_ROW = 256  # what a row without any text takes

_REPLACEMENT = "\ufffd"


class Member(NamedTuple):
    """One file from an archive, or the downloaded file itself."""

    name: str
    data: bytes


class Table(NamedTuple):
    """The result of a reader: canonical columns, and the number of characters that were replaced by U+FFFD."""

    frame: pl.DataFrame
    replaced: int = 0


Reader = Callable[[Sequence[Member]], Table]


def read_trec(members: Sequence[Member]) -> Table:
    """Questions, one `CLASS:fine text` per line (Li & Roth 2002): text, label 0-5, label_name.

    The files are ASCII except for one byte, which becomes U+FFFD.
    Raises SourceError on a line without a known class.
    """
    rows: list[tuple[str, int, str]] = []
    replaced = 0
    for member in members:
        text, bad = _decode(member.data, "ascii")
        replaced += bad
        for number, line in _lines(text):
            label, _, question = line.strip().partition(" ")
            coarse = label.partition(":")[0]
            if coarse not in TREC_CLASSES or not question:
                _refuse(member, number, f"CLASS:fine text, CLASS one of {', '.join(TREC_CLASSES)}", line)
            rows.append((question, TREC_CLASSES.index(coarse), coarse))
    return Table(_frame(rows, {"text": pl.String, "label": pl.Int64, "label_name": pl.String}), replaced)


def read_pos_neg(members: Sequence[Member]) -> Table:
    """A `*.pos` and a `*.neg` file with one text per line: text, label (1 = positive); positives first.

    Empty lines are rows too: the published counts of MPQA and CR include them.
    Raises SourceError unless there is exactly one file of each kind.
    """
    rows: list[tuple[str, int]] = []
    replaced = 0
    for suffix, label in ((".pos", 1), (".neg", 0)):
        files = [member for member in members if member.name.endswith(suffix)]
        if len(files) != 1:
            names = ", ".join(member.name for member in members)
            raise SourceError(f"not exactly one file *{suffix}", expected="one .pos and one .neg file", got=names)
        text, bad = _decode(files[0].data, "utf-8")
        replaced += bad
        rows.extend((line.strip(), label) for line in text.removesuffix("\n").split("\n"))
    return Table(_frame(rows, {"text": pl.String, "label": pl.Int64}), replaced)


def read_newsgroups(members: Sequence[Member]) -> Table:
    """Messages at `.../<group>/<number>` (20news-bydate): text with headers, label, label_name.

    Rows are sorted by group, then by file name as text. label = index of the group in alphabetical order.
    latin-1 decodes every byte, so no character is replaced. Raises SourceError on a message outside a group's
    folder.
    """
    keyed: list[tuple[str, str, bytes]] = []
    for member in members:
        parts = member.name.split("/")
        if len(parts) < 2:
            raise SourceError("a message is in no group's folder", where=member.name, expected="<group>/<number>")
        keyed.append((parts[-2], parts[-1], member.data))
    keyed.sort(key=lambda entry: entry[:2])
    groups = {group: label for label, group in enumerate(sorted({group for group, _, _ in keyed}))}
    rows = [(data.decode("latin-1"), groups[group], group) for group, _, data in keyed]
    return Table(_frame(rows, {"text": pl.String, "label": pl.Int64, "label_name": pl.String}))


def read_sick(members: Sequence[Member]) -> Table:
    """The tab-separated files of SICK, concatenated: pairs with relatedness 1-5.

    Raises SourceError on a missing column, a line of another length, or a score that is no number.
    """
    cells, replaced = _sick_cells(members, "relatedness_score")
    rows = [(first, second, _number(score, *place), "SICK") for first, second, score, place in cells]
    kinds = {"sentence1": pl.String, "sentence2": pl.String, "score": pl.Float64, "subset": pl.String}
    return Table(_frame(rows, kinds), replaced)


def read_sick_entailment(members: Sequence[Member]) -> Table:
    """The tab-separated files of SICK, concatenated: pairs with label 0 = contradiction, 1 = neutral, 2 = entailment.

    Raises SourceError on a missing column, a line of another length, or an unknown label.
    """
    cells, replaced = _sick_cells(members, "entailment_judgment")
    for _, _, label, (member, number) in cells:
        if label not in SICK_LABELS:
            _refuse(member, number, f"one of {', '.join(SICK_LABELS)}", label)
    rows = [(first, second, SICK_LABELS.index(label)) for first, second, label, _ in cells]
    return Table(_frame(rows, {"sentence1": pl.String, "sentence2": pl.String, "label": pl.Int64}), replaced)


SICK_LABELS = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")


def _sick_cells(members: Sequence[Member], column: str) -> tuple[list[tuple[str, str, str, tuple[Member, int]]], int]:
    """Both sentences, `column` and the place (member, line number) of each line; the number of replaced characters.

    The header line names the columns. Raises SourceError on a missing column, or a line of another length.
    """
    wanted = ("sentence_A", "sentence_B", column)
    found: list[tuple[str, str, str, tuple[Member, int]]] = []
    replaced = 0
    for member in members:
        text, bad = _decode(member.data, "utf-8")
        replaced += bad
        header: list[str] = []
        for number, line in _lines(text):
            cells = line.split("\t")
            if not header:
                header = cells
                if not set(wanted) <= set(header):
                    _refuse(member, number, f"a header with {', '.join(wanted)}", line)
                continue
            if len(cells) != len(header):
                _refuse(member, number, f"{len(header)} tab-separated cells", line)
            first, second, value = (cells[header.index(name)] for name in wanted)
            found.append((first, second, value, (member, number)))
    return found, replaced


def read_word_freq(members: Sequence[Member]) -> Table:
    """`word count` lines. Raises SourceError on a line that is not one word and one whole number."""
    rows: list[tuple[str, int]] = []
    replaced = 0
    for member in members:
        text, bad = _decode(member.data, "utf-8")
        replaced += bad
        for number, line in _lines(text):
            word, _, count = line.partition(" ")
            if not word or not _is_whole(count):
                _refuse(member, number, "word count", line)
            rows.append((word, int(count)))
    return Table(_frame(rows, {"word": pl.String, "count": pl.Int64}), replaced)


def read_cqa(members: Sequence[Member]) -> Table:
    """SemEval-2016/2017 Task 3 XML, subtask B: queries, candidates, relevance, search rank.

    The labels are in the XML, or, if the XML has none, in a `*.relevancy` file next to it. query and candidate
    are subject + blank + body. Rows are in the order of the XML.
    Raises SourceError on malformed XML, an entity declaration, a missing label, or too much text.
    """
    gold: dict[str, int] = {}
    threads: list[_Thread] = []
    replaced = size = 0
    for member in members:
        text, bad = _decode(member.data, "utf-8")
        replaced += bad
        if member.name.endswith(".relevancy"):
            gold.update(_relevancy(text, member))
        else:
            found, size = _cqa_threads(text, member, size)
            threads.extend(found)
    rows = [thread.row(gold) for thread in threads]
    kinds = {
        "query_id": pl.String,
        "query": pl.String,
        "candidate_id": pl.String,
        "candidate": pl.String,
        "relevance": pl.Int64,
        "rank": pl.Int64,
    }
    return Table(_frame(rows, kinds), replaced)


READERS: Mapping[str, Reader] = {
    "cqa": read_cqa,
    "newsgroups": read_newsgroups,
    "pos_neg": read_pos_neg,
    "sick": read_sick,
    "sick_entailment": read_sick_entailment,
    "trec": read_trec,
    "word_freq": read_word_freq,
}


# --- SemEval XML -------------------------------------------------------------------------------


@dataclass
class _Thread:
    """One original question with one related question; the XML repeats the original for each related question."""

    where: str
    attributes: dict[str, str]
    query: str
    candidate: str

    def row(self, gold: Mapping[str, int]) -> tuple[str, str, str, str, int, int]:
        candidate_id, rank = self.attributes.get("RELQ_ID", ""), self.attributes.get("RELQ_RANKING_ORDER", "")
        label = self.attributes.get("RELQ_RELEVANCE2ORGQ", "")
        relevance = CQA_RELEVANCE.get(label, gold.get(candidate_id))
        if relevance is None or not _is_whole(rank):
            raise SourceError(
                "a related question has no label or no rank",
                where=f"{self.where}: {candidate_id or 'without RELQ_ID'}",
                expected=f"RELQ_RELEVANCE2ORGQ one of {', '.join(CQA_RELEVANCE)}, or a line in the .relevancy file",
                got=f"label {label!r}, rank {rank!r}",
            )
        return self.attributes.get("ORGQ_ID", ""), self.query, candidate_id, self.candidate, relevance, int(rank)


def _cqa_threads(text: str, member: Member, size: int) -> tuple[list[_Thread], int]:
    """The threads of one XML file, and `size` plus their characters.

    Entities are refused: they could read other files or expand to gigabytes.
    """
    threads: list[_Thread] = []
    held: dict[str, str] = {}  # attributes of the current thread
    pieces: dict[str, list[str]] = {}  # element -> its text in pieces, as expat delivers it
    inside = ""

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal inside
        if tag == "OrgQuestion":
            held.clear()
            pieces.clear()
        if tag in ("OrgQuestion", "RelQuestion"):
            held.update({name: attributes[name] for name in _CQA_ATTRIBUTES if name in attributes})
        inside = tag if tag in _CQA_TEXTS else ""

    def joined(element: str) -> str:
        pieces[element] = ["".join(pieces.get(element, []))]
        return pieces[element][0].strip()

    def end(tag: str) -> None:
        nonlocal inside, size
        inside = ""
        if tag == "RelQuestion":
            query, candidate = (f"{joined(f'{q}Subject')} {joined(f'{q}Body')}".strip() for q in ("OrgQ", "RelQ"))
            size += _CQA_ROW + len(query) + len(candidate) + sum(map(len, held.values()))
            if size > _CQA_MOST:
                raise SourceError(
                    "the related questions of XML files have too much text",
                    where=member.name,
                    expected=f"at most {_CQA_MOST} characters",
                    got="more",
                    remedy="do not use this file: the official release is smaller",
                )
            threads.append(_Thread(member.name, dict(held), query, candidate))

    def characters(data: str) -> None:
        if inside:
            pieces.setdefault(inside, []).append(data)

    def entity(name: str, *_: object) -> NoReturn:
        raise SourceError(
            "an XML file declares an entity",
            where=member.name,
            expected="plain XML without entity declarations",
            got=f"entity '{name}'",
            remedy="do not use this file: the official release declares none",
        )

    parser = expat.ParserCreate(encoding="utf-8")
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.EntityDeclHandler = entity
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise SourceError("an XML file is malformed", where=member.name, got=str(error)) from None
    return threads, size


def _relevancy(text: str, member: Member) -> Iterator[tuple[str, int]]:
    """(candidate, 0 or 1) from lines of the official gold file: query, candidate, rank, score, true|false."""
    for number, line in _lines(text):
        cells = line.split("\t")
        if len(cells) != 5 or cells[4] not in ("true", "false"):
            _refuse(member, number, "query, candidate, rank, score, true or false, tab-separated", line)
        yield cells[1], int(cells[4] == "true")


# --- shared ------------------------------------------------------------------------------------


def _decode(data: bytes, encoding: str) -> tuple[str, int]:
    """The text without carriage returns before newlines, and the number of characters that became U+FFFD."""
    text = data.decode(encoding, errors="replace")
    released = data.count(_REPLACEMENT.encode()) if encoding == "utf-8" else 0
    return text.replace("\r\n", "\n"), text.count(_REPLACEMENT) - released


def _lines(text: str) -> Iterator[tuple[int, str]]:
    # str.splitlines would also split at form feeds and separators inside texts.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line


def _is_whole(cell: str) -> bool:
    return cell.isdecimal() and len(cell) < 19  # 18 digits fit in 64 bits


def _number(cell: str, member: Member, number: int) -> float:
    try:
        return float(cell)
    except ValueError:
        _refuse(member, number, "a score", cell)


def _refuse(member: Member, number: int, expected: str, got: str) -> NoReturn:
    raise SourceError(
        "a line cannot be parsed",
        where=f"{member.name}, line {number}",
        expected=expected,
        got=repr(got[:80]),
        remedy="the archive is another release than the catalogue describes",
    )


def _frame(rows: Sequence[tuple[object, ...]], kinds: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=dict(kinds), orient="row")
