"""Common words in clusters of words, on partitions made by hand, and the report of suites that have little."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from pipeline.papers.verdicts import decide_all
from pipeline.report.contents import build_tables
from pipeline.report.evidence import Evidence, Partition
from pipeline.report.gallery import draw_gallery
from pipeline.report.page import write_page
from pipeline.report.results import Results
from pipeline.report.special_tables import COMMON_WORDS, cluster_table, expected_clusters
from pipeline.report.text_report import report_text, summary_text
from tests.report.made_up import make_evidence, make_results, make_suite

HEADLINE = "spearman.all.cosine"


@pytest.mark.parametrize(("sizes", "words"), [([3, 2, 2], 3), ([5, 1, 1], 2), ([7], 4), ([4, 3], 7), ([2, 5, 0], 0)])
def test_the_expected_number_of_clusters_is_the_mean_over_all_choices(sizes: list[int], words: int) -> None:
    labels = np.repeat(np.arange(len(sizes)), sizes)
    drawn = [len(set(labels[list(choice)].tolist())) for choice in combinations(range(7), words)]
    assert expected_clusters(np.array(sizes), words) == pytest.approx(np.mean(drawn), abs=1e-9)


def test_a_partition_is_counted_by_the_clusters_that_hold_a_common_word() -> None:
    place = {word: i % 3 for i, word in enumerate(COMMON_WORDS[1:])} | {"dog": 3, "cat": 3}
    partition = Partition(Path("four.parquet"), "wordllama", 4, place)
    evidence = Evidence(make_results({("minilm", "one", HEADLINE): 70.0}), partitions={"four": partition, "none": None})
    table = cluster_table(evidence)
    assert table is not None
    counted, missing = table.panels[0].groups[0].lines
    assert [entry.text for entry in counted.entries[:2]] == ["4", "3"]
    assert missing.entries[0].blank and "clusterings" in missing.entries[0].command
    assert cluster_table(Evidence(make_results({("minilm", "one", HEADLINE): 70.0}))) is None


def report_of(evidence: Evidence) -> list[str]:
    """The names of the tables and figures of a suite, after all of its texts were written too."""
    tables, decided, drawn = build_tables(evidence), decide_all(evidence), draw_gallery(evidence)
    assert report_text(evidence, tables, decided) and summary_text(evidence, tables)
    assert write_page(evidence, tables, decided, drawn)
    return [*(table.name for table in tables), *(picture.name for picture in drawn)]


def test_a_suite_of_one_space_and_one_corpus_has_every_table_and_figure_that_applies() -> None:
    assert report_of(make_evidence(make_results({("mine", "lee", HEADLINE): 70.0}))) == ["similarity", "artifacts"]
    geometry = {"sampled": 3, "sentences": 4, "uniformity_pairs": "all", "alignment_pairs": "5", "neighbors": 10}
    results = make_results({("mine", "lee", HEADLINE): 70.0, ("mine", "lee", "spearman.all.dot"): 71.0})
    results.scores["mine"]["lee"]["geometry"] = {**geometry, "hubness": 1.0}
    assert report_of(make_evidence(results)) == ["similarity", "measures", "geometry", "artifacts"]


def test_a_suite_without_encoders_of_its_own_or_without_any_corpus_has_a_report() -> None:
    words = make_results({("wl-sif", "lee", HEADLINE): 70.0, ("wl-average", "lee", HEADLINE): 60.0})
    assert report_of(make_evidence(words)) == ["similarity", "artifacts"]
    nothing = Results(make_suite(("mine",), ()), {"mine": {}}, {}, 0.95)
    assert report_of(make_evidence(nothing)) == ["artifacts"]


def test_the_baseline_of_a_suite_is_what_every_other_space_is_compared_with() -> None:
    values = {"mine": 70.0, "mine-pca": 60.0, "wl-sif": 65.0}
    results = make_results({(space, "lee", HEADLINE): v for space, v in values.items()}, baseline="mine-pca")
    tables = {table.name: table for table in build_tables(make_evidence(results))}
    [panel] = [p for p in tables["similarity"].panels if p.title.startswith("Difference to the baseline")]
    found = {line.name: line.entries[0].text for line in panel.groups[0].lines}
    assert found == {"mine − mine-pca": "+10.00", "wl-sif − mine-pca": "+5.00"}
