"""The stage `transform` on written artifacts: right spaces, notes and refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.decomposition import PCA

from pipeline.base.artifacts import (
    absence,
    graph_path,
    read_record,
    read_vectors,
    space_path,
    write_absence,
    write_vectors,
)
from pipeline.stages.knn_graph import knn_graph
from pipeline.stages.transform import transform
from sentfold.errors import ArtifactError, ParameterError
from sentfold.manifold.estimators.linear import (
    AllButTheTop,
    GraphSmoothing,
    LocalityPreservingProjections,
    NeighborhoodPreservingEmbedding,
    Whitening,
)

ROOT = Path(__file__).parents[2]

N, D, P = 300, 24, 10
LINEAR, BY_GRAPH = ["pca", "whitening", "abtt"], ["npe", "lpp", "smooth"]


def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.standard_normal((N, D)) * 1.2 ** np.arange(D) + 3.0).astype(np.float32)


def set_parameter(name: str, key: str, value: float) -> None:
    path = Path("params.yaml")
    content = yaml.safe_load(path.read_text())
    content["manifolds"][name][key] = value
    path.write_text(yaml.safe_dump(content))


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project's parameters with p = 10, and one encoder's space: a corpus, two examples, a blank."""
    (tmp_path / "params.yaml").write_bytes((ROOT / "params.yaml").read_bytes())
    monkeypatch.chdir(tmp_path)
    for name in ("pca", "whitening", "npe", "lpp"):
        set_parameter(name, "components", P)
    for corpus, x, task in (("toy", rows(), "similarity"), ("pair", rows()[:2], "example")):
        notes = {"sentences": len(x), "task": task}
        write_vectors(space_path("quick", "mini", corpus), x, parameters={}, notes=notes)
    write_absence(space_path("quick", "mini", "blank"), "no such file in the mirror", kind="vectors")
    knn_graph("quick", "mini", ("toy", "pair", "blank"))


def space(name: str, corpus: str = "toy") -> Path:
    return space_path("quick", f"mini-{name}", corpus)


ESTIMATORS = {
    "pca": PCA(P, svd_solver="full"),
    "whitening": Whitening(P),
    "abtt": AllButTheTop(1),
    "npe": NeighborhoodPreservingEmbedding(P, n_neighbors=30, regularization=1e-3),
    "lpp": LocalityPreservingProjections(P, n_neighbors=30),
    "smooth": GraphSmoothing(n_neighbors=5, amount=0.1),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_space_is_what_the_estimator_makes_of_the_same_rows(name: str) -> None:
    transform("quick", "mini", name, ("toy",))
    wanted = ESTIMATORS[name].fit_transform(rows().astype(np.float64))
    written = read_vectors(space(name))
    signs = np.sign(np.einsum("np,np->p", written, wanted))
    # float32 storage rounds each entry by 6e-8 of it.
    np.testing.assert_allclose(written, wanted * signs, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_space_records_what_made_it_and_from_what(name: str) -> None:
    transform("quick", "mini", name, ("toy",))
    record = read_record(space(name), kind="vectors")
    assert record["parameters"] == yaml.safe_load(Path("params.yaml").read_text())["manifolds"][name]
    inputs = {str(space_path("quick", "mini", "toy"))}
    assert set(record["inputs"]) == inputs | ({str(graph_path("quick", "mini", "toy"))} if name in BY_GRAPH else set())
    assert record["notes"]["sentences"] == N


def test_the_notes_of_a_linear_map_hold_rank_variances_and_what_is_kept() -> None:
    for name in LINEAR:
        transform("quick", "mini", name, ("toy",))
    pca, whitening, abtt = (read_record(space(name), kind="vectors")["notes"] for name in LINEAR)
    variances = np.linalg.eigvalsh(np.cov(rows().astype(np.float64).T))[::-1]
    np.testing.assert_allclose(pca["eigenvalues"], variances[:P], rtol=1e-9)
    np.testing.assert_allclose(abtt["eigenvalues"], variances[:1], rtol=1e-9)
    assert pca["rank"] == whitening["rank"] == abtt["rank"] == D
    assert pca["variance_share"] == whitening["variance_share"] == round(variances[:P].sum() / variances.sum(), 6)
    assert abtt["variance_share"] == round(1 - variances[0] / variances.sum(), 6)


def test_the_notes_of_a_graph_map_hold_its_eigenvalues() -> None:
    for name in ("npe", "lpp"):
        transform("quick", "mini", name, ("toy",))
        notes = read_record(space(name), kind="vectors")["notes"]
        np.testing.assert_allclose(
            notes["eigenvalues"], ESTIMATORS[name].fit(rows().astype(np.float64)).eigenvalues_, rtol=1e-9
        )


@pytest.mark.parametrize("name", ESTIMATORS)
def test_examples_and_blanks_are_passed_on_with_their_reason(name: str) -> None:
    transform("quick", "mini", name, ("pair", "blank"))
    assert absence(space(name, "pair"), kind="vectors") == "2 example sentences have no neighbourhoods"
    assert absence(space(name, "blank"), kind="vectors") == "no such file in the mirror"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_second_run_writes_the_same_bytes(name: str) -> None:
    transform("quick", "mini", name, ("toy",))
    before = space(name).read_bytes()
    space(name).unlink()
    transform("quick", "mini", name, ("toy",))
    assert space(name).read_bytes() == before


@pytest.mark.parametrize(
    ("name", "key", "value", "parts"),
    [
        ("pca", "components", D + 1, ["corpus toy", "manifolds.pca", f"min(n, d) = {D}"]),
        ("whitening", "components", N + 1, ["corpus toy", "manifolds.whitening", f"min(n, d) = {D}"]),
        ("abtt", "removed", D, ["corpus toy", "manifolds.abtt", f"rank of the centred rows - 1 = {D - 1}"]),
        ("npe", "components", D + 1, ["corpus toy", "manifolds.npe", f"rank of the centred rows = {D}"]),
        ("lpp", "components", D + 1, ["corpus toy", "manifolds.lpp", f"rank of the centred rows = {D}"]),
        ("smooth", "neighbors", 101, ["manifolds.smooth: neighbors", "knn_graph.neighbors = 100"]),
    ],
)
def test_what_does_not_fit_a_corpus_is_refused_by_corpus_and_parameter(
    name: str, key: str, value: int, parts: list[str]
) -> None:
    set_parameter(name, key, value)
    with pytest.raises(ParameterError) as caught:
        transform("quick", "mini", name, ("toy",))
    for part in parts:
        assert part in str(caught.value)
    assert not space(name).exists()


def test_a_missing_graph_is_named() -> None:
    graph_path("quick", "mini", "toy").unlink()
    with pytest.raises(ArtifactError, match=r"graphs/mini/toy\.parquet"):
        transform("quick", "mini", "npe", ("toy",))
