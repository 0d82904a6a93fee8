"""Files of every form give the same data, and each text gets its own vector."""

from __future__ import annotations

import csv
import json
import shlex
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pandas
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyarrow.csv import write_csv
from safetensors.numpy import save_file

import sentfold
from sentfold.cli.encode import read_sentences
from sentfold.data.columns import parse_columns
from sentfold.data.datasets import Dataset, class_name, read_dataset
from sentfold.data.tables import DataError, read_table
from sentfold.data.vectors import encode_texts, read_vectors
from sentfold.decision.use import read_texts

PAIRS = [
    ("a cat, red", 'a "dog"', 1.0),
    ("a cow", "a hen\nruns", 0.25),
    ("an owl", "a cow", 0.0),
    ("a cow", "é 猫", 2.0),
]
TEXTS = ("a cat, red", "a cow", "an owl", 'a "dog"', "a hen\nruns", "é 猫")  # left ones, then new right ones
ROWS = [[0, 3], [1, 4], [2, 1], [1, 5]]


def quote(cell: object) -> str:
    return '"' + str(cell).replace('"', '""') + '"'


def delimited(delimiter: str) -> str:
    return "\n".join(delimiter.join(map(quote, row)) for row in [("sentence1", "sentence2", "score"), *PAIRS]) + "\n"


FORMS = {
    "p.csv": delimited(",").encode(),
    "mark.csv": b"\xef\xbb\xbf" + delimited(",").encode(),
    "wide.csv": delimited(",").encode("utf-16"),
    "windows.csv": delimited(";").replace('"\n"', '"\r\n"').encode(),
    "p.tsv": delimited("\t").encode(),
    "bars.csv": delimited("|").encode(),
    "p.jsonl": "".join(json.dumps(dict(zip("abs", row, strict=True))) + "\n" for row in PAIRS)
    .replace('"s"', '"score"')
    .encode(),
}


def same_pairs(data: Dataset) -> None:
    assert data.kind == "pairs"
    assert data.texts == TEXTS
    assert data.rows.tolist() == ROWS
    assert data.values.tolist() == [1.0, 0.25, 0.0, 2.0]


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_text_file_gives_the_same_pairs(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(FORMS[name])
    same_pairs(read_dataset(tmp_path / name))


def test_half_of_a_character_in_json_becomes_the_replacement_character(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"left": "cut \\ud83d", "right": "b", "score": 1}\n{"left": "all \\ud83d\\ude00", "right": "d", "score": 2}\n'
    )
    texts = read_dataset(tmp_path / "a.jsonl").texts
    assert "all \N{GRINNING FACE}" in texts
    assert [text.replace("\ufffd", "") for text in texts if text.startswith("cut")] == ["cut "]
    assert "".join(texts).encode()


def test_parquet_gives_the_same_pairs(tmp_path: Path) -> None:
    left, right, score = zip(*PAIRS, strict=True)
    table = pa.table({"text1": left, "text2": right, "similarity": score})
    parquet.write_table(table, tmp_path / "p.parquet")
    same_pairs(read_dataset(tmp_path / "p.parquet"))


def test_a_line_break_in_a_header_is_a_blank(tmp_path: Path) -> None:
    """Spreadsheets have them, and an error that shows the option begins the next line with blanks."""
    rows = [f"eine Frage {n};{'ab'[n % 2]}" for n in range(12)]
    (tmp_path / "l.csv").write_text("\n".join(['"Frage\n(Wortlaut)";"Art\n(bitte\u00a0wählen)"', *rows]))
    columns = parse_columns("text=Frage\n            (Wortlaut),label=Art\n            (bitte wählen)")
    assert read_dataset(tmp_path / "l.csv", columns).classes == ("a", "b")


def test_one_object_of_columns_and_the_hubs_form_of_queries_are_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"text": {"0": "a cat", "1": "a dog"}, "label": {"0": 1, "1": 0}}')
    with pytest.raises(DataError, match=r"(?s)one object of columns.*lines=True"):
        read_dataset(tmp_path / "p.json")
    for name in ("corpus", "queries", "data"):
        (tmp_path / "d" / name).mkdir(parents=True)
        (tmp_path / "d" / name / "test-00000-of-00001.parquet").touch()
    with pytest.raises(DataError, match=r"(?s)not in BEIR's form.*qrels/test\.tsv"):
        read_dataset(tmp_path / "d")


def test_commas_in_a_name_are_no_delimiter_where_the_rows_have_another(tmp_path: Path) -> None:
    rows = [f"eine Frage {n};{'ab'[n % 2]}" for n in range(12)]
    (tmp_path / "l.csv").write_text("\n".join(["Frage (gekürzt, anonym, alt);Art", *rows]))
    columns = parse_columns("text=Frage (gekürzt, anonym, alt),label=Art")
    assert read_dataset(tmp_path / "l.csv", columns).classes == ("a", "b")
    rows[0] = "eine Frage, mit Kommas, und, noch mehr;a"
    (tmp_path / "l.csv").write_text("\n".join(["Frage (gekürzt, anonym, alt);Art", *rows]))
    assert read_dataset(tmp_path / "l.csv", columns).classes == ("a", "b")


@pytest.mark.parametrize("parts", [["train", "test"], []])
def test_a_folder_that_datasets_saved_is_refused_with_what_to_do(parts: list[str], tmp_path: Path) -> None:
    """Its form is Arrow's, which trusts the bytes of a file: a small one can end the process or fill the memory."""
    datasets = pytest.importorskip("datasets")
    part = datasets.Dataset.from_list([{"text": "a cat", "label": 0}, {"text": "a car", "label": 1}])
    saved = datasets.DatasetDict(dict.fromkeys(parts, part)) if parts else part
    saved.save_to_disk(str(tmp_path / "saved"))
    with pytest.raises(DataError, match=r"`save_to_disk` of datasets wrote is not read") as refused:
        read_dataset(tmp_path / "saved")
    assert "to_parquet" in refused.value.remedy
    (tmp_path / "parquet").mkdir()
    for name in parts or ["train"]:
        loaded = datasets.load_from_disk(str(tmp_path / "saved"))
        (loaded[name] if parts else loaded).to_parquet(str(tmp_path / "parquet" / f"{name}.parquet"))
    assert len(read_dataset(tmp_path / "parquet").texts) == 2


@pytest.mark.parametrize("blank", ["", '""'])
def test_row_numbers_without_a_name_are_left_out_and_the_header_is_no_text(blank: str, tmp_path: Path) -> None:
    """pandas writes the first form, R the second."""
    (tmp_path / "p.csv").write_text(f"{blank},sentence1,sentence2,score\n0,a cat,a dog,1\n1,a cow,a hen,0\n")
    data = read_dataset(tmp_path / "p.csv")
    assert (data.kind, data.texts, data.values.tolist()) == ("pairs", ("a cat", "a cow", "a dog", "a hen"), [1.0, 0.0])
    (tmp_path / "l.csv").write_text(f"{blank},text,label\n0,a cat,x\n1,a cow,y\n")
    assert read_dataset(tmp_path / "l.csv").classes == ("x", "y")
    (tmp_path / "s.csv").write_text(f"{blank},text\n0,a cat\n1,a cow\n")
    assert read_dataset(tmp_path / "s.csv").texts == ("a cat", "a cow")


def test_a_file_called_json_is_read_as_json_lines_and_a_list_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path, rows = tmp_path / "s.json", [{"text": "a cat"}, {"text": "a cow"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_dataset(path).texts == ("a cat", "a cow")
    for indent in (None, 1):
        path.write_text(json.dumps(rows, indent=indent))
        with pytest.raises(DataError) as refused:
            read_dataset(path)
        assert "one object a line" in refused.value.remedy


def test_texts_of_two_lines_are_not_joined_by_a_quote_at_the_begin_of_one_and_the_end_of_the_other(
    tmp_path: Path,
) -> None:
    rows = [["he said", '"yes, it is so', "3"], ["she said", 'no, it is not"', "1"], ["a", "b", "2"]]
    lines = ["sentence1\tsentence2\tscore", *("\t".join(row) for row in rows)]
    (tmp_path / "p.tsv").write_text("\n".join(lines) + "\n")
    data = read_dataset(tmp_path / "p.tsv")
    assert data.texts == ("he said", "she said", "a", '"yes, it is so', 'no, it is not"', "b")
    assert any("quotes are taken as part of the texts" in note for note in data.notes)


@pytest.mark.parametrize("delimiter", ["|", ";", ","])
def test_rows_that_quotes_of_a_dialogue_would_join_are_refused_and_texts_of_two_lines_are_read(
    tmp_path: Path, delimiter: str
) -> None:
    """A program that writes no quotes: 60 of 120 pairs became ten texts of seven lines, without a word."""
    path = tmp_path / "p.csv"

    def write(*changes: tuple[int, int, str]) -> None:
        rows = [[f"one {number}", f"two {number}", f"{number % 3}"] for number in range(24)]
        for row, column, cell in changes:
            rows[row][column] = cell
        path.write_text("\n".join(delimiter.join(row) for row in [["left", "right", "score"], *rows]))

    spoken = ((2, 0, '"I am here.'), (5, 0, 'And you are there."'), (9, 0, '"Or not.'), (12, 0, 'Or else."'))
    # A mean of raters, which no other row has; and one more delimiter in a row that is held.
    for change in ((), ((3, 2, "1.75"),), ((3, 1, f"two {delimiter}-)"),)):
        write(*spoken, *change)
        with pytest.raises(DataError, match="nearly all of these lines are rows") as refused:
            read_dataset(path)
        assert "line 4" in refused.value.where
    write(*spoken, (0, 0, '"and here'), (0, 1, 'over there"'))  # a quotation over two cells of one row
    with pytest.raises(DataError):
        read_dataset(path)
    # Every row is held, or one pair of quotes holds them.
    every = [(row, row % 2, f'"Row {row}.' if row % 2 == 0 else f'Row {row}."') for row in range(24)]
    for change in (every, [(2, 0, '"I am here.'), (19, 1, 'And you are there."')]):
        write(*change)
        with pytest.raises(DataError, match="nearly all of these lines are rows"):
            read_dataset(path)
    # A few rows of other scores stand outside of the quotes, as if they were numbered.
    scored = [(row, 2, f"{row}" if row < 3 else f"{row % 3}") for row in range(24)]
    fine = [(row, 2, f"{row * 7 % 10 / 10}" if row > 4 else f"{row / 10}5") for row in range(24)]
    for change in (scored, fine):
        quotes = [(row, row % 2, f'"Row {row}.' if row % 4 == 3 else f'Row {row}."') for row in range(7, 23, 2)]
        write(*change, (3, 0, '"I am here.'), (6, 0, 'And you are there."'), *quotes)
        with pytest.raises(DataError, match="nearly all of these lines are rows"):
            read_dataset(path)
    lines = f'"first{delimiter} again{delimiter} and\nonce more"'
    for change in (((2, 0, lines),), ((2, 0, lines), (5, 0, lines.replace("first", "then")))):
        write(*change)
        data = read_dataset(path)
        assert data.texts[2] == lines.strip('"')
        assert len(data) == 24
        assert any(f"texts of several lines: {len(change)} (" in note for note in data.notes)
    letters = [f'T-{number},"Well, Ann\nThanks, Bob {number}"' for number in range(9)]
    path.write_text("\n".join(["ticket,text", *letters]))
    assert len(read_dataset(path, {"text": "text"}).texts) == 9
    lists = [f'{n},"1, take\n2, turn\n3, wait {n}"' if n % 3 else f"{n},a text {n}" for n in range(20, 47)]
    path.write_text("\n".join(["id,text", *lists]))
    assert len(read_dataset(path, {"text": "text"}).texts) == 27
    tables = [f'{n},"How do I read it?\n1,row 1\n2,row 2\n3,row 3\n4,row 4\n5,row 5 of {n}"' for n in range(60, 65)]
    path.write_text("\n".join(["id,text", *(f"{n},a text {n}" for n in range(60)), *tables]))
    assert len(read_dataset(path, {"text": "text"}).texts) == 65
    sales = "year,sales\n2000,23\n2001,45\n2002,67\n2003,89\n2004,10"
    for header, row in (("text,label", '"{sales}",{n}'), ("label,text", '{n},"{sales}"')):
        many = [row.format(sales=f"In {n}:" * (n % 3 == 0) + sales, n="ab"[n % 2]) for n in range(40)]
        path.write_text("\n".join([header, *many]))
        assert len(read_dataset(path).rows) == 40
    for greeting in ("Hello", "Hello,", f"Hello{delimiter} Ann"):
        mails = [f'"{greeting}\nMy camera {n} came late.",{"ab"[n % 2]}' for n in range(20)]
        path.write_text("\n".join(["text,label", *mails, *(f"a text {n},a" for n in range(20))]))
        assert len(read_dataset(path).texts) == 40
    salted = [f'"salt, {n}\noil, 2\nmix it",{"ab"[n % 2]}' for n in range(20)]
    path.write_text("\n".join(["text,label", *salted]))
    assert len(read_dataset(path).texts) == 20
    path.write_text('text\n"one\nmore"\ntwo\n')
    assert any("texts of several lines: 1 (2 lines" in note for note in read_dataset(path).notes)


def test_old_copies_in_hidden_folders_and_explanations_are_no_data(tmp_path: Path) -> None:
    for name in ("train.csv", ".ipynb_checkpoints/train-checkpoint.csv", "_old/test.csv", "._train.csv", "README.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"text,label\nof {name},a\none more of {name},b\n")
    assert read_dataset(tmp_path).texts == ("of train.csv", "one more of train.csv")


@pytest.mark.parametrize("index", ["__index_level_0__", "Unnamed: 0", "id", "Pair_ID"])
def test_a_column_that_numbers_the_rows_is_no_score_and_no_label(index: str, tmp_path: Path) -> None:
    rows = [17 * number % 101 for number in range(30)]
    columns = {index: rows, "text": [f"a text {n}" for n in rows]}
    parquet.write_table(pa.table(columns), tmp_path / "s.parquet")
    assert read_dataset(tmp_path / "s.parquet").kind == "sentences"
    parquet.write_table(pa.table({**columns, "label": ["ab"[n % 2] for n in rows]}), tmp_path / "l.parquet")
    assert read_dataset(tmp_path / "l.parquet").classes == ("a", "b")
    parquet.write_table(pa.table({**columns, "other": columns["text"], "same": ["no"] * 30}), tmp_path / "p.parquet")
    with pytest.raises(DataError, match=r"(?s)cannot be told.*left=text,right=other,score=same"):
        read_dataset(tmp_path / "p.parquet")


NAMED = [  # header, a row, and the kind that the names tell; "" where they do not
    ("id,article,product_title,search_term,relevance", "7,3,a product {n},a search {n},{n}", ""),
    ("query,title,label", "a question {n},its title {n},{c}", ""),
    ("review,sentiment,summary", "a review {n},{c},its summary {n}", ""),
    ("review,sentiment", "a review {n},{c}", ""),
    ("text,kind", "a text {n},{c}", ""),
    ("text,when", "a text {n},day{n}", ""),
    ("utt,kind_of", "a text {n},{c}", ""),
    ("question,other,grade", "a cat {n},a dog {n},{n}", ""),
    ("sentence1,sentence2,score,rating", "a cat {n},a dog {n},{n},{c}", ""),
    ("text,label,category", "a cat {n},{c},{c}", ""),
    ("text,label,Label", "a cat {n},{c},{c}", ""),
    ("left,right,score,split,part", "a cat {n},a dog {n},{n},test,train", ""),
    ("a first text,its second text,0", "a cat {n},a dog {n},{n}", ""),
    ("0,1,2", "a cat {n},a dog {n},{n}", ""),
    ("A first sentence", "a cat {n}", ""),
    ("title,content,label", "猫{n}图,好猫{n}咪,{c}", ""),
    ("query,title,label", "猫{n}图,好猫{n}咪,{c}", ""),
    ("question,faq,label", "a cat {n},where is number {c} of it,{n}", ""),
    ("query,name,label", "猫{n}图,猫{c},{n}", ""),
    ("text,label,label_text", "a cat {n},{c},class {c} of two", "labels"),
    ("text,label,lang,votes", "a cat {n},{c},en,{n}", "labels"),
    ("text,label,url,timestamp", "a cat {n},{c},https://e.org/{n},2020-01-{n}T00:00:00", "labels"),
    ("text,label,place", "a cat {n},{c},place{n}", ""),
    ("id,question", "7,a cat {n}", "sentences"),
    ("query,document,label", "a cat {n},a dog {n},{c}", "pairs"),
    ("question,sentence,label", "a cat {n},a dog {n},{c}", "pairs"),
    ("question,answer,label", "a cat {n},a dog {n},{c}", "pairs"),
    ("premise,hypothesis,label,explanation", "a cat {n},a dog {n},{c},it is so {n}", "pairs"),
    # A score of triples is a margin, and says nothing about the first two texts alone.
    ("query,positive,negative,score", "a cat {n},a dog {n},an owl {n},{n}", ""),
    ("text1,text2,text3,label", "a cat {n},a dog {n},an owl {n},{n}", ""),
    ("anchor,positive,hard_negative,label", "a cat {n},a dog {n},an owl {n},{n}", ""),
    ("query,positive,negative,score", "cat{n},dog{n},owl{n},{n}", ""),
    ("left,right,score,negation", "a cat {n},a dog {n},{n},word{n}", "pairs"),
    ("query,positive,negative,score", "a cat {n},a dog {n},{c},{n}", "pairs"),
]


@pytest.mark.parametrize(("header", "row", "kind"), NAMED)
def test_names_tell_the_columns_or_nothing_does(header: str, row: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join([header, *(row.format(n=n, c=n % 2) for n in range(30))]))
    if kind:
        assert (read_dataset(path).kind, len(read_dataset(path))) == (kind, 30)
    else:
        with pytest.raises(DataError, match="cannot be told which columns"):
            read_dataset(path)


def test_a_key_of_json_that_holds_other_keys_or_nothing_is_no_label(tmp_path: Path) -> None:
    rows = [{"_id": str(n), "text": f"a text {n}", "metadata": {"url": n}, "note": None} for n in range(4)]
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert read_dataset(tmp_path / "queries.jsonl").kind == "sentences"


def test_a_column_that_a_spreadsheet_emptied_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("\n".join(["left,right,score,", *(f"a {n},b {n},{n}," for n in range(12))]))
    data = read_dataset(tmp_path / "p.csv")
    assert data.values.tolist() == list(range(12))
    assert not any("without a name" in note for note in data.notes)


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_the_rest_of_a_text_that_a_spreadsheet_cut_is_told(tmp_path: Path, delimiter: str) -> None:
    """The labels of texts with commas and no quotes, opened and saved by a spreadsheet: accuracy 48.2 for 81.4."""
    rows = [
        ["label", "text", "", ""],
        *([f"{'ab'[n % 2]}", f"Well {n}", " how are you?" * (n > 6), ""] for n in range(12)),
    ]
    (tmp_path / "s.csv").write_text("\n".join(map(delimiter.join, rows)))
    (note,) = (note for note in read_dataset(tmp_path / "s.csv").notes if "without a name" in note)
    assert "5 of 12 rows" in note
    assert "line 9" in note
    pandas = pytest.importorskip("pandas")
    table = pandas.read_csv(tmp_path / "s.csv", sep=delimiter)  # which makes up names
    table.to_parquet(tmp_path / "s.parquet")
    table.to_json(tmp_path / "s.jsonl", orient="records", lines=True)
    table.to_csv(tmp_path / "t.csv")
    for name in ("s.parquet", "s.jsonl", "t.csv"):
        assert any(
            "5 of 12 rows have cells in a column without a name" in n for n in read_dataset(tmp_path / name).notes
        )


@pytest.mark.parametrize(
    ("header", "cells", "told"),
    [
        ("label,text,", "{label},zinc screw {n},{size}", True),
        ("label,text,", "{label},it cost 3,{n}50", True),
        (",label,text", "{n},{label},a text {n}", False),
        (",label,text", "{shuffled},{label},a text {n}", False),
        (",label,text", "{part},{label},a text {n}", False),
        (",Unnamed: 0.1,Unnamed: 0,label,text", "{n},{shuffled},{part}.0,{label},a text {n}", False),
        (",text,label", "{size},a text {n},{label}", True),
        ("label,text,", "{label},a text {n},{n}", False),
        ("label,text,", "{label},a text {n},", False),
    ],
)
def test_numbers_that_a_spreadsheet_cut_off_are_told_and_numbers_of_rows_are_not(
    tmp_path: Path, header: str, cells: str, told: bool
) -> None:
    """Sizes, years and prices with a decimal comma: accuracy 71.2 for 77.7, and another verdict."""
    rows = [cells.format(label="ab"[n % 2], n=n, size=n % 5, shuffled=7 * n % 40 + 3, part=n % 15) for n in range(40)]
    (tmp_path / "n.csv").write_text("\n".join([header, *rows]))
    pandas = pytest.importorskip("pandas")
    pandas.read_csv(tmp_path / "n.csv").to_parquet(tmp_path / "n.parquet")
    for name in ("n.csv", "n.parquet"):
        notes = read_dataset(tmp_path / name).notes
        assert any("40 of 40 rows have cells in a column without a name" in note for note in notes) is told


def test_a_column_without_a_name_that_has_no_role_is_told_and_one_that_has_is_not(tmp_path: Path) -> None:
    rows = [f"{'ab'[n % 2]},Well {n}, how are you?" for n in range(40)]
    (tmp_path / "s.csv").write_text("\n".join(["label,Unnamed: 1,Unnamed: 2", *rows]))
    columns = {"text": "Unnamed: 1", "label": "label"}
    assert any("without a name" in note for note in read_dataset(tmp_path / "s.csv", columns).notes)
    assert any("without a name" in note for note in read_texts(tmp_path / "s.csv", {"text": "Unnamed: 1"})[1])
    (tmp_path / "s.csv").write_text("\n".join(["label,Unnamed: 1", *(row.rpartition(",")[0] for row in rows)]))
    assert not any("without a name" in note for note in read_dataset(tmp_path / "s.csv", columns).notes)
    assert not any("without a name" in note for note in read_texts(tmp_path / "s.csv", {"text": "Unnamed: 1"})[1])


@pytest.mark.parametrize("header", [",intent", "left,right,"])
def test_an_error_about_columns_says_which_have_no_name(tmp_path: Path, header: str) -> None:
    """Texts in the index of pandas: the advice was to take the labels for the texts."""
    rows = [f"a text {n},{'abc'[n % 3]}" + f",{n % 3}" * (header[-1] == ",") for n in range(40)]
    (tmp_path / "t.csv").write_text("\n".join([header, *rows]))
    with pytest.raises(DataError, match="cannot be told which columns") as refused:
        read_dataset(tmp_path / "t.csv")
    assert refused.value.remedy.startswith("40 of 40 rows have cells in a column without a name")


@pytest.mark.parametrize(
    "header",
    [
        'Question A,Question B,"How similar, of 5?"',
        'A,"B, 2=long","Same? (1=yes, 0=no)"',
        "What do you see in the first?,And then?,score",
        "0,1,2",
    ],
)
def test_the_first_line_is_the_header_whatever_its_words(header: str, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("\n".join([header, *(f"a text {n},one more text {n},{n % 2}" for n in range(12))]))
    names = next(csv.reader([header]))
    columns = parse_columns("left={},right={},score={}".format(*names))
    assert read_dataset(tmp_path / "p.csv", columns).values.tolist() == [n % 2 for n in range(12)]


def test_the_advice_for_a_table_without_a_header_begins_with_the_header(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("".join(f"a cat {n},a dog {n},{n % 3}\n" for n in range(20)))
    with pytest.raises(DataError) as refused:
        read_dataset(tmp_path / "p.csv")
    assert refused.value.remedy.startswith("if the first line is an item and no header, put a header above it")


def test_a_label_of_blanks_and_what_cannot_be_seen_takes_no_time(tmp_path: Path) -> None:
    """The time to look for separators in blanks grows with the square of their number: 900,000 took hours."""
    rows = {"text": [f"a text {n}" for n in range(30)], "label": ["a", "b"] * 14 + ["a", "\u200b" + " " * 900_000]}
    parquet.write_table(pa.table(rows), tmp_path / "l.parquet")
    assert len(read_dataset(tmp_path / "l.parquet").classes) == 3


def test_a_column_that_the_user_names_has_no_other_role(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("intent,text\n" + "".join(f"{'ab'[n % 2]},a text {n}\n" for n in range(30)))
    data = read_dataset(tmp_path / "l.csv", {"text": "intent"})
    assert data.kind == "sentences"
    assert data.texts == ("a", "b")
    for header, columns in (
        ("source,target,label", {"text": "target"}), ("x,intent,label", {"text": "intent"}),
        ("x,labels,category", {"text": "labels"}), ("text,topic,label", {"split": "topic"}),
    ):  # fmt: skip
        rows = [f"a text {n},{('train', 'test')[n % 2]} {n},{'ab'[n % 2]}" for n in range(30)]
        if "split" in columns:
            rows = [f"a text {n},{('train', 'test')[n % 2]},{'ab'[n // 2 % 2]}" for n in range(30)]
        (tmp_path / "c.csv").write_text("\n".join([header, *rows]))
        assert read_dataset(tmp_path / "c.csv", columns).kind == "labels"


def test_columns_of_a_folder_of_the_beir_form_are_refused(tmp_path: Path) -> None:
    write_beir(tmp_path / "d", {"a": "a cat", "b": "a cow"}, {"q": "x", "r": "y"}, {"test": ["q a 1", "r b 1"]})
    for read in (read_dataset, read_texts):
        with pytest.raises(DataError, match="no columns to choose"):
            read(tmp_path / "d", {"text": "title"})


def test_a_list_of_texts_without_a_header_loses_no_text(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("Card arrival\nWhere is my card\nA third text of four\n")
    with pytest.raises(DataError, match=r"(?s)put a line above it: text.*header: --columns 'text=Card arrival'"):
        read_dataset(tmp_path / "s.csv")
    assert len(read_dataset(tmp_path / "s.csv", {"text": "Card arrival"})) == 2


def test_a_header_between_the_rows_is_named(tmp_path: Path) -> None:
    rows = "a cat,animal\na car,thing\n"
    for again in ("text,label", "\ufefftext,label", "Text,Label", "text, label"):
        (tmp_path / "joined.csv").write_text(f"text,label\n{rows}{again}\n{rows}", encoding="utf-8")
        with pytest.raises(DataError, match="a second time") as refused:
            read_dataset(tmp_path / "joined.csv")
        assert refused.value.where.endswith("joined.csv, line 4")


def test_lines_of_json_named_by_their_part_are_parts(tmp_path: Path) -> None:
    for name in ("train.json", "test.json"):
        lines = [json.dumps({"text": f"{name} {text}", "label": text}) for text in ("a cat", "a car")]
        (tmp_path / name).write_text("\n".join(lines))
    (tmp_path / "dataset_infos.json").write_text("{}")
    assert sorted(read_dataset(tmp_path).splits) == ["test", "test", "train", "train"]
    (tmp_path / "dev.csv").write_text("text,label\na cow,a cat\n")
    with pytest.raises(DataError, match="two formats"):
        read_dataset(tmp_path)


def test_the_parts_of_a_folder_have_the_same_columns(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("text,label\na cat,animal\na car,thing\n")
    (tmp_path / "test.csv").write_text("sentence,label\na cow,animal\n")
    with pytest.raises(DataError, match="other columns"):
        read_dataset(tmp_path)


def test_folders_in_a_folder_are_no_parts(tmp_path: Path) -> None:
    """As the hub keeps data sets that it has turned into Parquet: train/0000.parquet."""
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
        parquet.write_table(pa.table({"text": ["a cat"], "label": ["animal"]}), tmp_path / split / "0000.parquet")
    with pytest.raises(DataError, match="not read"):
        read_dataset(tmp_path)
    for split in ("train", "test"):
        (tmp_path / split).rename(tmp_path / f"my-{split}")
    with pytest.raises(DataError, match="holds no data"):
        read_dataset(tmp_path)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("train.jsonl", "comes twice"), ("training.tsv", "comes twice"), ("TEST.csv", "comes twice"),
        ("test-00000-of-00001.csv", "comes twice"), ("dev-00001-of-00002.csv", "not whole"),
        ("test-old.csv", "after no part"), ("my.test.csv", "after no part"), ("labels.csv", "after no part"),
        ("validation_matched-00000-of-00001.csv", "after no part"), ("0000.parquet", "after no part"),
        ("test-2.csv", "after no part"), ("dev.csv.gz", "not read"), ("dev.arrow", "not read"), ("dev.txt", "not read"),
        ("Validation.xlsx", "not read"), ("dev/0000.csv", "not read"), ("dev", "not read"), ("eval.csv.gz", "not read"),
        ("dev.h5", "not read"), ("data/dev.csv", "not read"),
    ],
)  # fmt: skip
def test_a_folder_holds_each_part_once_and_whole(more: str, said: str, tmp_path: Path) -> None:
    for name in ("train.csv", "test.csv", "train.py", "dev.npy", "validated.zip", more):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"text,label\na cat of {name},animal\na car of {name},thing\n")
    with pytest.raises(DataError, match=said) as refused:
        read_dataset(tmp_path)
    assert more.partition("/")[0] in refused.value.got
    (tmp_path / more).unlink()
    if "/" in more:
        (tmp_path / more).parent.rmdir()
    assert read_dataset(tmp_path).splits == ("train", "train", "test", "test")  # in the order of vectors


def test_the_numbered_files_of_a_part_are_one_part(tmp_path: Path) -> None:
    for name in ("train-00000-of-00002", "train-00001-of-00002-0123456789abcdef", "test-00000-of-00001"):
        (tmp_path / f"{name}.csv").write_text(f"text,label\na cat {name},animal\na car {name},thing\n")
    assert Counter(read_dataset(tmp_path).splits) == {"train": 4, "test": 2}
    (tmp_path / "many").mkdir()
    for number in range(12):
        (tmp_path / "many" / f"train-{number}-of-12.csv").write_text(f"text\nfile {number}\nfile {number} again\n")
    assert read_dataset(tmp_path / "many").texts[::2] == tuple(f"file {number}" for number in range(12))


def test_labels_that_nearly_every_text_has_alone_are_refused(tmp_path: Path) -> None:
    rows = [f"a text {n},{n * 0.37:.3f}" for n in range(40)]
    (tmp_path / "l.csv").write_text("\n".join(["text,target", *rows]))
    with pytest.raises(DataError, match="a class of their own"):
        read_dataset(tmp_path / "l.csv")


def test_bytes_are_no_vectors_unless_they_are_bits(tmp_path: Path) -> None:
    """sentence-transformers packs eight bits into a byte, whose cosine says nothing."""
    (tmp_path / "s.csv").write_text("text\n" + "\n".join(f"a text {n}" for n in range(8)))
    data = read_dataset(tmp_path / "s.csv")
    bits = np.random.default_rng(0).random((8, 16)) > 0.5
    packed = np.packbits(bits, axis=1)
    signed = (packed - 128.0).astype(np.int8)  # as sentence-transformers writes 'binary'
    np.testing.assert_array_equal((signed + 128.0).astype("uint8"), packed)
    for array in (packed, signed):
        np.save(tmp_path / "v.npy", array)
        with pytest.raises(DataError, match=r"(?s)packed bits.*unpackbits"):
            read_vectors(tmp_path / "v.npy", data)
    for wide in (np.int64, np.float32):  # as counts of words can be, too
        np.save(tmp_path / "v.npy", packed.astype(wide))
        assert any("packed bits?" in note for note in read_vectors(tmp_path / "v.npy", data)[1])
    np.save(tmp_path / "v.npy", np.unpackbits(packed, axis=1))
    found, notes = read_vectors(tmp_path / "v.npy", data)
    assert found.tolist() == bits.tolist()
    assert notes == ["vectors without texts: in the order of the rows, one for each distinct text"]


def test_vectors_without_texts_are_refused_where_a_row_without_a_text_changes_the_order_of_the_texts(
    tmp_path: Path,
) -> None:
    """Texts b and c change places if the second row is left out, so vectors may be in the one order or in the other."""
    vectors = np.random.default_rng(0).normal(size=(6, 4))
    np.save(tmp_path / "v.npy", vectors)
    rows = ["left,right,score", "a,d,1", "b,,0", "c,e,2", "b,f,3"]
    (tmp_path / "p.csv").write_text("\n".join(rows))
    with pytest.raises(DataError, match=r"can be in two orders"):
        read_vectors(tmp_path / "v.npy", read_dataset(tmp_path / "p.csv"))
    rows[2] = "a,,0"  # Row 1 has text a, too. So the order is the same without row 2.
    (tmp_path / "p.csv").write_text("\n".join(rows))
    found, _ = read_vectors(tmp_path / "v.npy", read_dataset(tmp_path / "p.csv"))
    np.testing.assert_allclose(found, vectors, rtol=1e-6)

    # The distinct texts of each column, of all rows; c is in both columns, so that there are fewer texts than cells.
    rows = ["left,right,score", "a,d,1", "b,,0", "c,e,2", "b,c,3"]
    (tmp_path / "p.csv").write_text("\n".join(rows))
    np.savez(tmp_path / "v.npz", left=vectors[:3], right=vectors[3:])
    with pytest.raises(DataError, match="can be in two orders"):
        read_vectors(tmp_path / "v.npz", read_dataset(tmp_path / "p.csv"))


def test_two_arrays_of_pairs_with_repeated_texts_are_read_where_a_row_is_left_out(tmp_path: Path) -> None:
    """Row 2 moves b before c among the distinct left texts; but there are fewer of these than pairs."""
    rows = ["left,right,score", "a,k,1", "b,,0", "c,l,2", "b,m,3", "a,n,4"]
    (tmp_path / "p.csv").write_text("\n".join(rows))
    data, x = read_dataset(tmp_path / "p.csv"), np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)
    np.savez(tmp_path / "v.npz", left=x[[0, 1, 2, 0]], right=x[3:])
    found, _ = read_vectors(tmp_path / "v.npz", data)
    assert {text: row.tolist() for text, row in zip(data.texts, found, strict=True)} == {
        text: row.tolist() for text, row in zip("acbklmn", x, strict=True)
    }


def test_vectors_of_another_number_of_pairs_are_refused_although_there_are_as_many_as_texts(tmp_path: Path) -> None:
    """Of two pairs and four texts, when the pairs have been turned and added."""
    (tmp_path / "p.csv").write_text("left,right,score\na,b,1\nc,d,2\nb,a,1\nd,c,3\n")
    np.save(tmp_path / "v.npy", np.random.default_rng(0).normal(size=(2, 2, 4)))
    with pytest.raises(DataError, match=r"(?s)not as many vectors.*\(4, 4\).*\(2, 2\)"):
        read_vectors(tmp_path / "v.npy", read_dataset(tmp_path / "p.csv"))
    (tmp_path / "rows.csv").write_text("left,right,score\n0,0,1\n1,0,2\n0,1,3\n")
    with pytest.raises(DataError, match=r"(?s)one array of rows.*two arrays"):
        read_vectors(tmp_path / "v.npy", read_dataset(tmp_path / "rows.csv"))


@pytest.mark.parametrize("again", ["a cat", ""])
def test_vectors_of_distinct_documents_or_of_judged_queries_alone_are_refused(tmp_path: Path, again: str) -> None:
    """Three documents, of which one comes again or is empty; three queries, of which two are judged: 2 + 3 is 3 + 2."""
    documents = {"a": "a cat", "b": again, "c": "a cow"}
    asked = {"q": "which cat", "r": "which hen", "s": "which cow"}
    write_beir(tmp_path / "d", documents, asked, {"test": ["q a 1", "s c 1"]})
    data = read_dataset(tmp_path / "d")
    np.save(tmp_path / "v.npy", VECTORS[:5])
    with pytest.raises(DataError, match=r"(?s)not as many vectors.*6 \(one per document and query\)"):
        read_vectors(tmp_path / "v.npy", data)
    np.save(tmp_path / "v.npy", VECTORS[:6])
    assert np.array_equal(read_vectors(tmp_path / "v.npy", data)[0], VECTORS[[0, 1, 2, 3, 5]])


@pytest.mark.parametrize("order", ["qrs", "rqs"])
def test_vectors_are_refused_where_the_judgements_name_all_queries_in_another_order(tmp_path: Path, order: str) -> None:
    """Libraries that read the form give the queries in the order of the judgements."""
    asked = {"q": "which cat", "r": "which hen", "s": "which cow"}
    write_beir(tmp_path / "d", {"a": "a cat", "b": "a cow"}, asked, {"test": [f"{query} a 1" for query in order]})
    data, right = read_dataset(tmp_path / "d"), order == "qrs"
    np.save(tmp_path / "v.npy", VECTORS[:5])
    np.savez(tmp_path / "v.npz", corpus=VECTORS[:2], queries=VECTORS[2:5])
    for name in ("v.npy", "v.npz"):
        with nullcontext() if right else pytest.raises(DataError, match=r"(?s)can be in two orders.*queries.jsonl"):
            assert np.array_equal(read_vectors(tmp_path / name, data)[0], VECTORS[:5])


def test_judgements_are_read_by_the_names_of_their_columns(tmp_path: Path) -> None:
    """Identifiers that are numbers fit in every order."""
    texts = {str(number): f"text {number}" for number in range(9)}
    write_beir(tmp_path / "d", texts, {key: f"which {text}" for key, text in texts.items()}, {})
    for header, lines in (("query-id corpus-id score", "0 1 1,2 3 1"), ("corpus-id score query-id", "1 1 0,3 1 2")):
        rows = [row.replace(" ", "\t") for row in (header, *lines.split(","))]
        (tmp_path / "d/qrels/test.tsv").write_text("\n".join(rows))
        assert read_dataset(tmp_path / "d").relevant == ({1: 1.0}, {3: 1.0})


@pytest.mark.parametrize(
    "rows",
    [
        "doc_id qid rel,0 1 1,2 3 1", "query-id corpus-id score annotator,0 1 1 7,2 3 1 9",
        "0 1 1,2 3 1", "0 0 1 1,1 0 2 1",  # the last as TREC has them
    ],
)  # fmt: skip
def test_judgements_with_other_columns_or_without_a_header_are_refused(rows: str, tmp_path: Path) -> None:
    texts = {str(number): f"text {number}" for number in range(9)}
    write_beir(tmp_path / "d", texts, {key: f"which {text}" for key, text in texts.items()}, {})
    (tmp_path / "d/qrels/test.tsv").write_text("\n".join(row.replace(" ", "\t") for row in rows.split(",")))
    with pytest.raises(DataError, match=r"(?s)other columns|one name.*header"):
        read_dataset(tmp_path / "d")


def test_blanks_behind_commas_belong_to_no_cell(tmp_path: Path) -> None:
    rows = [f'"a text {n}", "one more, {n}", {n % 3}' for n in range(12)]
    (tmp_path / "p.csv").write_text("\n".join(['"left", "right", "score"', *rows]))
    data = read_dataset(tmp_path / "p.csv")
    assert "one more, 3" in data.texts and data.values.tolist() == [n % 3 for n in range(12)]
    (tmp_path / "p.csv").write_text("\n".join(["left ,right,score ", *(f"a {n},b {n},{n}" for n in range(12))]))
    assert read_dataset(tmp_path / "p.csv", parse_columns("left=left,right=right,score=score")).kind == "pairs"


def test_judgements_that_are_named_after_no_part_are_refused_beside_others(tmp_path: Path) -> None:
    asked = {str(number): f"which {number}" for number in range(4)}
    judged = {"test": ["0 a 1", "1 a 1"], "test_old": ["2 b 1", "3 b 1"]}
    write_beir(tmp_path / "d", {"a": "a cat", "b": "a cow"}, asked, judged)
    with pytest.raises(DataError, match="named after no part"):
        read_dataset(tmp_path / "d")


def test_hidden_labels_of_a_test_part_are_refused(tmp_path: Path) -> None:
    """As GLUE has them. No text of the part could be right, in whatever space."""
    rows = [f"a text {n},{n % 2},train" for n in range(20)] + [f"one more {n},-1,test" for n in range(10)]
    (tmp_path / "p.csv").write_text("\n".join(["text,label,split", *rows]))
    with pytest.raises(DataError, match="no class of the other parts"):
        read_dataset(tmp_path / "p.csv")
    (tmp_path / "p.csv").write_text("\n".join(["text,label,split", *rows, "a last one,1,test"]))
    assert read_dataset(tmp_path / "p.csv").classes == ("-1", "0", "1")


def test_a_first_line_for_excel_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("sep=;\nleft;right;score\na;b;1\nc;d;0\n")
    with pytest.raises(DataError, match="no header") as refused:
        read_dataset(tmp_path / "p.csv")
    assert refused.value.where.endswith("p.csv, line 1")


def test_files_named_by_their_split_are_one_data_set(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("text,label\na cat,animal\na car,thing\n")
    (tmp_path / "validation.csv").write_text("text,label\na cow,animal\n")
    (tmp_path / "test.csv").write_text("text,label\na pen,thing\n")
    data = read_dataset(tmp_path)
    assert sorted(zip(data.texts, data.splits, strict=True)) == [
        ("a car", "train"),
        ("a cat", "train"),
        ("a cow", "dev"),
        ("a pen", "test"),
    ]
    assert data.classes == ("animal", "thing")


def test_what_is_odd_is_counted_with_its_first_place(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(
        "left,right,score,split\na,b,1,train\nb,a,1,train\na,b,0,train\n,c,1,train\nd,d,1,train\na,e,0.5,test\n"
        + "".join(f"f{n},g{n},{n % 3},train\n" for n in range(200))
        + "h,i,999,train\n"
    )
    notes = "\n".join(read_dataset(tmp_path / "p.csv").notes)
    for said in (
        "1 rows with an empty text are left out; the first: ",
        "1 pairs of a text with itself",
        "1 pairs repeat earlier ones; the first",
        "1 pairs repeat earlier ones with another value",
        "1 scores are far from all others",
        "1 items of the test part share a text",
    ):
        assert said in notes
    assert "p.csv, line 5" in notes


def test_what_is_odd_about_queries_and_sentences_is_counted_with_its_first_place(tmp_path: Path) -> None:
    texts = ["one", "two", "one", "three"]
    (tmp_path / "corpus.jsonl").write_text(
        "\n".join(json.dumps({"_id": f"d{row}", "text": text}) for row, text in enumerate(texts))
    )
    asked = {"q1": "which", "q2": "what", "q3": "which", "q4": "why", "none": "what"}
    (tmp_path / "queries.jsonl").write_text(
        "\n".join(json.dumps({"_id": name, "text": text}) for name, text in asked.items())
    )
    (tmp_path / "qrels").mkdir()
    head = "query-id\tcorpus-id\tscore\n"
    (tmp_path / "qrels" / "train.tsv").write_text(head + "q1\td0\t1\nq2\td1\t1\n")
    (tmp_path / "qrels" / "test.tsv").write_text(head + "q2\td1\t1\nq3\td2\t1\nq4\td3\t1\n")
    notes = "\n".join(read_dataset(tmp_path).notes)
    for said in (
        f"1 documents repeat the text of an earlier one; the first: {tmp_path}/corpus.jsonl, line 3",
        f"2 queries repeat the text of an earlier one; the first: {tmp_path}/queries.jsonl, line 3",
        "1 queries without a relevant document are left out; the first: none",
        "1 queries are judged in two parts and count for the first of these; the first: q2",
        "1 queries of the test part are in the other parts too; the first: q3",
    ):
        assert said in notes
    (tmp_path / "s.txt").write_text("a cat\na dog\n\na cat\na cat\n")
    notes = "\n".join(read_dataset(tmp_path / "s.txt").notes)
    (tmp_path / "mac.txt").write_bytes(b"a cat\ra dog\r")  # Excel's Text (Macintosh)
    assert read_sentences(tmp_path / "mac.txt") == ["a cat", "a dog"]
    assert read_dataset(tmp_path / "mac.txt").texts == ("a cat", "a dog")
    (tmp_path / "mac.txt").write_bytes(b"a cat\ra dog\ra cow\n")  # a file of which an editor ended the last line
    for read in (read_sentences, read_dataset):
        with pytest.raises(DataError, match=r"(?s)carriage return inside.*line 1.*17 characters"):
            read(tmp_path / "mac.txt")
    (tmp_path / "dos.txt").write_bytes(b"a cat\r\na dog\n\r\na cow\r\r\n")
    assert read_sentences(tmp_path / "dos.txt") == ["a cat", "a dog", "", "a cow"]
    for encoding in ("utf-32", "utf-32-le"):
        (tmp_path / "wide.txt").write_bytes(("\ufeff" * (encoding != "utf-32") + "a cat\na dog\n").encode(encoding))
        with pytest.raises(DataError, match="not UTF-16, although"):
            read_dataset(tmp_path / "wide.txt")
    (tmp_path / "t.txt").write_bytes("left\tright\tscore\na cat\ta dog\t1\n".encode("utf-16"))  # Excel's Unicode text
    with pytest.raises(DataError, match="has a tab, as a table has"):
        read_dataset(tmp_path / "t.txt")
    assert f"2 sentences repeat earlier ones and count once; the first: {tmp_path}/s.txt, line 4" in notes


@pytest.mark.parametrize(
    ("scores", "said"), [([0, 2.5, -1, 5], True), ([1, -1, 1, -1], False), ([0, -2, -1, 1], False)]
)
def test_a_score_that_may_mean_that_there_is_none_is_asked_about(
    scores: list[float], said: bool, tmp_path: Path
) -> None:
    rows = [f"a cat {row},a dog {row},{score}" for row, score in enumerate(scores)]
    (tmp_path / "p.csv").write_text("\n".join(["left,right,score", *rows]) + "\n")
    assert any("does -1 mean that there is none?" in note for note in read_dataset(tmp_path / "p.csv").notes) is said


def test_roles_that_the_user_gives_win_over_names(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("left,right,score,mine\na cat,a dog,1,0\na cow,a hen,0,5\n")
    data = read_dataset(tmp_path / "p.csv", {"score": "mine"})
    assert data.values.tolist() == [0.0, 5.0]


def test_words_for_yes_and_no_are_scores_and_labels_of_dashes_are_names(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("left;right;match\na cat sits;a dog sits;yes\na cow eats;a hen eats;no\n")
    data = read_dataset(tmp_path / "t.csv")
    assert (data.kind, data.values.tolist()) == ("pairs", [1.0, 0.0])
    (tmp_path / "u.csv").write_text("text,label\na cat sits,--1\na dog sits,-10\na cow eats,-9\n")
    assert read_dataset(tmp_path / "u.csv").classes == ("-10", "-9", "--1")


@pytest.mark.parametrize(
    ("header", "row", "options"),
    [
        ("Question A,Question B,Same?", "a cat {n},a dog {n},{c}", [
            "left=Question A,right=Question B,score=Same?", "text=Question B,label=Same?", "text=Question B",
        ]),
        ("Class Index,Title,Description", "{c},a cat {n},it is a cat {n}", [
            "left=Title,right=Description,score=Class Index", "text=Description,label=Class Index",
        ]),
        ("body,label_text,code,part", "a cat {n},not toxic {c},{c},test", ["text=body,label=label_text,split=part"]),
        ("正文,类别", "猫{n},宠{c}", ["text=正文,label=类别"]),
        ("Text $(touch x),Type ($US)", "a cat {n},{c}", ["text=Text $(touch x),label=Type ($US)"]),
        ("text,label,place,remark", "a cat {n},{c},e.org/{n},said of a cat {n}", ["text=text,label=label"]),
    ],
)  # fmt: skip
def test_an_error_about_columns_shows_the_options_with_the_columns_of_the_file(
    header: str, row: str, options: list[str], tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("\n".join([header, *(row.format(n=n, c=n % 3) for n in range(30))]))
    with pytest.raises(DataError, match="which columns") as refused:
        read_dataset(tmp_path / "t.csv")
    for option in options:
        assert f"--columns {shlex.quote(option)}" in refused.value.remedy
        read_dataset(tmp_path / "t.csv", parse_columns(option))


def test_words_that_are_no_scores_are_counted_in_all_rows(tmp_path: Path) -> None:
    rows = [f"a cat {n},a dog {n},{('yes', 'partly', 'no')[n % 3]}" for n in range(30)]
    (tmp_path / "p.csv").write_text("\n".join(["left,right,score", *rows]))
    with pytest.raises(DataError, match="a score is no number") as refused:
        read_dataset(tmp_path / "p.csv")
    assert refused.value.got == "'partly' in 10 rows"


def test_a_list_of_labels_is_refused_and_lists_in_parquet_are_named(tmp_path: Path) -> None:
    labels = [["a", "b"], ["b", "a"], ["a"], ["b"]]
    lines = [json.dumps({"text": f"a text {n}", "labels": of}) for n, of in enumerate(labels)]
    (tmp_path / "l.jsonl").write_text("\n".join(lines))
    (tmp_path / "l.csv").write_text("\n".join(["text,label", *(f'a text {n},"{of}"' for n, of in enumerate(labels))]))
    chosen = ['"{""choices"": [""a"", ""b""]}"', "a", "b", "a"]  # as Label Studio writes several
    (tmp_path / "s.csv").write_text("\n".join(["text,label", *(f"a text {n},{of}" for n, of in enumerate(chosen))]))
    for name in ("l.jsonl", "l.csv", "s.csv"):
        with pytest.raises(DataError, match="a list of labels"):
            read_dataset(tmp_path / name)
    parquet.write_table(pa.table({"text": [f"a text {n}" for n in range(4)], "labels": labels}), tmp_path / "l.parquet")
    assert any("left out: labels" in note for note in read_dataset(tmp_path / "l.parquet").notes)


def test_a_class_has_one_name_however_its_letters_are_composed(tmp_path: Path) -> None:
    names = ["Kündigung", "Ku\u0308ndigung", "card  arrival", "card arrival", "u" + 400_000 * "\u0308" + "\u0323"]
    rows = [f"text {n},{names[n % 5]}" for n in range(20)] + ["text a,Card arrival", "text b,Card arrival"]
    (tmp_path / "l.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    found = read_dataset(tmp_path / "l.csv")
    assert len(found.classes) == 4 and {"Kündigung", "card arrival", "Card arrival"} < set(found.classes)
    assert any(
        "2 classes differ from others in capitals alone; the first: Card arrival" in note for note in found.notes
    )


@pytest.mark.parametrize("unseen", ["\u200b", "\ufeff", "\u200e", "\u00ad", "\u200d", "\u2066"])
def test_a_class_has_one_name_whatever_unseen_characters_were_copied_with_it(tmp_path: Path, unseen: str) -> None:
    names = ["refund", f"refund{unseen}", f"{unseen}refund", "late", unseen]
    (tmp_path / "l.csv").write_text(
        "\n".join(["text,label", *(f"text {n},{names[n % 5]}" for n in range(20))]), encoding="utf-8"
    )
    assert sorted(read_dataset(tmp_path / "l.csv").classes)[:2] == ["late", "refund"]
    flags = ["\U0001f3f4\U000e0065\U000e007f", "\U0001f3f4\U000e0073\U000e007f"]
    assert len({class_name(name) for name in [*flags, "a\u200db", "ab"]}) == 4


@pytest.mark.parametrize("title", [True, False])
def test_vectors_beside_documents_as_the_corpus_has_them_are_matched(tmp_path: Path, *, title: bool) -> None:
    documents = [{"_id": f"d{n}", "title": f"thing {n}" * title, "text": f" about {n} \n"} for n in range(3)]
    write_beir(tmp_path / "q", {"a": "x"}, {"q": "which ", "r": "what"}, {"test": ["q d0 1", "r d1 1"]})
    (tmp_path / "q/corpus.jsonl").write_text("\n".join(map(json.dumps, documents)))
    rows = [*documents, {"_id": "r", "title": None, "text": "what"}, {"_id": "q", "title": None, "text": "which "}]
    x = np.eye(5, dtype=np.float32)
    table = pa.Table.from_pylist(rows).append_column("vector", pa.array(list(x), pa.list_(pa.float32())))
    parquet.write_table(table if title else table.drop(["title"]), tmp_path / "v.parquet")
    read = read_vectors(tmp_path / "v.parquet", read_dataset(tmp_path / "q"))[0]
    np.testing.assert_array_equal(read, x[[0, 1, 2, 4, 3]])


@pytest.mark.parametrize("name", ["d.parquet", "category.parquet", "bytes.parquet", "d.csv"])
@pytest.mark.parametrize("joined", [True, False])
def test_titles_of_labelled_texts_are_joined_on_both_sides(tmp_path: Path, name: str, *, joined: bool) -> None:
    x = np.eye(6, dtype=np.float32)
    rows = [{"_id": f"d{n}", "title": f"thing {n}", "text": f"about {n}", "label": f"{n % 2}"} for n in range(6)]
    table = pa.Table.from_pylist(rows)
    write = parquet.write_table if name.endswith("parquet") else write_csv
    titles = table.column("title")
    forms = {"category.parquet": titles.dictionary_encode(), "bytes.parquet": titles.cast(pa.binary())}
    write(table.set_column(1, "title", forms.get(name, titles)), tmp_path / name)
    data = read_dataset(tmp_path / name)
    assert read_sentences(tmp_path / name) == list(data.texts)
    if joined:  # as whoever encodes the joined text may keep the title, too
        table = table.set_column(2, "text", pa.array([f"{row['title']} {row['text']}" for row in rows]))
    vectors = pa.array(list(x[::-1]), pa.list_(pa.float32()))
    parquet.write_table(table.take(list(range(5, -1, -1))).append_column("vector", vectors), tmp_path / "v.parquet")
    np.testing.assert_array_equal(read_vectors(tmp_path / "v.parquet", data)[0], x)


@pytest.mark.parametrize("named", [True, False])
def test_the_advice_for_pairs_whose_vectors_have_identifiers_leads_to_their_vectors(
    tmp_path: Path, *, named: bool
) -> None:
    ids, x = [7, 3, 9, 4], np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    cells = [(n, n + 4) for n in range(4)] if named else [(f"text {n}", f"other {n}") for n in range(4)]
    rows = [f"{pair},{left},{right},{n}" for n, (pair, (left, right)) in enumerate(zip(ids, cells, strict=True))]
    (tmp_path / "p.csv").write_text("\n".join(["id,left,right,score", *rows]))
    data, mixed = read_dataset(tmp_path / "p.csv"), [2, 0, 3, 1]
    table = {"id": [ids[row] for row in mixed], "left": list(x[mixed]), "right": list(x[[row + 4 for row in mixed]])}
    order = np.argsort(mixed)
    if named:
        order = np.array([0, 1, 6, 3, 4, 5, 2, 7])  # its own inverse
        table = {"id": order.tolist(), "vector": list(x[order])}
    parquet.write_table(pa.table(table), tmp_path / "v.parquet")
    done = parquet.read_table(tmp_path / "v.parquet").drop(["id"])
    advised = r"write the row of each vector into the pairs" if named else r"sort the rows as those of p\.csv"
    with pytest.raises(DataError, match=f"(?s)other columns and no texts.*to do +{advised}"):
        read_vectors(tmp_path / "v.parquet", data)
    if named:
        row_of = {number: row for row, number in enumerate(order.tolist())}
        rows = [f"{pair},{row_of[n]},{row_of[n + 4]},{n}" for n, pair in enumerate(ids)]
        (tmp_path / "p.csv").write_text("\n".join(["id,left,right,score", *rows]))
        parquet.write_table(done, tmp_path / "v.parquet")
        data = read_dataset(tmp_path / "p.csv")
        np.testing.assert_array_equal(
            read_vectors(tmp_path / "v.parquet", data)[0][data.rows], x[[[0, 4], [1, 5], [2, 6], [3, 7]]]
        )
        return
    parquet.write_table(done.take(list(order)), tmp_path / "v.parquet")
    np.testing.assert_array_equal(read_vectors(tmp_path / "v.parquet", data)[0], x)


def test_the_column_called_vector_is_the_vectors_and_in_doubt_none_is(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("\n".join(["text,label", *(f"text {n},{n % 2}" for n in range(6))]))
    data, texts = read_dataset(tmp_path / "l.csv"), [f"text {n}" for n in range(6)]
    bits = np.random.default_rng(0).integers(0, 2, (6, 8)).astype(np.uint8)
    shares = list(np.random.default_rng(1).random((6, 3)))
    flat = pa.FixedSizeListArray.from_arrays(pa.array(bits.ravel().astype(np.float32)), 8)
    tensors = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [8]), flat)
    for columns, is_read in (
        ({"vector": list(bits), "shares": shares}, True),
        ({"embedding": list(bits), "shares": shares}, True),
        ({"shares": shares}, False),
        ({"members": shares, "embedding": list(bits)}, True),
        ({"embedding": list(bits), "vec2": shares}, True),
        ({"my_emb": list(bits), "vec2": shares}, False),
        ({"vector": [str(row) for row in bits.tolist()], "shares": shares}, False),
        ({"embedding": list(bits), "tags": [["a"]] * 6}, True),
        ({"embedding": list(bits), "vector": ["email", "usb"] * 3}, True),
        ({"embedding": list(bits), "vector": pa.nulls(6)}, True),
        ({"embedding": [[row] for row in bits.tolist()], "shares": shares}, False),
        # As pgvector gives vectors to a program that does not know its type, as bytes, of Spark, and a column a number.
        ({"place": shares, "embedding": [str(row) for row in bits.tolist()]}, False),
        ({"place": shares, "embedding": [bytes([255]) * 128] * 6}, False),
        ({"place": shares, "embedding": [{"type": 1, "values": row} for row in bits.tolist()]}, False),
        ({"umap_embedding": shares, "vector": [str(row) for row in bits.tolist()]}, False),
        ({"umap_embedding": shares, "vector": [bytes(row) for row in bits + 128]}, False),
        ({"umap_embedding": shares, "vector": tensors}, False),
        ({"umap_embedding": shares, "embedding": [str(row) for row in bits.tolist()]}, False),
        ({"embedding_model": ["a model"] * 6, "embedding": list(bits)}, True),
        ({"text_to_embed": ["[Music] a"] * 6, "emb_meta": [{"dim": 8}] * 6, "embedding": list(bits)}, True),
        ({"place": shares, **{str(number): bits[:, number] for number in range(8)}}, False),
    ):
        parquet.write_table(pa.table({"text": texts, **columns}), tmp_path / "v.parquet")
        if is_read:
            vectors, notes = read_vectors(tmp_path / "v.parquet", data)
            np.testing.assert_array_equal(vectors, bits)
            assert ("vectors: column embedding, 8 numbers each" in notes) == ("embedding" in columns)
        else:
            with pytest.raises(DataError, match=r"one array|no numbers|no column of vectors"):
                read_vectors(tmp_path / "v.parquet", data)


def test_texts_in_bytes_are_texts_and_other_bytes_are_none(tmp_path: Path) -> None:
    texts, x = ["a cat", "é 猫", "a cow", "an owl"], np.eye(4, dtype=np.float32)
    label = [0, 1, 0, 1]
    parquet.write_table(pa.table({"text": [text.encode() for text in texts], "label": label}), tmp_path / "d.parquet")
    data = read_dataset(tmp_path / "d.parquet")
    assert data.texts == tuple(texts) and read_sentences(tmp_path / "d.parquet") == texts
    for kind in (pa.binary(), pa.large_binary()):
        coded = pa.array([text.encode() for text in texts[::-1]], kind)
        parquet.write_table(pa.table({"text": coded, "vector": list(x[::-1])}), tmp_path / "v.parquet")
        np.testing.assert_array_equal(read_vectors(tmp_path / "v.parquet", data)[0], x)
    coded = [text.encode("utf-16") for text in texts[::-1]]
    parquet.write_table(pa.table({"text": coded, "vector": list(x[::-1])}), tmp_path / "v.parquet")
    with pytest.raises(DataError, match="has other columns and no texts"):
        read_vectors(tmp_path / "v.parquet", data)


@pytest.mark.parametrize(("names", "kind"), [(("left", "right"), "pairs"), (("corpus", "queries"), "queries")])
def test_two_arrays_with_identifiers_beside_them_are_refused(tmp_path: Path, names: tuple[str, str], kind: str) -> None:
    """Identifiers can tell that the order is another: searchers sort documents by length before they encode them."""
    (tmp_path / "p.csv").write_text("left,right,score\n" + "\n".join(f"text {n},other {n},{n}" for n in range(3)))
    write_beir(
        tmp_path / "q", {"1": "a", "2": "b", "3": "c"}, {"4": "x", "5": "y", "6": "z"}, {"test": ["4 1 1", "5 2 1"]}
    )
    data = read_dataset(tmp_path / ("p.csv" if kind == "pairs" else "q"))
    arrays = {name: np.eye(3, dtype=np.float32) for name in names}
    np.savez(tmp_path / "v.npz", **arrays)
    assert read_vectors(tmp_path / "v.npz", data)[0].any()
    np.savez(tmp_path / "v.npz", **arrays, ids=np.arange(3))
    with pytest.raises(DataError, match="does not hold one array"):
        read_vectors(tmp_path / "v.npz", data)


def test_pairs_of_numerals_that_are_texts_of_the_vectors_are_asked_about(tmp_path: Path) -> None:
    """Taken for rows, pairs whose true Spearman is 93.1 had -7.8."""
    (tmp_path / "p.csv").write_text("left,right,score\n" + "".join(f"{n},{n + 1},{n % 3}\n" for n in range(5)))
    data, x = read_dataset(tmp_path / "p.csv"), np.eye(8, dtype=np.float32)
    lists = pa.array(list(x), pa.list_(pa.float32()))
    numerals = [str(n) for n in range(8)]
    whole = [*range(1, 9)]  # as pandas has them
    for texts, sound in (
        (numerals[::-1], False), (numerals, True), ([f"no {n}" for n in numerals], True), ([*range(8)], True),
        (whole, False), ([*range(20, 28)], True), ([f"{n:04}" for n in whole], False),
        ([float(n) for n in whole], False), ([f"{n}.0" for n in whole], False),
    ):  # fmt: skip
        parquet.write_table(pa.table({"text": texts, "vector": lists}), tmp_path / "v.parquet")
        with nullcontext() if sound else pytest.raises(DataError, match="can be rows of the vectors, or texts"):
            assert np.array_equal(read_vectors(tmp_path / "v.parquet", data)[0], x)


def test_a_hundred_thousand_repeats_of_few_texts_are_refused_where_they_would_be_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two million rows of 64 texts are 26 KB of Parquet; their resamples took 9.8 GB and minutes."""
    monkeypatch.setattr("sentfold.data.datasets.MANY_ROWS", 1_000)  # which are read in a moment
    texts = [f"text {number % 64}" for number in range(1_064)]
    labels = {"label": ["ab"[number % 2] for number in range(len(texts))]}
    pairs = {"right": texts[::-1], "score": [*range(len(texts))]}
    for first, others in (("text", labels), ("left", pairs)):
        parquet.write_table(pa.table({first: texts, **others}), tmp_path / "d.parquet")
        with pytest.raises(DataError, match="nearly all rows come again"):
            read_dataset(tmp_path / "d.parquet")
        assert len(read_dataset(tmp_path / "d.parquet", judged=False).texts) == 64
        parquet.write_table(pa.table({first: texts, **others}).slice(0, 500), tmp_path / "d.parquet")
        assert len(read_dataset(tmp_path / "d.parquet")) == 500


def test_points_between_thousands_are_asked_about(tmp_path: Path) -> None:
    """As spreadsheets of German write 1049."""
    for scores, sound in (
        (["950", "1.049", "40"], False), (["950", "1.049.000", "40"], False), (["0", "1", "0.333", "2.667"], True),
        (["950", "1.05", "1.049"], True), (["1.049", "2.500"], True), (["0", "33.333", "66.667", "100"], True),
    ):  # fmt: skip
        rows = [f"text {place};other {place};{score}" for place, score in enumerate(scores)]
        (tmp_path / "p.csv").write_text("\n".join(["left;right;score", *rows]))
        with nullcontext() if sound else pytest.raises(DataError, match=r"between thousands|no number"):
            read_dataset(tmp_path / "p.csv")
    rows = [{"left": f"text {score}", "right": f"other {score}", "score": score} for score in (950, 1.049, 40)]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert read_dataset(tmp_path / "p.jsonl").values.tolist() == [950, 1.049, 40]


def test_a_key_of_json_that_comes_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"text": "one", "label": "a"}\n{"text": "two", "label": "a", "label": "x"}\n')
    with pytest.raises(DataError, match=r"(?s)line 2.*a key that comes twice"):
        read_dataset(tmp_path / "d.jsonl")


def test_the_advice_names_the_column_whose_name_is_a_scores_own(tmp_path: Path) -> None:
    """SICK has labels of inference, and scores of relatedness."""
    rows = [f"{n},text {n},other {n},{n % 3},{n}.5,{n % 2}" for n in range(9)]
    head = "id,sentence_A,sentence_B,label,relatedness_score,entailment_AB"
    (tmp_path / "sick.csv").write_text("\n".join([head, *rows]))
    with pytest.raises(DataError) as refused:
        read_dataset(tmp_path / "sick.csv")
    assert "score=relatedness_score" in refused.value.remedy


def test_a_title_is_read_alone_where_it_is_named(tmp_path: Path) -> None:
    lines = [{"_id": f"{n}", "title": f"thing {n}", "text": f"about {n}", "label": n % 2} for n in range(4)]
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, lines)))
    for named, first in ((None, "thing 0 about 0"), ("title", "thing 0"), ("text", "about 0")):
        columns = {"text": named, "label": "label"} if named else {}
        assert read_dataset(tmp_path / "c.jsonl", columns).texts[0] == first
        assert read_texts(tmp_path / "c.jsonl", {"text": named} if named else {})[0][0] == first
        data, x = read_dataset(tmp_path / "c.jsonl", columns), np.eye(4, dtype=np.float32)
        table = pa.Table.from_pylist(lines[::-1]).append_column("vector", pa.array(list(x), pa.list_(pa.float32())))
        parquet.write_table(table, tmp_path / "v.parquet")
        np.testing.assert_array_equal(read_vectors(tmp_path / "v.parquet", data)[0], x[::-1])


@pytest.mark.parametrize("name", ["d.parquet", "d.jsonl", "d.csv"])
def test_blanks_around_a_columns_name_are_no_part_of_it(tmp_path: Path, name: str) -> None:
    """As Excel keeps them behind headers. No option can name them, as options are cut at blanks."""
    table = pa.table({" Ask ": ["a cat", "a dog", "a cow", "an owl"], "Kind ": ["pet", "pet", "farm", "wild"]})
    if name.endswith("jsonl"):
        (tmp_path / name).write_text("\n".join(map(json.dumps, table.to_pylist())))
    else:
        (parquet.write_table if name.endswith("parquet") else write_csv)(table, tmp_path / name)
    data = read_dataset(tmp_path / name, parse_columns("text= Ask ,label=Kind "))
    assert (data.texts[0], data.classes) == ("a cat", ("farm", "pet", "wild"))
    assert read_sentences(tmp_path / name, "text=Ask") == list(data.texts)


MISSING_WORDS = ["#NV", "#N/D", "#BEZUG!", "#DIV/0!", "#N/A", "NA", "\\N", "NULL", "nan", "<NA>", " N/A "]


@pytest.mark.parametrize("word", MISSING_WORDS)
def test_words_for_a_missing_value_are_no_class(tmp_path: Path, word: str) -> None:
    """As R, Excel, PostgreSQL and pandas write a cell without a value. An empty one is refused, too."""
    (tmp_path / "l.csv").write_text(f"text,label\na cat,pet\na dog,pet\na cow,{word}\nan owl,wild\n")
    with pytest.raises(DataError, match=r"(?s)a label may be missing.*line 4, column label"):
        read_dataset(tmp_path / "l.csv")


@pytest.mark.parametrize("word", ["NA", "None", "#NAME?", "(null)"])
def test_a_word_that_many_rows_have_as_their_text_is_asked_about(tmp_path: Path, word: str) -> None:
    rows = [f"a cat {n},{word if n % 5 == 0 else f'a dog {n}'},{n}" for n in range(40)]
    (tmp_path / "p.csv").write_text("\n".join(["left,right,score", *rows]))
    asked = f"8 rows have the text {word!r}; does it mean that there is none? then leave them out"
    assert asked in read_dataset(tmp_path / "p.csv").notes
    (tmp_path / "p.csv").write_text("\n".join(["left,right,score", *(row.replace(word, "an owl") for row in rows)]))
    assert not any("does it mean" in note for note in read_dataset(tmp_path / "p.csv").notes)
    of_rows = [f"{n},{0 if n % 5 == 0 else n + 40},{n}" for n in range(1, 41)]  # one vector in many pairs is a vector
    (tmp_path / "p.csv").write_text("\n".join(["left,right,score", *of_rows]))
    assert not any("does it mean" in note for note in read_dataset(tmp_path / "p.csv").notes)
    names = [f"name{n},name{m},{int(n == m + 1)}" for n in range(20) for m in range(n)]  # all pairs of names
    (tmp_path / "p.csv").write_text("\n".join(["left,right,score", *names]))
    assert not any("does it mean" in note for note in read_dataset(tmp_path / "p.csv").notes)


def test_a_list_in_the_place_of_a_text_is_an_error_and_no_traceback(tmp_path: Path) -> None:
    lines = [{"left": ["a cat"], "right": f"a dog {number}", "score": number} for number in range(4)]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(DataError, match="a text is of another type"):
        read_dataset(tmp_path / "p.jsonl")


@pytest.mark.parametrize(("code", "asked"), [(99, True), (9, True), (-9, True), (6, False), (2.5, False)])
def test_a_code_among_scores_is_asked_about_however_many_pairs_have_it(
    code: float, asked: bool, tmp_path: Path
) -> None:
    """As SPSS writes a missing value; here a tenth of the pairs has it."""
    rows = [f"a cat {n},a dog {n},{code if n % 10 == 0 else n % 6}" for n in range(100)]
    (tmp_path / "p.csv").write_text("\n".join(["left,right,score", *rows]))
    notes = read_dataset(tmp_path / "p.csv").notes
    assert any("10 scores are far from all others" in note for note in notes) == asked


@pytest.mark.parametrize(("code", "asked"), [(9, True), (7, False), (8.5, False)])
def test_a_nine_on_a_scale_up_to_seven_is_asked_about(code: float, asked: bool, tmp_path: Path) -> None:
    """The other scores are means of three raters."""
    rows = [f"a cat {n},a dog {n},{code if n % 10 == 0 else 1 + (n % 19) / 3}" for n in range(100)]
    (tmp_path / "p.csv").write_text("\n".join(["left,right,score", *rows]))
    notes = read_dataset(tmp_path / "p.csv").notes
    assert any("10 scores are far from all others" in note for note in notes) == asked


@pytest.mark.parametrize("name", ["None", "-1"])  # the second as pandas numbers a missing class, and clusterings noise
def test_classes_are_told_with_their_numbers_of_texts(name: str, tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text(f"text,label\na cat,pet\na dog,{name}\na cow,pet\nan owl,{name}\n")
    data = read_dataset(tmp_path / "l.csv")
    assert set(data.classes) == {name, "pet"}
    assert {f"2 classes: pet (2), {name} (2)"} & set(data.notes)


def test_hashtags_are_classes(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text(
        "text,label\na cat,#USA\na dog,#C/C++\na cow,#USA\nan owl,#metoo!\na hen,{greeting}\n"
    )
    assert set(read_dataset(tmp_path / "l.csv").classes) == {"#USA", "#C/C++", "#metoo!", "{greeting}"}


def test_names_of_columns_that_differ_by_blanks_are_refused(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"text": "a cat", "label": 1}\n{"text ": "a dog", "label": 0}')
    parquet.write_table(pa.table({"text": ["a", "b"], "text ": ["c", "d"]}), tmp_path / "d.parquet")
    for name in ("d.jsonl", "d.parquet"):
        with pytest.raises(DataError, match=r"(?s)two (keys|columns) have one name"):
            read_dataset(tmp_path / name)


def test_a_long_label_of_commas_takes_no_time(tmp_path: Path) -> None:
    labels = ["a", "b", "[" + "," * 1_000_000]  # an expression that tries each comma needs a quarter of an hour
    lines = [json.dumps({"text": f"a text {n}", "label": of}) for n, of in enumerate(labels)]
    (tmp_path / "l.jsonl").write_text("\n".join(lines))
    assert len(read_dataset(tmp_path / "l.jsonl").classes) == 3


def test_two_grades_of_one_document_are_refused_and_a_repeated_one_is_not(tmp_path: Path) -> None:
    write_beir(tmp_path / "d", {"a": "x", "b": "y"}, {"q": "which", "r": "what"}, {"test": ["q a 1", "r b 1", "q a 1"]})
    assert read_dataset(tmp_path / "d").relevant == ({0: 1.0}, {1: 1.0})
    with (tmp_path / "d/qrels/test.tsv").open("a") as stream:
        stream.write("\nr\tb\t0")
    with pytest.raises(DataError, match="judged twice") as refused:
        read_dataset(tmp_path / "d")
    assert "line 5" in refused.value.where


def test_two_grades_of_one_document_in_two_parts_are_refused(tmp_path: Path) -> None:
    texts, queries = {"a": "x", "b": "y"}, {"q": "which", "r": "what"}
    write_beir(tmp_path / "same", texts, queries, {"test": ["q a 1", "r b 1"], "train": ["q a 1", "q b 1"]})
    assert read_dataset(tmp_path / "same").relevant == ({0: 1.0, 1: 1.0}, {1: 1.0})
    write_beir(tmp_path / "other", texts, queries, {"test": ["q a 1", "r b 1"], "train": ["q a 0", "q b 1"]})
    with pytest.raises(DataError, match="two parts grade a document differently") as refused:
        read_dataset(tmp_path / "other")
    assert refused.value.where == "qrels, query q"


def test_files_of_databases_and_of_r_are_read_or_refused_with_what_to_do(tmp_path: Path) -> None:
    """DuckDB writes commas whatever the name; MySQL, PostgreSQL, R and Spark have escapes of their own."""
    (tmp_path / "duck.tsv").write_text("text,label\na cat,x\na dog,y\n")
    assert read_table(tmp_path / "duck.tsv").columns["label"] == ["x", "y"]
    (tmp_path / "one.tsv").write_text("text\na cat, a dog\na cow\n")
    assert read_table(tmp_path / "one.tsv").columns["text"] == ["a cat, a dog", "a cow"]
    (tmp_path / "one.tsv").write_text('"What, and why?"\na cat, a dog\na cow\n')
    assert list(read_table(tmp_path / "one.tsv").columns) == ["What, and why?"]
    (tmp_path / "one.tsv").write_text("text\n" + "a cow\n" * 30 + '"a" cat, a dog\n')
    assert read_table(tmp_path / "one.tsv").columns["text"][-2:] == ["a cow", '"a" cat, a dog']
    (tmp_path / "mysql.tsv").write_text("text\tlabel\na cat\\nslept\tx\na dog\ty\n")
    (note,) = read_table(tmp_path / "mysql.tsv").notes
    assert note.startswith(r"1 rows have \n or \t as two characters") and "line 2" in note
    (tmp_path / "r.tsv").write_text('"text"\t"label"\n"1"\t"a cat"\t"x"\n"2"\t"a dog"\t"y"\n')
    (tmp_path / "spark.csv").write_text('text,label\n"a \\"cat\\", asleep",x\na dog,y\n')
    (tmp_path / "r2.tsv").write_text('"text"\t"label"\n"a \\"cat\\", asleep"\t"x"\n"a dog"\t"y"\n')
    for name, advice in (("r.tsv", "row.names=FALSE"), ("spark.csv", "escape"), ("r2.tsv", "qmethod")):
        with pytest.raises(DataError) as refused:
            read_table(tmp_path / name)
        assert advice in refused.value.remedy, name
    write_csv_of_pairs = "left,right,score\na cat,a kitten,t\na dog,a car,f\n"
    (tmp_path / "postgres.csv").write_text(write_csv_of_pairs)
    assert read_dataset(tmp_path / "postgres.csv").values.tolist() == [1.0, 0.0]
    (tmp_path / "excel.csv").write_text(write_csv_of_pairs.replace(",t", ",WAHR").replace(",f", ",FALSCH"))
    with pytest.raises(DataError, match="write 1 for a match and 0"):
        read_dataset(tmp_path / "excel.csv")


def test_several_labels_in_a_cell_are_refused_and_one_in_a_list_is_that_label(tmp_path: Path) -> None:
    """As numpy, Google Forms, Microsoft Forms and doccano write them."""
    names = ["Cars", "Sport", "1", "5"]
    lists = (
        "[5 3]",
        "[0. 1.]",
        "[ True False]",
        "['Cars' 'Sport']",
        "['Cars'\n 'Sport'\n 'Cars']",
        "[" + "' '" * 99_999 + "]",
    )
    lists += ("('Cars', 'Sport')", "{'Cars', 'Sport'}")
    joined = ("Cars, Sport", "Cars;Sport", "Cars#Sport", "1,5", "1|5", "Cars、Sport", "Cars，Sport")
    joined += ("<Cars>, <Sport>", "[Cars];[Sport]", "<Cars><Sport>", "[Cars][Sport]", "Cars · Sport")
    for several in (*lists, *joined):
        rows = [f'a text {n},"{name}"' for n, name in enumerate([*names, several])]
        (tmp_path / "l.csv").write_text("\n".join(["text,label", *rows]))
        with pytest.raises(DataError, match=r"list of labels|joins others"):
            read_dataset(tmp_path / "l.csv")
        with pytest.raises(DataError, match=r"list of labels|joins others"):
            sentfold.decide(np.eye(5), labels=[*names, several])
    rows = [f"a text {n},{name};" for n, name in enumerate([*names, "Cars;Sport"])]  # as Microsoft Forms ends each cell
    (tmp_path / "l.csv").write_text("\n".join(["text,label", *rows]))
    with pytest.raises(DataError, match="joins others"):
        read_dataset(tmp_path / "l.csv")
    (tmp_path / "l.csv").write_text("\n".join(["text,label", *rows[:-1]]))
    assert "Cars;" in read_dataset(tmp_path / "l.csv").classes
    with pytest.raises(DataError, match="list of labels"):
        sentfold.decide(np.eye(5), labels=[*names, frozenset({"Cars", "Sport"})])
    for several in (
        "Cars Sport",
        "Cars & Sport",
        "Cars+Sport",
        "Cars and Sport",
        "Cars:Sport",
        "- Cars - Sport",
        "Cars[Sport]",
        "Cars>Sport",
    ):
        rows = [f"a text {n},{name}" for n, name in enumerate([*names, several])]
        (tmp_path / "l.csv").write_text("\n".join(["text,label", *rows]))
        assert any(f"'{several}' has the names of others" in note for note in read_dataset(tmp_path / "l.csv").notes)
    sound = ["Art, music", "<unknown>", "C++", "C", "[unknown]", "(not classified)", "2", "2,7"]
    rows = [f'a text {n},"{name}"' for n, name in enumerate([*names, *sound])]
    (tmp_path / "l.csv").write_text("\n".join(["text,label", *rows]))
    assert {*sound} <= {*read_dataset(tmp_path / "l.csv").classes}
    lines = [json.dumps({"text": f"a text {n}", "label": [name]}) for n, name in enumerate(names)]
    (tmp_path / "l.jsonl").write_text("\n".join(lines))
    assert read_dataset(tmp_path / "l.jsonl").classes == ("1", "5", "Cars", "Sport")


def test_texts_alone_need_no_sound_labels_and_scores(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("text,label\na cat,x\na dog,\na cow,[a b]\n")
    (tmp_path / "p.csv").write_text("premise,hypothesis,label\na cat,a dog,0\na cat,a cow,1\na pig,a cow,2\n")
    assert read_dataset(tmp_path / "l.csv", judged=False).texts == ("a cat", "a dog", "a cow")
    found = read_dataset(tmp_path / "p.csv", judged=False)
    assert (found.texts, found.kind) == (("a cat", "a pig", "a dog", "a cow"), "pairs")
    for name in ("l.csv", "p.csv"):
        with pytest.raises(DataError):
            read_dataset(tmp_path / name)


def test_a_label_of_pairs_with_three_whole_values_is_named_before_it_is_a_score(tmp_path: Path) -> None:
    """Training scripts number the classes of NLI so that cosine rises with them by chance."""
    rows = [f"a text {n},another {n},{n % 3}" for n in range(6)]
    (tmp_path / "nli.csv").write_text("\n".join(["premise,hypothesis,label", *rows]))
    with pytest.raises(DataError, match="may be a class, or a grade") as refused:
        read_dataset(tmp_path / "nli.csv")
    assert len(read_texts(tmp_path / "nli.csv", {})[0]) == 12, "texts alone have no score"
    columns = parse_columns(refused.value.remedy.partition("--columns ")[2])
    assert read_dataset(tmp_path / "nli.csv", columns).kind == "pairs"
    (tmp_path / "sts.csv").write_text("\n".join(["sentence1,sentence2,label", "a,b,1.5", "c,d,2", "e,f,3"]))
    assert read_dataset(tmp_path / "sts.csv").values.tolist() == [1.5, 2.0, 3.0]


def test_scores_in_16_and_32_bits_are_the_decimals_that_were_stored(tmp_path: Path) -> None:
    for kind in (pa.float16(), pa.float32()):
        score = pa.array(np.array([3.6, 0.7, 5.0], dtype=kind.to_pandas_dtype()), kind)
        write_table = pa.table({"left": ["a", "b", "c"], "right": ["d", "e", "f"], "score": score})
        parquet.write_table(write_table, tmp_path / "p.parquet")
        assert read_dataset(tmp_path / "p.parquet").values.tolist() == [3.6, 0.7, 5.0]


def test_rows_with_a_decimal_as_pandas_writes_them_are_rows(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("left,right,score\n0.0,1.0,1\n2.0,0.0,2\n1.0,2.0,3\n")
    lines = ('{"left": 0.0, "right": 1.0, "score": 1}', '{"left": 2.0, "right": 0.0, "score": 2}',
             '{"left": 1.0, "right": 2.0, "score": 3}')  # fmt: skip
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    for name in ("rows.csv", "rows.jsonl"):
        data = read_dataset(tmp_path / name)
        assert (data.texts, data.rows.tolist()) == ((), [[0, 1], [2, 0], [1, 2]])


def test_classes_with_a_decimal_as_pandas_writes_them_are_whole_numbers_and_new_ones_are_named(tmp_path: Path) -> None:
    rows = [f"a text {n},{n % 3},train" for n in range(12)] + [f"one more {n},{n % 3}.0,test" for n in range(12)]
    (tmp_path / "l.csv").write_text("\n".join(["text,label,split", *rows]))
    assert read_dataset(tmp_path / "l.csv").classes == ("0", "1", "2")
    (tmp_path / "l.csv").write_text("\n".join(["text,label,split", *rows, "the last,1.5,test", "the next,x.0,test"]))
    data = read_dataset(tmp_path / "l.csv")
    assert data.classes == ("0", "1", "2", "1.5", "x.0")
    assert any("2 classes of the test part are in no other part; the first: 1.5" in note for note in data.notes)


def test_missing_titles_and_texts_of_documents_are_none_and_other_types_are_refused(tmp_path: Path) -> None:
    write_beir(
        tmp_path / "d",
        {"a": "a cat", "b": "a cow", "c": "x"},
        {"q": "which", "r": "what"},
        {"test": ["q a 1", "r b 1"]},
    )
    for rows, texts in (
        (
            [("a", "NaN", '"a cat"'), ("b", "null", '"a cow"'), ("c", '"T"', "NaN")],
            ("a cat", "a cow", "T", "which", "what"),
        ),
        ([("a", '""', '["a", "cat"]'), ("b", "null", '"a cow"'), ("c", "null", '"x"')], None),
        ([("a", "7", '"a cat"'), ("b", "null", '"a cow"'), ("c", "null", '"x"')], None),
    ):
        lines = [f'{{"_id": "{name}", "title": {title}, "text": {text}}}' for name, title, text in rows]
        (tmp_path / "d/corpus.jsonl").write_text("\n".join(lines))
        if texts:
            assert read_dataset(tmp_path / "d").texts == texts
        else:
            for path in (tmp_path / "d", tmp_path / "d/corpus.jsonl"):
                with pytest.raises(DataError, match="of another type"):
                    read_dataset(path)


# --- vectors ------------------------------------------------------------------------------------------

VECTORS = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
CELLS = np.array([0, 1, 2, 1, 3, 4, 1, 5])  # left cells, then right ones


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    (tmp_path / "p.csv").write_bytes(FORMS["p.csv"])
    return read_dataset(tmp_path / "p.csv")


def test_one_vector_per_text_or_per_cell_and_arrays_by_name_give_the_same(data: Dataset, tmp_path: Path) -> None:
    left, right = VECTORS[CELLS[:4]], VECTORS[CELLS[4:]]
    np.save(tmp_path / "texts.npy", VECTORS)
    np.save(tmp_path / "cells.npy", VECTORS[CELLS].astype(np.float64))
    np.save(tmp_path / "stacked.npy", np.stack([left, right], axis=1))
    np.savez(tmp_path / "halves.npz", left=left, right=right)
    save_file({"left": left.copy(), "right": right.copy()}, tmp_path / "halves.safetensors")
    for name in ("texts.npy", "cells.npy", "stacked.npy", "halves.npz", "halves.safetensors"):
        assert np.array_equal(read_vectors(tmp_path / name, data)[0], VECTORS), name


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float16(), 5), pa.list_(pa.float32(), 5)]
)
def test_vectors_in_parquet_are_matched_by_text_and_others_are_unlabelled(
    kind: pa.DataType, data: Dataset, tmp_path: Path
) -> None:
    order = [4, 2, 0, 1, 5, 3]
    whole = VECTORS.astype(np.float16)
    lists = pa.array([*(whole[row] for row in order), np.zeros(5, np.float16)], pa.list_(pa.float16())).cast(kind)
    table = pa.table({"text": [*(TEXTS[row] for row in order), "a fox"], "embedding": lists})
    parquet.write_table(table, tmp_path / "v.parquet")
    vectors, notes = read_vectors(tmp_path / "v.parquet", data)
    assert np.array_equal(vectors[:6], whole.astype(np.float32))
    assert vectors.shape == (7, 5)
    assert any("1 vectors of other texts" in note for note in notes)
    assert any("zero" in note for note in notes)


def test_texts_that_parquet_has_as_a_dictionary_are_matched_too(data: Dataset, tmp_path: Path) -> None:
    texts = pa.array(TEXTS[::-1]).dictionary_encode()
    parquet.write_table(pa.table({"text": texts, "vectors": VECTORS[::-1].tolist()}), tmp_path / "v.parquet")
    assert np.array_equal(read_vectors(tmp_path / "v.parquet", data)[0], VECTORS)


def test_of_columns_with_texts_of_the_data_the_one_called_text_is_taken(data: Dataset, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(len(TEXTS), 4)).astype(np.float32)
    names = [f"u{row}" for row in range(len(TEXTS))]
    for key, name in (("key", "sentence"), ("raw", "text"), ("raw", "sentence")):
        table = {key: names if key == "key" else TEXTS, name: TEXTS[::-1], "Text Emb.": list(x[::-1])}
        parquet.write_table(pa.table(table), tmp_path / "v.parquet")
        if (key, name) != ("raw", "sentence"):
            assert np.array_equal(read_vectors(tmp_path / "v.parquet", data)[0], x)
        else:
            with pytest.raises(DataError, match="which column has the texts"):
                read_vectors(tmp_path / "v.parquet", data)


@pytest.mark.parametrize(
    "beside",
    [
        {"id": range(6)},
        {"_id": [f"k{n}" for n in range(6)]},
        {"label": ["yes", "no"] * 3, "uuid": [f"k{n}" for n in range(6)]},
        {"__index_level_0__": [3, 1, 2, 0, 4, 5]},
        {"time": pa.array([2**62] * 6, pa.duration("s"))},
        {"none": pa.nulls(6)},
        {"structs": [{"a": 1}] * 6},
        {"tokens": [[1], [2, 3], [], [1], [1], [1]]},
    ],
    ids=",".join,
)
def test_what_stands_beside_vectors_is_refused_without_texts_and_no_error_with_them(
    tmp_path: Path, beside: dict[str, object]
) -> None:
    """Identifiers in another order than the data would give each text the vector of another one."""
    (tmp_path / "l.csv").write_text("\n".join(["text,label", *(f"text {n},{n % 2}" for n in range(6))]))
    write_beir(
        tmp_path / "q",
        {"10": "a", "11": "b", "12": "c"},
        {"q": "x", "r": "y", "s": "z"},
        {"test": ["q 10 1", "r 11 1", "s 12 1"]},
    )
    (tmp_path / "p.csv").write_text("left,right,score\n" + "\n".join(f"text {n},other {n},{n}" for n in range(3)))
    (tmp_path / "rows.csv").write_text("left,right,score\n0,1,1\n2,3,0\n4,5,1\n")
    x = np.eye(6, dtype=np.float32)
    parquet.write_table(pa.table({**beside, "vector": list(x)}), tmp_path / "v.parquet")
    for name in ("l.csv", "q", "p.csv", "rows.csv"):
        with pytest.raises(DataError, match="has other columns and no texts"):
            read_vectors(tmp_path / "v.parquet", read_dataset(tmp_path / name))
    order = [4, 2, 0, 5, 1, 3]
    table = {**beside, "sentence": [f"text {n}" for n in order], "vector": list(x[order])}
    parquet.write_table(pa.table(table), tmp_path / "v.parquet")
    np.testing.assert_array_equal(read_vectors(tmp_path / "v.parquet", read_dataset(tmp_path / "l.csv"))[0], x)
    parquet.write_table(pa.table({"vector": list(x)}), tmp_path / "v.parquet")
    for name in ("l.csv", "q", "p.csv", "rows.csv"):
        assert len(read_vectors(tmp_path / "v.parquet", read_dataset(tmp_path / name))[0]) > 3


def test_an_error_names_the_row_of_the_file_though_texts_and_vectors_are_in_other_orders(tmp_path: Path) -> None:
    texts = [f"text {n}" for n in range(8)]
    (tmp_path / "l.csv").write_text("\n".join(["text,label", *(f"{text},{n % 2}" for n, text in enumerate(texts))]))
    data, x = read_dataset(tmp_path / "l.csv"), np.eye(8, dtype=np.float32)
    for value, said in ((np.nan, "not finite"), (1e30, "too large")):
        x[2, 2] = value
        parquet.write_table(pa.table({"text": texts[::-1], "vector": list(x)}), tmp_path / "v.parquet")
        with pytest.raises(DataError, match=f"(?s){said}.*row 2 "):
            read_vectors(tmp_path / "v.parquet", data)
    x[2] = 0
    parquet.write_table(pa.table({"text": texts[::-1], "vector": list(x)}), tmp_path / "v.parquet")
    assert any("the first: row 2" in note for note in read_vectors(tmp_path / "v.parquet", data)[1])


def test_pairs_may_name_rows_of_the_vectors(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("row1,row2,score\n5,3,1\n0,2,0\n")
    np.save(tmp_path / "v.npy", VECTORS)
    data = read_dataset(tmp_path / "p.csv")
    assert data.texts == ()
    assert data.rows.tolist() == [[5, 3], [0, 2]]
    assert np.array_equal(read_vectors(tmp_path / "v.npy", data)[0], VECTORS)


def test_an_encoder_may_be_a_function_or_an_object_with_encode() -> None:
    class Model:
        def encode(self, texts: list[str]) -> list[list[float]]:
            return [[float(len(text)), 1.0] for text in texts]

    assert encode_texts(Model(), ["a", "abc"]).tolist() == [[1.0, 1.0], [3.0, 1.0]]
    assert encode_texts(Model().encode, ["a", "abc"]).dtype == np.float32


def test_a_beir_folder_gives_documents_then_queries_with_their_relevant_ones(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "a", "title": "One", "text": "first"}\n{"_id": "b", "title": "", "text": "second"}\n'
    )
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "q", "text": "which"}\n{"_id": "b", "text": "what"}\n{"_id": "none", "text": "why"}\n'
    )
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t2\nq\tb\t0\nb\ta\t1\n")
    data = read_dataset(tmp_path)
    assert data.texts == ("One first", "second", "which", "what")
    assert data.rows.tolist() == [2, 3]
    assert data.relevant == ({0: 2.0}, {0: 1.0})
    assert data.values.tolist() == [-1.0, 1.0]  # the query b never finds the document b


def test_documents_without_a_text_keep_their_place_and_need_no_vector(tmp_path: Path) -> None:
    texts = {"a": "first", "b": "", "c": "third", "d": " "}
    (tmp_path / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": name, "title": "", "text": text}) + "\n" for name, text in texts.items())
    )
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "which"}\n{"_id": "r", "text": "what"}\n')
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\nr\tc\t1\n")
    data = read_dataset(tmp_path)
    assert data.texts == ("first", "", "third", "", "which", "what")
    assert data.relevant == ({0: 1.0}, {2: 1.0})
    place = f"{tmp_path}/corpus.jsonl, line 2"
    assert f"2 documents have no text and rank behind all others; the first: {place}" in data.notes
    vectors = {"third": [3.0, 1.0], "which": [4.0, 1.0], "first": [1.0, 1.0], "what": [5.0, 1.0]}
    for own in ({}, {"": [9.0, 1.0]}):
        held = vectors | own
        table = pa.table({"text": list(held), "vector": pa.array(list(held.values()))})
        parquet.write_table(table, tmp_path / "x.parquet")
        empty = own.get("", [0.0, 0.0])
        expected = [vectors["first"], empty, vectors["third"], empty, vectors["which"], vectors["what"]]
        assert read_vectors(tmp_path / "x.parquet", data)[0].tolist() == expected


@pytest.mark.parametrize(("bits", "common"), [(8, 0.0), (11, 0.0), (11, 20.0)])
def test_a_text_of_a_model_in_16_bits_may_have_two_vectors_and_another_order_is_refused(
    tmp_path: Path, bits: int, common: float
) -> None:
    """bfloat16 has 8 bits of a number, float16 11; another batch changes the last ones."""
    rng = np.random.default_rng(0)
    (tmp_path / "p.csv").write_text("left,right,score\n" + "".join(f"a{n},a{n + 1},{n}\n" for n in range(40)))
    data, exact = read_dataset(tmp_path / "p.csv"), rng.normal(size=(41, 64)) + common
    size = 2.0 ** np.floor(np.log2(np.abs(exact)))
    one, two = (exact + size * 2.0**-bits * rng.uniform(-2, 2, exact.shape) for _ in range(2))
    np.savez(tmp_path / "v.npz", left=one[:40], right=two[1:])
    assert read_vectors(tmp_path / "v.npz", data)[0].shape == (41, 64)
    moved = two + 0.24 * rng.normal(size=two.shape) / np.sqrt(2)  # another model, such as after a fine-tuning
    np.savez(tmp_path / "v.npz", left=one[:40], right=moved[1:])
    with pytest.raises(DataError, match="two vectors of one text differ"):
        read_vectors(tmp_path / "v.npz", data)
    np.savez(tmp_path / "v.npz", left=one[:40], right=two[1:][rng.permutation(40)])
    with pytest.raises(DataError, match="two vectors of one text differ"):
        read_vectors(tmp_path / "v.npz", data)


def test_a_text_with_two_vectors_is_refused_and_one_with_equal_vectors_is_not(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("left,right,score\na,b,1\nc,d,0\n")
    data = read_dataset(tmp_path / "p.csv")
    x = np.arange(1.0, 13.0).reshape(6, 2)
    x[4] = x[1] * (1 + 1e-6)
    for texts, right in ((list("acbdce"), True), (list("acbdae"), False)):
        table = pa.table({"text": texts, "vector": pa.array(x.tolist())})
        parquet.write_table(table, tmp_path / "x.parquet")
        if right:
            assert read_vectors(tmp_path / "x.parquet", data)[0].tolist() == x[[0, 1, 2, 3, 5]].tolist()
        else:
            with pytest.raises(DataError, match="two vectors of one text differ") as refused:
                read_vectors(tmp_path / "x.parquet", data)
            assert "row 4" in refused.value.where


def test_two_vectors_of_a_query_that_is_a_document_are_to_be_two_arrays(tmp_path: Path) -> None:
    """An encoder with two prompts gives them. One vector of the two gave 11.9 points for 63.0."""
    texts = {str(number): f"argument {number}" for number in range(4)}
    write_beir(tmp_path / "d", texts, texts, {"test": ["0 1 1", "1 2 1", "2 3 1", "3 0 1"]})
    data, x = read_dataset(tmp_path / "d"), np.eye(8)
    vectors = pa.table({"text": [*texts.values()] * 2, "vector": pa.array(x.tolist())})
    parquet.write_table(vectors, tmp_path / "v.parquet")
    with pytest.raises(DataError, match=r"(?s)two vectors of one text.*np\.savez\(FILE, corpus=..., queries=...\)"):
        read_vectors(tmp_path / "v.parquet", data)
    np.savez(tmp_path / "v.npz", corpus=x[:4], queries=x[4:])
    assert read_vectors(tmp_path / "v.npz", data)[0].tolist() == x.tolist()


def test_the_advice_for_pairs_with_two_prompts_leaves_each_text_one_vector(tmp_path: Path) -> None:
    """The third text on the left is the first on the right. Rows in the place of texts hid that texts recur."""
    (tmp_path / "p.csv").write_text("left,right,score\na,c,1\nb,e,0\nc,f,1\nb,d,1\n")
    left, right = np.eye(6)[[0, 1, 2, 1]], -np.eye(6)[[2, 4, 5, 3]]
    np.savez(tmp_path / "v.npz", left=left, right=right)
    texts = pa.table({"text": list("abcb") + list("cefd"), "vector": [*left.tolist(), *right.tolist()]})
    parquet.write_table(texts, tmp_path / "v.parquet")
    for name in ("v.npz", "v.parquet"):
        with pytest.raises(DataError, match=r"(?s)two vectors of one text.*each pair.*both sides.*one prompt"):
            read_vectors(tmp_path / name, read_dataset(tmp_path / "p.csv"))
    (tmp_path / "p.csv").write_text("left,right,score\nb,e,0\nb,d,1\n")
    np.savez(tmp_path / "v.npz", left=left[[1, 3]], right=right[[1, 3]])
    parquet.write_table(texts.take([1, 3, 5, 7]), tmp_path / "v.parquet")
    data = read_dataset(tmp_path / "p.csv")
    for name in ("v.npz", "v.parquet"):
        found, _ = read_vectors(tmp_path / name, data)
        assert found[data.rows].tolist() == [[left[row].tolist(), right[row].tolist()] for row in (1, 3)]


@pytest.mark.parametrize("header", [",text,label\n", "text,label\n"])
def test_a_table_without_rows_is_named(header: str, tmp_path: Path) -> None:
    """As pandas saves one, with its nameless column of row numbers."""
    (tmp_path / "h.csv").write_text(header)
    with pytest.raises(DataError, match="no rows"):
        read_dataset(tmp_path / "h.csv")


@pytest.mark.parametrize("name", ["Rating (left=bad,right=good)", "Rating,", "rating, text=both"])
def test_a_name_that_no_option_can_give_is_to_be_changed(name: str, tmp_path: Path) -> None:
    rows = [f"question {n} about cats,question {n} about dogs,{n}" for n in range(4)]
    (tmp_path / "p.csv").write_text("\n".join([f'q1,q2,"{name}"', *rows]))
    with pytest.raises(DataError, match="first rename columns without a name, or with `,` or `=`") as refused:
        read_dataset(tmp_path / "p.csv")
    assert "score=" not in refused.value.remedy


def test_rows_under_a_key_of_one_object_are_taken_out_by_the_command_that_the_error_gives(tmp_path: Path) -> None:
    rows = [{"text": f"a {word}", "label": word[0]} for word in ("cat", "dog", "cow", "duck")]
    for meta in ({}, "1.0"):
        (tmp_path / "a.json").write_text(json.dumps({"meta": meta, "my data": rows}))
        with pytest.raises(DataError, match=r"""'my data' has the rows: jq -c '.\["my data"\]\[]' OLD > NEW.jsonl;"""):
            read_dataset(tmp_path / "a.json")
    (tmp_path / "api.json").write_text(json.dumps({"message": "success", "time": "now", "data": rows}))
    with pytest.raises(
        DataError, match=r"if 'data' has the rows: jq.*else name the key of its text: --columns text=KEY"
    ):
        read_sentences(tmp_path / "api.json", None)
    alone = {"message": "a lamp is broken", "attachments": [{"name": "a.png"}]}
    (tmp_path / "m.jsonl").write_text(json.dumps(alone))
    texts, notes = read_texts(tmp_path / "m.jsonl", {"text": "message"})
    assert texts == ["a lamp is broken"] and "columns of lists and structs are left out: 'attachments'" in notes
    entities = {"text": "a cat sleeps", "entities": [{"start": 2}, {"start": 6}]}
    (tmp_path / "one.jsonl").write_text(json.dumps(entities))
    assert read_sentences(tmp_path / "one.jsonl", None) == ["a cat sleeps"]
    (tmp_path / "a.json").write_text(json.dumps({"train": rows, "test": rows}))
    with pytest.raises(DataError, match=r"'train' has the rows: .*; so of each further.*train.jsonl and test.jsonl"):
        read_dataset(tmp_path / "a.json")
    (tmp_path / "b.jsonl").write_text("\n".join(json.dumps({"data": row["text"]}) for row in rows))
    with pytest.raises(DataError, match="if its values are the texts: --columns text=data"):
        read_dataset(tmp_path / "b.jsonl")
    (tmp_path / "c.jsonl").write_text("\n".join(json.dumps({"utt": row["text"], "kind": row["label"]}) for row in rows))
    with pytest.raises(DataError, match="to use") as refused:  # JSON has no header
        read_dataset(tmp_path / "c.jsonl")
    assert refused.value.remedy.startswith("name them") and "header" not in refused.value.remedy


def test_rows_of_several_pages_are_taken_out_by_the_command_that_the_error_gives_or_named(tmp_path: Path) -> None:
    pages = [{"message": f"page {page}", "rows": [{"text": f"{word} {page}"} for word in "abc"]} for page in range(3)]
    (tmp_path / "list.json").write_text(json.dumps(pages))
    with pytest.raises(DataError, match="no JSON object") as refused:
        read_texts(tmp_path / "list.json", {})
    assert refused.value.remedy == (
        """if 'rows' has the rows: jq -c '.[]["rows"][]' OLD > NEW.jsonl; else jq -c '.[]' OLD > NEW.jsonl"""
    )
    (tmp_path / "pages.jsonl").write_text("\n".join(map(json.dumps, pages)))
    texts, notes = read_texts(tmp_path / "pages.jsonl", {})
    assert len(texts) == 3 and "columns of lists and structs are left out: 'rows'" in notes
    labels = [{"text": f"a {word}", "label": [word[0]], "all": ["x", "y"]} for word in ("cat", "dog", "cow", "duck")]
    (tmp_path / "labels.jsonl").write_text("\n".join(map(json.dumps, labels)))
    found = read_dataset(tmp_path / "labels.jsonl")
    assert found.classes == ("c", "d")
    assert [note for note in found.notes if "lists" in note] == ["columns of lists and structs are left out: 'all'"]
    (tmp_path / "list.json").write_text(json.dumps([{"text": "a cat", "tags": [{"name": "b"}]}]))
    with pytest.raises(DataError, match="no JSON object") as refused:
        read_texts(tmp_path / "list.json", {})
    assert "tags" not in refused.value.remedy and "jq -c '.[]' OLD" in refused.value.remedy


def test_two_arrays_whose_lengths_have_the_right_sum_alone_are_refused(tmp_path: Path) -> None:
    """The document without a text and the query that nobody judged cancel out: nDCG@10 was 4.9 for 96.4."""
    documents = {"a": "one", "b": "", "c": "three", "d": "four"}
    write_beir(tmp_path / "q", documents, {"1": "x", "2": "y", "3": "z"}, {"test": ["1 a 1", "3 c 1"]})
    (tmp_path / "p.csv").write_text("left,right,score\n" + "".join(f"text {n},other {n},{n}\n" for n in range(4)))
    x = np.eye(8)
    for file, names, wrong, right in (
        ("q", ("corpus", "queries"), [(3, 4), (3, 3), (4, 2)], [(4, 3)]),
        ("p.csv", ("left", "right"), [(3, 5), (5, 3)], [(4, 4)]),
    ):
        data = read_dataset(tmp_path / file)
        for sound, lengths in ((False, wrong), (True, right)):
            for first, second in lengths:
                np.savez(tmp_path / "v.npz", **dict(zip(names, (x[:first], x[first : first + second]), strict=True)))
                with nullcontext() if sound else pytest.raises(DataError, match="not as many vectors"):
                    read_vectors(tmp_path / "v.npz", data)


def test_labels_that_differ_by_a_blank_or_by_the_type_of_a_number_are_one_class(tmp_path: Path) -> None:
    labels = ["pos", "pos ", 1, 1.0, "1 ", 1.5]
    lines = [json.dumps({"text": f"text number {row}", "label": label}) for row, label in enumerate(labels)]
    (tmp_path / "labels.jsonl").write_text("\n".join(lines))
    data = read_dataset(tmp_path / "labels.jsonl")
    assert data.classes == ("1", "1.5", "pos")
    assert data.values.tolist() == [2, 2, 0, 0, 0, 1]


def test_a_score_with_an_underscore_is_no_number(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text("left,right,score\na b,c d,1_0\ne f,g h,2\n")
    with pytest.raises(DataError, match="a score is no number"):
        read_dataset(tmp_path / "pairs.csv")


def test_a_comma_within_numbers_is_no_delimiter(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("left;right;score\n" + "".join(f"Katze {row};Hund, {row};{row % 5},5\n" for row in range(20)))
    with pytest.raises(DataError, match=r"(?s)a score is no number.*write 3.5 for 3,5 and 1649 for 1,649"):
        read_dataset(path)
    path.write_text(path.read_text().replace(",5", ".5"))
    data = read_dataset(path)
    assert (data.kind, data.texts[0], data.values[1]) == ("pairs", "Katze 0", 1.5)


def write_beir(folder: Path, documents: dict[str, str], queries: dict[str, str], qrels: dict[str, list[str]]) -> None:
    """A folder of the BEIR form. qrels: file -> lines `query document grade`."""
    (folder / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", documents), ("queries", queries)):
        lines = [json.dumps({"_id": key, "text": text}) for key, text in texts.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    for name, rows in qrels.items():
        lines = ["query-id\tcorpus-id\tscore", *(row.replace(" ", "\t") for row in rows)]
        (folder / "qrels" / f"{name}.tsv").write_text("\n".join(lines))


def test_an_answer_that_has_the_number_of_its_question_can_be_found(tmp_path: Path) -> None:
    answers = {"0": "a red cat", "1": "a cow", "2": "an owl", "3": "a hen"}
    asked = {"0": "which cat", "1": "which cow", "2": "an owl", "3": "which fox"}
    write_beir(tmp_path / "d", answers, asked, {"test": ["0 0 1", "1 1 1", "2 2 1", "3 1 1"]})
    data = read_dataset(tmp_path / "d")
    assert data.relevant == ({0: 1.0}, {1: 1.0}, {2: 1.0}, {1: 1.0})
    # Document 2 is query 2, and document 3 is not relevant for query 3: these are left out, as in BEIR.
    assert data.values.tolist() == [-1.0, -1.0, 2.0, 3.0]
    assert "2 queries have the identifier of a relevant document, which counts; the first: 0" in data.notes
    assert any(note.startswith("2 queries have the identifier of a document, which is left out") for note in data.notes)


@pytest.mark.parametrize("files", [("test",), ("dev", "test")])
def test_the_parts_of_queries_are_known_where_several_files_judge_them(files: tuple[str, ...], tmp_path: Path) -> None:
    asked = {str(number): f"which {number}" for number in range(4)}
    half = {"dev": ["0 a 1", "1 a 1"], "test": ["2 b 1", "3 b 1"]}
    write_beir(tmp_path / "d", {"a": "a cat", "b": "a cow"}, asked, {file: half[file] for file in files})
    data = read_dataset(tmp_path / "d")
    assert data.splits == ()
    assert data.parts == (("dev", "dev", "test", "test") if len(files) == 2 else ())
    assert any("dev, test are judged together" in note for note in data.notes) == (len(files) == 2)


def test_vectors_of_all_queries_fit_where_some_queries_are_not_judged(tmp_path: Path) -> None:
    asked = {"p": "which pig", "q": "which cat", "r": "which hen", "s": "which cow"}
    write_beir(tmp_path / "d", {"a": "a cat", "b": "a cow"}, asked, {"test": ["q a 1", "s b 1"]})
    data = read_dataset(tmp_path / "d")
    assert data.texts == ("a cat", "a cow", "which cat", "which cow")
    np.savez(tmp_path / "all.npz", corpus=VECTORS[:2], queries=VECTORS[2:])
    found, notes = read_vectors(tmp_path / "all.npz", data)
    assert np.array_equal(found, VECTORS[[0, 1, 3, 5]])
    assert "in the order of corpus.jsonl, then queries.jsonl" in notes[0]
    np.save(tmp_path / "five.npy", VECTORS[:5])
    with pytest.raises(DataError, match="not as many vectors") as refused:
        read_vectors(tmp_path / "five.npy", data)
    assert refused.value.expected.startswith("6 (one per document and query)")


def test_a_header_in_decomposed_letters_is_named_as_people_type_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(normalize("NFD", "Überschrift") + ",label\n" + "a cat,x\na dog,y\n" * 2)
    for typed in ("Überschrift", normalize("NFD", "Überschrift")):
        assert read_texts(tmp_path / "a.csv", parse_columns(f"text={typed}"))[0][:2] == ["a cat", "a dog"]


def test_texts_that_python_writes_as_nan_are_missing(tmp_path: Path) -> None:
    rows = [{"text": text, "label": "ab"[n % 2]} for n, text in enumerate(["a cat", float("nan"), "a dog", "a cow"])]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    data = read_dataset(tmp_path / "a.jsonl")
    assert data.texts == ("a cat", "a dog", "a cow")
    assert any("1 rows" in note or "1 row" in note for note in data.notes)


@pytest.mark.parametrize(
    "content", ["Export of 2024\ntext,label\na cat,x\na dog,y\n", "text,label\na cat,x,\na dog,y,\n"]
)
def test_what_to_do_about_a_header_that_is_too_short_is_said_for_all_that_writes_one(
    content: str, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(DataError, match="one cell less") as refused:
        read_dataset(tmp_path / "a.csv")
    assert "remove a title above the header, and delimiters at the ends of rows" in (refused.value.remedy or "")
    assert "name the first column" not in (refused.value.remedy or "")


def test_files_that_macos_leaves_beside_judgements_are_none(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    for part in ("corpus", "queries"):
        lines = [json.dumps({"_id": f"{part[0]}{n}", "title": "", "text": f"{part} {n}"}) for n in range(30)]
        (tmp_path / f"{part}.jsonl").write_text("\n".join(lines))
    judged = "".join(f"q{n}\tc{n}\t1\n" for n in range(30))
    (tmp_path / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    (tmp_path / "qrels/._test.tsv").write_bytes(b"\0\5\x16\7")
    assert len(read_dataset(tmp_path)) == 30


def test_the_advice_for_a_file_of_lists_makes_a_row_of_each_text(tmp_path: Path) -> None:
    """Pairs of some published collections are one row of three lists; the error named no column, and gave none."""
    lists = {"sent1": [["a", "b"]], "sent2": [["c", "d"]], "labels": [[1, 0]]}
    parquet.write_table(pa.table(lists), tmp_path / "old.parquet")
    with pytest.raises(DataError, match="lists alone") as refused:
        read_dataset(tmp_path / "old.parquet")
    advice = refused.value.remedy.partition(": ")[2]
    old, new = str(tmp_path / "old.parquet"), str(tmp_path / "new.parquet")
    eval(advice, {"pandas": pandas, "OLD": old, "NEW": new})
    data = read_dataset(tmp_path / "new.parquet", {"left": "sent1", "right": "sent2", "score": "labels"})
    assert data.texts == ("a", "b", "c", "d") and data.values.tolist() == [1, 0]
