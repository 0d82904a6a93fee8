"""The flow: invertible, a density, started from the data, and better on data that no Gaussian fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from sentfold.errors import ParameterError, SolverError
from sentfold.training.flow import FittedFlow, Flow, fit_flow
from sentfold.training.settings import FlowSettings

D = 8
PRIORS = ["standard", "conditional"]
NOISE = 0.1


def bent(seed: int, n: int = 600) -> np.ndarray:
    """Four normal numbers, and four that are the squares of these with a little noise."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(n, D // 2))
    second = first**2 + NOISE * rng.normal(size=first.shape)
    return np.concatenate([first, second], axis=1).astype(np.float32)


# Bits per dimension of the distribution itself: of four unit normals, and of the noise of the other four.
ENTROPY = (np.log2(2 * np.pi * np.e) + np.log2(2 * np.pi * np.e * NOISE**2)) / 4
# Of the Gaussian with the same variances: 1 for the first four, 2 + 0.01 for the squares.
GAUSSIAN = (np.log2(2 * np.pi * np.e) + np.log2(2 * np.pi * np.e * (2 + NOISE**2))) / 4


@pytest.fixture(scope="module", params=PRIORS)
def fitted(request: pytest.FixtureRequest) -> FittedFlow:
    settings = FlowSettings(levels=2, depth=2, width=16, epochs=8, learning_rate=5e-3, split_prior=request.param)
    return fit_flow(bent(0), settings)


def mean_bits(fitted: FittedFlow, x: np.ndarray) -> float:
    with torch.no_grad():
        return float(fitted.flow.bits_per_dimension(torch.from_numpy(x)).mean())


def test_the_images_lead_back_to_the_vectors(fitted: FittedFlow) -> None:
    x = bent(1)
    assert np.abs(fitted.invert(fitted.transform(x)) - x).max() <= 1e-5 * np.abs(x).max()


@pytest.mark.parametrize("levels", [1, 3])
def test_a_flow_of_any_number_of_levels_is_invertible(levels: int) -> None:
    x = bent(9, n=64)
    fitted = fit_flow(x, FlowSettings(levels=levels, depth=2, width=4, learning_rate=0.05, epochs=3))
    z = fitted.transform(x)
    assert np.abs(z - x).max() > 0.1
    assert np.abs(fitted.invert(z) - x).max() <= 1e-5 * np.abs(x).max()


def test_the_log_density_is_that_of_the_images_and_of_the_jacobian(fitted: FittedFlow) -> None:
    flow = fitted.flow.double()
    for row in torch.from_numpy(bent(2, n=4)).double():
        jacobian = torch.autograd.functional.jacobian(lambda x: flow(x[None])[0][0], row)
        z, log_density = flow(row[None])
        normal = torch.distributions.Normal(0.0, 1.0).log_prob(z).sum()
        expected = normal + torch.linalg.slogdet(jacobian).logabsdet
        assert float((log_density - expected).detach().abs().max()) < 1e-9
    flow.float()


def test_bits_per_dimension_fall_below_those_of_a_gaussian_and_not_below_the_entropy(fitted: FittedFlow) -> None:
    assert fitted.bits[-1] < fitted.bits[0]
    fresh = mean_bits(fitted, bent(3, n=4000))
    # No density beats the entropy on fresh data, apart from the sampling error of a mean of 4,000 rows.
    assert ENTROPY - 0.05 < fresh < GAUSSIAN - 0.1


def test_the_first_batch_sets_each_scale_to_mean_0_and_variance_1() -> None:
    torch.manual_seed(0)
    flow = Flow(D, FlowSettings(levels=2, depth=2, width=16))
    outputs: list[torch.Tensor] = []
    for step in [step for level in flow.levels for step in level]:
        step.norm.register_forward_hook(lambda _module, _inputs, output: outputs.append(output[0].detach()))
    flow(torch.from_numpy(3 + 5 * bent(4)))
    assert len(outputs) == 4
    for output in outputs:
        # Sums of 600 float32 numbers.
        torch.testing.assert_close(output.mean(dim=0), torch.zeros(output.shape[1]), atol=1e-4, rtol=0)
        torch.testing.assert_close(output.std(dim=0, correction=0), torch.ones(output.shape[1]), atol=1e-4, rtol=0)


def test_the_start_is_kept_after_the_first_batch() -> None:
    flow = Flow(D, FlowSettings(levels=2, depth=1))
    flow(torch.from_numpy(bent(5)))
    before = {name: value.clone() for name, value in flow.state_dict().items()}
    flow(torch.from_numpy(100 * bent(6)))
    assert all(torch.equal(value, before[name]) for name, value in flow.state_dict().items())


def test_the_same_vectors_and_seed_give_the_same_flow_and_leave_torchs_own_seed_alone() -> None:
    settings = FlowSettings(levels=2, depth=1, width=4)
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    runs = [fit_flow(bent(7, n=100), settings).transform(bent(8, n=20)) for _ in range(2)]
    assert torch.equal(torch.rand(1), expected)
    np.testing.assert_array_equal(runs[0], runs[1])
    other = fit_flow(bent(7, n=100), settings.model_copy(update={"seed": 1})).transform(bent(8, n=20))
    assert np.abs(other - runs[0]).max() > 1e-3


@pytest.mark.parametrize(
    "x", [np.zeros((1, D)), np.zeros((5, 12)), np.full((5, D), np.nan), np.zeros(D)], ids=["row", "width", "nan", "1-d"]
)
def test_vectors_that_no_flow_fits_are_refused(x: Any) -> None:
    with pytest.raises(ParameterError, match="multiple of 8"):
        fit_flow(x.astype(np.float32))


def test_a_number_beyond_float32_is_refused_before_the_fit() -> None:
    x: Any = bent(3, n=20).astype(np.float64)
    x[4, 2] = 1e39
    with pytest.raises(ParameterError, match="multiple of 8"):
        fit_flow(x)


def test_a_fit_whose_images_are_not_finite_is_an_error() -> None:
    with pytest.raises(SolverError, match="not finite") as caught:
        fit_flow(np.ones((8, D), dtype=np.float32))
    assert "8 of 8" in caught.value.got
