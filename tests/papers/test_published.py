"""The carried figures, against numbers read off the papers, and the reader, against files with one thing wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pipeline.papers.published import COLUMNS, PUBLISHED_FILE, Figure, load_published, select
from sentfold.errors import ArtifactError


def find(source: str, table: str, model: str, dataset: str) -> Figure:
    found = select(source, table, keep=lambda f: (f.model, f.dataset, f.metric) == (model, dataset, "spearman"))
    return found[0]


def test_figures_of_each_scale_come_out_on_the_hundredfold_one() -> None:
    # MTEB prints 0.72369, SBERT-LP's table 1 prints 70.97.
    mteb = find("mteb", "results", "all-MiniLM-L6-v2", "sts12")
    assert (mteb.shown, round(mteb.value, 3)) == ("72.37", 72.369)
    assert find("sbert-lp", "1", "SBERT-base", "sts12").shown == "70.97"


def test_all_650_figures_are_there_each_with_its_source_and_protocol() -> None:
    figures = load_published()
    assert len(figures) == 650
    assert all(figure.statement for figure in figures)
    # The sizes of the printed tables: rows times columns, less the dashes.
    assert Counter((figure.source, figure.table) for figure in figures) == {
        ("sbert-lp", "1"): 12 * 7 - 2,
        ("sbert-lp", "2"): 10 * 7,
        ("sbert-lp", "3"): 9 * 4,
        ("lase", "5.1"): 13 * 6,
        ("lase", "speed"): 1,
        ("s3e", "similarity"): 11 * 8 - 4,
        ("s3e", "classification"): 15 * 9 - 5,
        ("s3e", "speed"): 5,
        ("gem", "1"): 12 * 2,
        ("gem", "2"): 5,
        ("gem", "3"): 102,
        ("gem", "4"): 4 + 3 * 2,
        ("gem", "5"): 3,
        ("hyperboloid", "1"): 3,
        ("hyperboloid", "5"): 3,
        ("mteb", "results"): 14,
    }


# Read off the papers by eye, one or more from each table.
READ_OFF = [
    ("sbert-lp", "1", "SBERT-large-LP", "sts13", "84.59"),
    ("sbert-lp", "1", "SBERT-base-LP", "sts15", "76.04"),
    ("sbert-lp", "2", "SBERT-base-LP", "trec", "83.06"),
    ("sbert-lp", "3", "Universal Sentence Encoder", "20news", "1.6585"),
    ("lase", "5.1", "LASE", "average", "71"),
    ("lase", "5.1", "SBERT", "average", "70"),
    ("lase", "speed", "LASE", "custrev.pos", "0.000739"),
    ("s3e", "similarity", "S3E (L.F.P.)", "sts13", "69.3"),
    ("s3e", "classification", "VLAWE", "average", "82.31"),
    ("s3e", "speed", "S3E", "not stated", "0.69"),
    ("gem", "1", "GEM + L.F.P", "stsb", "77.5"),
    ("gem", "2", "KeLP-contrastive1", "cqa_b-2017", "49.00"),
    ("gem", "3", "GEM + L.F.P", "mrpc-f1", "82.9"),
    ("gem", "4", "GEM weights + SIR", "stsb-dev", "81.8"),
    ("gem", "5", "GEM (CPU)", "stsb", "20.08"),
    ("hyperboloid", "1", "That is a happy dog", "example", "0.665"),
    ("hyperboloid", "5", "BERT-STSB-CNN + Max Pooling", "stsb", "82.43"),
]


@pytest.mark.parametrize(("source", "table", "model", "dataset", "shown"), READ_OFF)
def test_a_figure_is_the_printed_one(source: str, table: str, model: str, dataset: str, shown: str) -> None:
    found = select(source, table, keep=lambda figure: (figure.model, figure.dataset) == (model, dataset))
    assert found[0].shown == shown


def test_times_and_nats_keep_their_units() -> None:
    assert [figure.unit for figure in select("gem", "5")] == ["s"] * 3
    assert [figure.value for figure in select("s3e", "speed")] == [53.07, 179.27, 26.54, 1.56, 0.69]
    assert {figure.unit for figure in select("sbert-lp", "3", keep=lambda figure: figure.metric == "mi")} == {"nats"}


GOOD = dict(zip(COLUMNS, ["gem", "1", "GEM", "stsb", "pearson_x100", "77.5", "cosine", ""], strict=True))


@pytest.mark.parametrize(
    ("change", "what", "line"),
    [
        ({"source": "nobody"}, "source", 2),
        ({"metric": "luck"}, "metric", 2),
        ({"value": "-"}, "value", 2),
        ({"value": "775"}, "value", 2),
        ({"metric": "seconds", "value": "1e999999999"}, "value", 2),  # would be printed with a gigabyte of zeros
        ({"metric": "pearson"}, "value", 2),  # 77.5 on the scale of [-1, 1]
        ({"protocol": ""}, "protocol", 2),
        ({}, "figure", 3),  # the same figure twice
    ],
)
def test_a_file_with_one_thing_wrong_is_refused_with_its_line(
    tmp_path: Path, change: dict[str, str], what: str, line: int
) -> None:
    path = tmp_path / "published.csv"
    rows = [",".join(COLUMNS), ",".join((GOOD | change).values()), ",".join(GOOD.values())]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    with pytest.raises(ArtifactError, match=f"a wrong {what}") as error:
        load_published(path)
    assert error.value.where == f"{path}, line {line}"


def test_another_set_of_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "published.csv"
    path.write_text(PUBLISHED_FILE.read_text(encoding="utf-8").replace("source,", "", 1), encoding="utf-8")
    with pytest.raises(ArtifactError, match="wrong columns"):
        load_published(path)
