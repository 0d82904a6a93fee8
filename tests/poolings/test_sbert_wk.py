"""SBERT-WK against the paper's equations, written one sentence, one token and one layer at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sentfold.errors import ParameterError
from sentfold.poolings.sbert_wk import sbert_wk

Floats = np.ndarray


def reference(states: Floats, *, layer_start: int, window: int) -> Floats:
    """The vector of one sentence from its (L + 1, t, d) hidden states; NaN where an equation divides by 0."""
    layers = states[layer_start:, :-1].astype(np.float64)  # without [SEP]
    n, t, _ = layers.shape
    tokens = [layers[:, i].T @ layer_weights(layers[:, i], window) for i in range(t)]
    spread = np.array([np.var([cosine(layers[k, i], layers[k + 1, i]) for k in range(n - 1)]) for i in range(t)])
    return np.asarray((spread / spread.sum()) @ np.array(tokens))


def layer_weights(token: Floats, window: int) -> Floats:
    alignments, novelties = [], []
    for k, x in enumerate(token):
        # A layer without a full window on its left sees nothing there: the released code's slice is empty.
        left = [token[j] for j in range(k - window, k)] if k >= window else []
        context = np.array([*left, *token[k + 1 : k + window + 1]])
        # The part of x in the span of the context, by least squares; what is left is new in this layer.
        inside = context.T @ np.linalg.lstsq(context.T, x, rcond=None)[0]
        mean_direction = np.mean([row / np.linalg.norm(row) for row in context], axis=0)
        similarity = mean_direction @ inside / np.linalg.norm(inside)
        alignments.append(1 / (2 * (len(context) + 1) * similarity))
        novelties.append(np.linalg.norm(x - inside) / np.linalg.norm(x))
    weights = np.array(alignments) / np.sum(alignments) + np.array(novelties) / np.sum(novelties)
    return np.asarray(weights / weights.sum())


def cosine(a: Floats, b: Floats) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def random_states(seed: int, *, layers: int = 13, texts: int = 3, tokens: int = 7, width: int = 32) -> Floats:
    """(layers, m, t, d) float32: each layer is the one before it plus a step, as residual connections make it."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(layers, texts, tokens, width)) * np.linspace(1, 0.3, layers)[:, None, None, None]
    return np.cumsum(steps, axis=0).astype(np.float32)


@pytest.mark.parametrize(("layer_start", "window"), [(4, 2), (0, 2), (4, 1), (2, 3), (10, 2)])
def test_sbert_wk_is_what_the_equations_give_sentence_by_sentence(layer_start: int, window: int) -> None:
    states = random_states(layer_start + window)
    got = sbert_wk(torch.from_numpy(states), layer_start=layer_start, window=window).numpy()
    for row, vector in enumerate(got):
        expected = reference(states[:, row], layer_start=layer_start, window=window)
        # The project's bound. Both compute in float64; the result is float32.
        np.testing.assert_allclose(vector, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_the_last_token_has_no_part_in_the_vector() -> None:
    states = random_states(1)
    other = states.copy()
    other[:, :, -1] = 1e3
    before, after = (sbert_wk(torch.from_numpy(part)) for part in (states, other))
    assert torch.equal(before, after)


def test_the_vector_grows_with_the_states_and_turns_with_them() -> None:
    """All weights depend on angles and on ratios of lengths: scaling and rotation pass through."""
    states = random_states(2)
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(32, 32)))[0].astype(np.float32)
    plain = sbert_wk(torch.from_numpy(states)).numpy()
    turned = sbert_wk(torch.from_numpy(3 * states @ rotation)).numpy()
    np.testing.assert_allclose(turned, 3 * plain @ rotation, atol=1e-4 * np.abs(plain).max())  # float32 input, rotated


def test_equal_layers_give_the_mean_token_where_the_released_equations_give_nan() -> None:
    layer = np.eye(32, dtype=np.float32)[None, None, :7]  # unit vectors: every cosine is exactly 1
    states = np.repeat(layer, 8, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        assert np.isnan(reference(states[:, 0], layer_start=4, window=2)).any()
    got = sbert_wk(torch.from_numpy(states)).numpy()
    np.testing.assert_allclose(got, layer[0][:, :-1].mean(axis=1), atol=1e-6)


def test_a_state_of_zeros_gives_no_nan() -> None:
    states = random_states(4)
    states[6, 0, 2] = 0.0  # one layer of one token
    states[:, 1, 3] = 0.0  # all layers of one token
    assert bool(sbert_wk(torch.from_numpy(states)).isfinite().all())


@pytest.mark.parametrize("settings", [{"layer_start": 11}, {"layer_start": -1}, {"window": 0}])
def test_settings_that_leave_too_little_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(ParameterError) as caught:
        sbert_wk(torch.from_numpy(random_states(0)), **settings)
    assert caught.value.where in settings


def test_texts_of_one_token_are_refused() -> None:
    with pytest.raises(ParameterError, match="token besides"):
        sbert_wk(torch.from_numpy(random_states(0, tokens=1)))
