"""The losses: gradients against finite differences, the identities of the Lorentzian distance, and what they move."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import normalize

from sentfold.errors import ParameterError
from sentfold.measures.geometry import alignment
from sentfold.measures.geometry import uniformity as measured_uniformity
from sentfold.settings import validate
from sentfold.training.losses import build_loss, squared_lorentz_distance, uniformity
from sentfold.training.settings import LossSettings

KINDS = ["contrastive", "cosine-regression", "lorentz-contrastive", "lorentz-regression", "alignment-uniformity"]
BETAS = st.sampled_from([0.01, 0.1, 1.0, 10.0])
SEEDS = st.integers(0, 2**32 - 1)
SCALES = st.sampled_from([0.1, 1.0, 20.0])


def make_loss(kind: str, **numbers: float) -> Any:
    """The loss on embeddings; its model is never called."""
    return build_loss(LossSettings.model_validate({"kind": kind, **numbers}), nn.Identity())


def rows(seed: int, *, n: int = 6, d: int = 5, scale: float = 1.0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(n, d)) * scale)


# --- gradients --------------------------------------------------------------------------------------

LABELS = torch.tensor([1.0, 0.0, 1.0, 0.0, 1.0, 0.0])
GRADIENTS = [(kind, {}) for kind in KINDS] + [
    ("contrastive", {"margin": 1.5}),
    ("lorentz-contrastive", {"beta": 0.1, "margin": 3.0}),
    ("lorentz-regression", {"beta": 10.0}),
    ("alignment-uniformity", {"alpha": 1.0, "t": 3.0, "uniformity_weight": 0.5}),
]


@pytest.mark.parametrize(("kind", "numbers"), GRADIENTS)
def test_the_gradient_is_that_of_finite_differences(kind: str, numbers: dict[str, float]) -> None:
    loss = make_loss(kind, **numbers)
    x, y = rows(1).requires_grad_(), rows(2).requires_grad_()
    labels = LABELS.double()
    labels.float = lambda: labels  # type: ignore[method-assign]  # the library's losses make labels float32
    assert torch.autograd.gradcheck(lambda a, b: loss.compute_loss_from_embeddings([a, b], labels), (x, y))


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_is_finite_where_both_sentences_have_one_vector(kind: str) -> None:
    x, y = rows(3).requires_grad_(), rows(3).requires_grad_()
    make_loss(kind).compute_loss_from_embeddings([x, y], LABELS).backward()
    assert x.grad is not None and bool(x.grad.isfinite().all())


# --- the Lorentzian distance ------------------------------------------------------------------------


def hyperboloid(x: torch.Tensor, beta: float) -> np.ndarray:
    first = np.sqrt((x.numpy() ** 2).sum(axis=1, keepdims=True) + beta)
    return np.hstack([first, x.numpy()])


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray((a[:, 1:] * b[:, 1:]).sum(axis=1) - a[:, 0] * b[:, 0])


@settings(deadline=None)  # a busy machine
@given(seed=SEEDS, beta=BETAS, scale=SCALES)
def test_the_distance_is_that_of_the_images_on_the_hyperboloid(seed: int, beta: float, scale: float) -> None:
    x, y = rows(seed, scale=scale), rows(seed + 1, scale=scale)
    a, b = hyperboloid(x, beta), hyperboloid(y, beta)
    # Numbers of the size of |x| |y| cancel in the definition: a few roundings of them in float64.
    bound = 1e-14 * (a[:, 0] * b[:, 0]).max()
    np.testing.assert_allclose(product(a, a), -beta, atol=1e-14 * (a[:, 0] ** 2).max())
    got = squared_lorentz_distance(x, y, beta=beta).numpy()
    np.testing.assert_allclose(got, -2 * beta - 2 * product(a, b), atol=10 * bound)


@settings(deadline=None)  # a busy machine
@given(seed=SEEDS, beta=BETAS, scale=SCALES)
def test_the_distance_lies_between_0_and_the_euclidean_one_and_is_symmetric(
    seed: int, beta: float, scale: float
) -> None:
    x, y = rows(seed, scale=scale), rows(seed + 1, scale=scale)
    got = squared_lorentz_distance(x, y, beta=beta)
    assert bool((got >= 0).all()) and bool((got <= (x - y).square().sum(dim=1)).all())
    assert torch.equal(got, squared_lorentz_distance(y, x, beta=beta))
    assert not squared_lorentz_distance(x, x, beta=beta).any()


@settings(deadline=None)  # a busy machine
@given(seed=SEEDS, beta=BETAS)
def test_for_unit_vectors_the_distance_is_2_minus_2_cosines_whatever_beta_is(seed: int, beta: float) -> None:
    x, y = normalize(rows(seed)), normalize(rows(seed + 1))
    cosines = (x * y).sum(dim=1)
    torch.testing.assert_close(squared_lorentz_distance(x, y, beta=beta), 2 - 2 * cosines, atol=1e-13, rtol=0)


@settings(deadline=None)  # a busy machine
@given(seed=SEEDS)
def test_the_limits_of_the_distance_are_the_euclidean_and_the_conformal_one(seed: int) -> None:
    x, y = rows(seed), rows(seed + 1)
    squared, lengths = (x - y).square().sum(dim=1), x.norm(dim=1) * y.norm(dim=1)
    # The first coordinates differ by at most ||x|^2 - |y|^2| / (2 sqrt(beta)).
    bound = ((x.square().sum(dim=1) - y.square().sum(dim=1)) / 2e5).square().max() + 1e-12
    assert (squared_lorentz_distance(x, y, beta=1e10) - squared).abs().max() <= bound
    near_zero = squared_lorentz_distance(x, y, beta=1e-12)
    # sqrt((a + beta)(b + beta)) - sqrt(a b) is at most beta (a + b) / (2 sqrt(a b)) + beta, with a = |x|^2, b = |y|^2.
    slack = 1e-12 * (2 + (x.square().sum(dim=1) + y.square().sum(dim=1)) / lengths) + 1e-13
    assert bool(((near_zero - 2 * (lengths - (x * y).sum(dim=1))).abs() <= 2 * slack).all())


def test_close_vectors_keep_their_distance_in_float32() -> None:
    """The literal form -2 (beta + x y - ...) would lose all digits here."""
    x = (rows(5, scale=10.0)).float()
    y = x + 1e-3 * rows(6).float()
    exact = squared_lorentz_distance(x.double(), y.double())
    # The rounding of x - y itself is no loss: both are given in float32. Three sums of five terms follow.
    torch.testing.assert_close(squared_lorentz_distance(x, y).double(), exact, rtol=1e-3, atol=0)


@pytest.mark.parametrize("beta", [0.01, 1.0, 10.0])
def test_on_unit_vectors_the_lorentzian_losses_are_those_on_cosines(beta: float) -> None:
    pair = [normalize(rows(7)), normalize(rows(8))]
    losses = {kind: make_loss(kind, beta=beta).compute_loss_from_embeddings(pair, LABELS) for kind in KINDS[:4]}
    torch.testing.assert_close(
        losses["lorentz-regression"].double(), losses["cosine-regression"].double(), rtol=1e-6, atol=0
    )
    # Twice the distance at twice the margin: four times the squares.
    torch.testing.assert_close(losses["lorentz-contrastive"], 4 * losses["contrastive"], rtol=1e-6, atol=0)


def test_a_label_between_0_and_1_weighs_both_terms_of_the_contrastive_loss() -> None:
    x, y = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.6, 0.8]])  # cosine 0.6
    got = make_loss("contrastive").compute_loss_from_embeddings([x, y], torch.tensor([0.75]))
    assert float(got) == pytest.approx(0.5 * (0.75 * 0.4**2 + 0.25 * 0.1**2), rel=1e-6)


# --- alignment and uniformity -----------------------------------------------------------------------


def test_the_terms_are_the_measures_of_the_positive_pairs_and_of_all_vectors() -> None:
    x, y = rows(9), rows(10)
    got = float(make_loss("alignment-uniformity").compute_loss_from_embeddings([x, y], LABELS))
    a, b = normalize(x).numpy(), normalize(y).numpy()
    positives = np.array([[row, 6 + row] for row in range(6) if LABELS[row] == 1])
    expected = alignment(np.vstack([a, b]), positives) + (measured_uniformity(a) + measured_uniformity(b)) / 2
    assert got == pytest.approx(expected, rel=1e-12)


def test_a_batch_without_positives_or_of_one_pair_has_a_finite_loss() -> None:
    loss = make_loss("alignment-uniformity")
    assert math.isfinite(float(loss.compute_loss_from_embeddings([rows(1), rows(2)], torch.zeros(6))))
    assert float(loss.compute_loss_from_embeddings([rows(1, n=1), rows(2, n=1)], torch.zeros(1))) == 0


def descend(labels: torch.Tensor, steps: int = 400, **numbers: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Unit vectors of pairs in three dimensions after gradient descent on the loss, from one random start."""
    free = [rows(seed, n=len(labels), d=3).requires_grad_() for seed in (11, 12)]
    optimizer = torch.optim.Adam(free, lr=0.05)
    loss = make_loss("alignment-uniformity", **numbers)
    for _ in range(steps):
        optimizer.zero_grad()
        loss.compute_loss_from_embeddings(free, labels).backward()
        optimizer.step()
    x, y = (normalize(part.detach()) for part in free)
    return x, y


TETRAHEDRON = -2 * 8 / 3  # four points of the sphere, all pairs at a squared distance of 8/3, have the least uniformity


def test_alignment_joins_pairs_and_uniformity_spreads_them_over_the_sphere() -> None:
    x, y = descend(torch.ones(4))
    # Theory: pairs meet, and the vectors become a regular simplex. 400 steps of 0.05 come this near.
    assert float((x - y).square().sum(dim=1).max()) < 1e-3
    for part in (x, y):
        assert float(uniformity(part, t=2.0)) == pytest.approx(TETRAHEDRON, abs=1e-2)


def test_without_uniformity_pairs_meet_and_nothing_spreads_and_without_alignment_the_reverse() -> None:
    x, y = descend(torch.ones(4), uniformity_weight=0.0)
    assert float((x - y).square().sum(dim=1).max()) < 1e-3 and float(uniformity(x, t=2.0)) > TETRAHEDRON + 0.5
    x, y = descend(torch.ones(4), alignment_weight=0.0)
    assert float(uniformity(x, t=2.0)) == pytest.approx(TETRAHEDRON, abs=1e-2)
    assert float((x - y).square().sum(dim=1).max()) > 0.1


def test_a_negative_pair_is_not_pulled_together() -> None:
    labels = torch.tensor([1.0, 1.0, 1.0, 0.0])
    joined, (x, y) = descend(torch.ones(4)), descend(labels)
    assert float((joined[0] - joined[1])[3].square().sum()) < 1e-3
    start = [normalize(rows(seed, n=4, d=3)) for seed in (11, 12)]
    free = [part.clone().requires_grad_() for part in start]
    make_loss("alignment-uniformity", uniformity_weight=0.0).compute_loss_from_embeddings(free, labels).backward()
    for part in free:
        assert part.grad is not None and not part.grad[3].any() and part.grad[:3].any()
    # Theory: three pairs near one plane, and the two sentences of the negative pair on its two sides.
    assert float((x - y)[3].square().sum()) > 1


@pytest.mark.parametrize("wrong", [{"beta": 0.0}, {"margin": -1.0}, {"kind": "triplet"}, {"alpha": 0.5}])
def test_numbers_out_of_range_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError) as caught:
        validate(LossSettings, {"kind": "contrastive", **wrong}, where="loss")
    assert next(iter(wrong)) in str(caught.value)
