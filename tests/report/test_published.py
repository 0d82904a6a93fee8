"""The carried figures, against numbers read off the papers."""

from __future__ import annotations

from pipeline.report.published import find_published, load_published


def test_figures_of_each_scale_come_out_on_the_hundredfold_one() -> None:
    # MTEB prints 0.72369, SBERT-LP's table 1 prints 70.97.
    mteb = find_published("mteb", "all-MiniLM-L6-v2", "sts12", "spearman.all.cosine")
    assert mteb is not None
    assert (mteb.shown, round(mteb.value, 3)) == ("72.37", 72.369)
    sbert = find_published("sbert-lp", "SBERT-base", "sts12", "spearman.all.cosine")
    assert sbert is not None
    assert sbert.shown == "70.97"


def test_a_row_whose_aggregation_is_not_stated_is_never_shown_beside_ours() -> None:
    # SBERT-LP states no aggregation for its own rows, and BERT-flow's rows are weighted means.
    for model in ("SBERT-base-LP", "SBERT-WK", "BERT-base-flow"):
        assert find_published("sbert-lp", model, "sts13", "spearman.all.cosine") is None


def test_every_figure_keeps_its_source_and_protocol() -> None:
    figures = load_published()
    # 650 rows; those that print a dash hold no number.
    assert 600 < len(figures) <= 650
    assert all(figure.source and figure.dataset and figure.metric for figure in figures)
    assert {figure.source for figure in figures} == {"gem", "hyperboloid", "lase", "mteb", "s3e", "sbert-lp"}
