"""The scale of each dimension: second moments, and distances that have a known meaning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml

from pipeline.base.artifacts import fixed_lists, read_record, read_vectors, space_path, weights_path, write_table
from pipeline.stages.eigensolve import eigensolve
from sentfold.errors import ParameterError
from sentfold.manifold.base.local import scale_eigenvectors
from sentfold.manifold.weights.weights import solve_weights

ROOT = Path(__file__).parents[2]

VALUES = np.array([1e-4, 0.02, 0.5])


def orthonormal(n: int, p: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(0).standard_normal((n, p)))[0]


@pytest.mark.parametrize(("scaling", "power"), [("unit", 0.0), ("quarter", -0.5), ("half", -1.0)])
def test_the_second_moments_are_powers_of_the_eigenvalues_over_the_last(scaling: str, power: float) -> None:
    y = scale_eigenvectors(orthonormal(50, 3), VALUES, scaling)
    np.testing.assert_allclose(y.T @ y / 50, np.diag((VALUES / VALUES[-1]) ** power), atol=1e-13 * 5000)


def test_the_half_power_of_a_path_turns_squared_distances_into_steps() -> None:
    # Of a Laplacian's eigenvectors over sqrt(eigenvalue): the effective resistance, on a path |i - j| unit resistors.
    n = 30
    laplacian = np.diag(np.r_[1.0, np.full(n - 2, 2.0), 1.0]) - np.eye(n, k=1) - np.eye(n, k=-1)
    values, vectors = np.linalg.eigh(laplacian)
    y = scale_eigenvectors(vectors[:, 1:], values[1:], "half")
    squared = np.square(y[:, None] - y[None]).sum(axis=2) / (n * values[-1])
    np.testing.assert_allclose(squared, np.abs(np.subtract.outer(np.arange(n), np.arange(n))), atol=1e-10)


def test_an_unknown_scaling_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ParameterError, match="unit, quarter, half"):
        scale_eigenvectors(orthonormal(50, 3), VALUES, "third")  # type: ignore[arg-type]


def test_a_null_vector_is_refused() -> None:
    with pytest.raises(ParameterError, match="null_tolerance"):
        scale_eigenvectors(orthonormal(50, 3), np.array([0.0, 0.1, 0.2]), "half")


def test_the_stage_scales_as_its_block_says_and_records_the_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    x = np.random.default_rng(0).standard_normal((120, 10))
    neighbors = np.argsort(np.square(x[:, None] - x[None]).sum(axis=2), axis=1)[:, 1:13].astype(np.int32)
    weights = solve_weights(x, neighbors, regularization=1e-3).values
    spaces = {}
    for scaling in ("unit", "half"):
        content["manifolds"][scaling] = {**content["manifolds"]["lp"], "components": 4, "scaling": scaling}
        Path("params.yaml").write_text(yaml.safe_dump(content))
        source = weights_path("quick", f"mini-{scaling}", "toy")
        lists = {"neighbor": fixed_lists(neighbors), "weight": fixed_lists(weights)}
        write_table(source, pa.table(lists), kind="weights", parameters={})
        eigensolve("quick", "mini", scaling, ("toy",))
        spaces[scaling] = space_path("quick", f"mini-{scaling}", "toy")
    record = read_record(spaces["half"], kind="vectors")
    values = np.array(record["notes"]["eigenvalues"])
    ratios = read_vectors(spaces["half"]) / read_vectors(spaces["unit"])
    np.testing.assert_allclose(ratios, np.broadcast_to(np.sqrt(values[-1] / values), ratios.shape), rtol=1e-5)
    assert record["parameters"]["scaling"] == "half"
    assert record["parameters"]["eigensolve"] == content["eigensolve"]
    assert max(record["notes"]["residuals"]) <= content["eigensolve"]["tolerance"] * values[-1]
    assert record["notes"]["outside"] > values[-1]
    assert (record["notes"]["precision"], record["notes"]["basis"]) == ("dense", 0)
