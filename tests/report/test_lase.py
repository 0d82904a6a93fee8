"""The report's part on clusters of words: which clusterings, spaces and controls it shows, on a small suite of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

from pipeline.artifacts import corpus_path, read_vectors, space_path, write_table
from pipeline.encoders.encode import encode
from pipeline.report.lase import SENTENCES, cluster_section, cluster_views, cosine_matrix, draw_clusters, lase_spaces
from pipeline.report.small_tables import cluster_table
from pipeline.report.word_controls import average_pairs, control_pairs
from pipeline.report.words import COMMON_WORDS
from pipeline.suite import Suite
from pipeline.words.clusters import cluster_words
from pipeline.words.load import load_clusters
from pipeline.words.vectors import word_vectors
from pipeline.words.vocabulary import vocabulary
from tests.checkout import MAKERS

ROOT = Path(__file__).parents[2]
TEXTS = [*SENTENCES, "The age of the harbour is nine", "A phone for you and an old dog", "In this cat or on that dog"]
BASE: dict[str, Any] = {"vectors": "wordllama", "tokenizer": "regex"}
KMEANS = {"restarts": 1, "iterations": 50, "tolerance": 1e-4}
CLUSTERINGS = {
    "four": {**BASE, "kmeans": KMEANS, "sizes": [4, 6], "seeds": [0], "controls": ["random", "frequency"]},
    "more": {**BASE, "kmeans": KMEANS, "sizes": [6], "seeds": [0], "controls": ["random"]},
}
LASE: dict[str, Any] = {**BASE, "method": "lase", "counts": "own"}
ENCODERS = {
    "plain": {**BASE, "method": "average", "counts": "own"},
    "dealt": {**LASE, "clusters": {"clustering": "four", "size": 6, "seed": 0, "control": "random"}},
    "mine": {**LASE, "clusters": {"clustering": "four", "size": 6, "seed": 0}},
    "coded": {
        **LASE,
        "clusters": {"clustering": "four", "size": 6, "seed": 0},
        "settings": {"variant": "released"},
    },
}


def make_suite(*, clusterings: tuple[str, ...], word_encoders: tuple[str, ...]) -> Suite:
    makers = MAKERS.model_copy(
        update={"clusterings": clusterings, "word_encoders": word_encoders, "tokenizers": ("regex",)}
    )
    derived = (*makers.manifolds, *makers.transforms, *makers.graph_transforms)
    content = {
        "suite": "mine",
        "root": ".",
        "file": "suite.yaml",
        "source": "package",
        "skip_missing": True,
        "corpora": ("ours",),
        "counts": "own",
        "makers": makers,
        "spaces": ("minilm", *(f"minilm-{maker}" for maker in derived), *word_encoders),
    }
    return Suite.model_validate(content)


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A working directory with words, clusters and spaces of one small corpus."""
    monkeypatch.chdir(tmp_path)
    shipped = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    content = {**shipped, "clusterings": CLUSTERINGS, "word_encoders": ENCODERS}
    Path("params.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    table = pa.table({"text": pa.array(TEXTS, pa.string())})
    sentences = corpus_path("mine", "ours", "sentences")
    write_table(sentences, table, kind="sentences", parameters={}, notes={"task": "similarity"})
    vocabulary("mine", ("regex",), ("ours",))
    word_vectors("mine", "wordllama", ("regex",))
    for clustering in CLUSTERINGS:
        cluster_words("mine", clustering)
    for encoder in ENCODERS:
        encode("mine", encoder, ("ours",))
    return make_suite(clusterings=tuple(CLUSTERINGS), word_encoders=tuple(ENCODERS))


def test_clusterings_of_four_are_shown_and_the_controls_of_the_first(suite: Suite) -> None:
    views = list(cluster_views(suite))
    assert [view.title for view in views] == ["k-means", "random, sizes of k-means", "frequency, sizes of k-means"]
    found = load_clusters("mine", "four", size=4)
    assert views[0].words == found.words
    np.testing.assert_array_equal(views[0].labels, found.labels)
    # By hand: "the" twice, "dog" twice, "harbour" once.
    counts = dict(zip(views[0].words, views[0].counts.tolist(), strict=True))
    assert (counts["the"], counts["dog"], counts["harbour"]) == (2, 2, 1)
    for view in views[1:]:
        assert sorted(np.bincount(view.labels)) == sorted(np.bincount(views[0].labels))


def test_the_thesis_sentences_are_encoded_as_the_space_has_them_controls_last(suite: Suite) -> None:
    spaces = list(lase_spaces(suite))
    assert [(space.title, space.control) for space in spaces] == [
        ("k-means", ""),
        ("random, sizes of k-means", "random"),
    ]
    for space, name in zip(spaces, ("mine", "dealt"), strict=True):
        np.testing.assert_array_equal(space.vectors, read_vectors(space_path("mine", name, "ours"))[: len(SENTENCES)])


def test_the_report_shows_three_figures_and_leads_to_the_table(suite: Suite) -> None:
    assert set(draw_clusters(suite)) == {"lase-similarity", "lase-values", "lase-clusters"}
    section = cluster_section(suite)
    assert all(f"figures/{name}.svg" in section for name in draw_clusters(suite))
    assert "tables/lase-4.1.md" in section


def test_the_table_has_every_common_word_once_with_those_of_its_cluster(suite: Suite) -> None:
    spread, words = cluster_table(suite).panels
    shown = {line.name: line.entries[0].text for line in words.groups[0].lines}
    counted = {line.name: line.entries[1] for line in spread.groups[0].lines if not line.entries[1].blank}
    assert set(shown) == set(counted) == {"four"}
    for name, text in shown.items():
        groups = [group.split() for group in text.split(" | ")]
        held = [word for group in groups for word in group]
        assert len(groups) == counted[name].value
        assert len(set(held)) == len(held)
        assert set(held) <= set(COMMON_WORDS)
        clusters = load_clusters("mine", name, size=4)
        assert all(len(set(clusters.labels_of(group).tolist())) == 1 for group in groups)


def test_a_suite_without_such_clusterings_and_spaces_shows_nothing(suite: Suite) -> None:
    bare = make_suite(clusterings=("more",), word_encoders=("plain", "coded"))
    assert (draw_clusters(bare), cluster_section(bare)) == ({}, "")


def test_cosines_are_those_of_all_pairs_and_zero_beside_a_zero_vector() -> None:
    got = cosine_matrix(np.array([[3.0, 4.0], [4.0, 3.0], [0.0, 0.0], [-3.0, -4.0]], dtype=np.float32))
    wanted = [[1, 0.96, 0, -1], [0.96, 1, 0, -0.96], [0, 0, 0, 0], [-1, -0.96, 0, 1]]
    np.testing.assert_allclose(got, wanted, atol=1e-12)


def test_a_space_is_held_against_the_partition_that_differs_in_nothing_else(suite: Suite) -> None:
    assert control_pairs(suite) == [("mine", "dealt")]
    assert control_pairs(make_suite(clusterings=("four",), word_encoders=("plain", "dealt", "coded"))) == []


def test_what_is_no_control_is_held_against_the_average(suite: Suite) -> None:
    assert average_pairs(suite) == [("mine", "plain"), ("coded", "plain")]
    assert average_pairs(make_suite(clusterings=("four",), word_encoders=("mine", "dealt"))) == []
