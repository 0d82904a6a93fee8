"""The map of the page: what its planes keep, when it is left out, and that it is the same at every drawing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from pipeline.base.artifacts import corpus_path, space_path, write_table, write_vectors
from pipeline.report.evidence import Evidence
from pipeline.report.space_map import LEAST, NEIGHBORS, SQUARE, draw_plane, find_nearest, map_spaces
from tests.report.made_up import make_evidence, make_results

Floats = npt.NDArray[np.float32]


def circle(n: int, seed: int) -> Floats:
    """Points near a circle: a plane can keep the neighbours of nearly all of them."""
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0, 2 * np.pi, n))
    noise = 0.01 * rng.standard_normal((n, 8))
    noise[:, :2] += np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return noise.astype(np.float32)


def sphere(n: int) -> Floats:
    """Points of all directions of 200 dimensions: no plane keeps their neighbours."""
    return np.random.default_rng(3).standard_normal((n, 200)).astype(np.float32)


def evidence_of(spaces: dict[tuple[str, str], Floats]) -> Evidence:
    """A suite with these vectors by (space, corpus); corpora whose name begins with `class` have classes."""
    scores = {
        (s, c, "accuracy.3nn-euclidean" if c.startswith("class") else "spearman.all.cosine"): 70.0 for s, c in spaces
    }
    for (space, corpus), vectors in spaces.items():
        write_vectors(space_path("made-up", space, corpus), vectors, parameters={})
    for corpus, n in {corpus: len(vectors) for (_, corpus), vectors in spaces.items()}.items():
        labelled = corpus.startswith("class")
        items = {"row": pa.array(range(n), pa.int32()), "label": [row % 3 for row in range(n)], "split": ["all"] * n}
        kind = "items.classification" if labelled else "items.similarity"
        write_table(corpus_path("made-up", corpus, "items"), pa.table(items), kind=kind, parameters={})
    records = {pair: {"notes": {}, "rows": len(vectors)} for pair, vectors in spaces.items()}
    return make_evidence(make_results(scores), records=records)


def test_a_map_of_vectors_that_a_plane_can_hold_keeps_their_neighbours_and_names_rows_and_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = map_spaces(evidence_of({("minilm", "classes"): circle(120, 0), ("minilm-lp", "classes"): circle(120, 1)}))
    assert found is not None and found.reason == "" and [p.space for p in found.planes] == ["minilm", "minilm-lp"]
    assert found.rows == list(range(120)) and found.classes == [row % 3 for row in range(120)]
    for plane in found.planes:
        places = np.array(plane.places, dtype=float)
        assert plane.trustworthiness >= 0.95
        assert places.min() == 0 and places.max() == SQUARE
        distances = np.linalg.norm(places[:, None] - places[None], axis=2)
        np.fill_diagonal(distances, np.inf)
        drawn = np.argsort(distances, axis=1)[:, :NEIGHBORS]
        kept = [len(set(a) & set(b)) for a, b in zip(drawn.tolist(), plane.neighbors, strict=True)]
        assert np.mean(kept) > 0.8 * NEIGHBORS


def test_a_map_that_misleads_is_left_out_with_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = map_spaces(evidence_of({("minilm", "classes"): circle(150, 0), ("minilm-lp", "classes"): sphere(150)}))
    assert found is not None and found.planes[1].trustworthiness < LEAST
    assert f"{found.planes[1].trustworthiness:.2f} in minilm-lp, below 0.8" in found.reason
    assert "in minilm and" not in found.reason
    assert found.rows == [] and all(plane.places == [] for plane in found.planes)


@pytest.mark.slow
def test_another_corpus_is_mapped_where_the_one_with_classes_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spaces = {(space, "classes"): sphere(150) for space in ("minilm", "minilm-lp")}
    spaces |= {(space, "pairs"): circle(130, 0) for space in ("minilm", "minilm-lp")}
    found = map_spaces(evidence_of(spaces))
    assert found is not None and (found.corpus, found.classes, found.reason) == ("pairs", [], "")


def test_no_map_without_a_fold_or_with_few_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        map_spaces(evidence_of({("minilm", "pairs"): circle(120, 0), ("minilm-pca", "pairs"): circle(120, 0)})) is None
    )
    assert map_spaces(evidence_of({("minilm", "pairs"): circle(99, 0), ("minilm-lp", "pairs"): circle(99, 0)})) is None


def test_a_plane_is_the_same_at_every_drawing() -> None:
    assert draw_plane("minilm", circle(110, 4)) == draw_plane("minilm", circle(110, 4))


def test_the_nearest_are_those_of_the_greatest_cosine_without_the_sentence_itself() -> None:
    x = circle(40, 5).astype(np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    found = find_nearest(x)
    for row, near in enumerate(found.tolist()):
        others = [other for other in range(40) if other != row]
        assert near == sorted(others, key=lambda other: -float(x[row] @ x[other]))[:NEIGHBORS]
