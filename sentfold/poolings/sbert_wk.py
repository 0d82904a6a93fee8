"""SBERT-WK: token vectors weighted over the layers, and sentence vectors weighted over the tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sentfold.errors import ParameterError

if TYPE_CHECKING:
    from torch import Tensor

LEAST_LAYERS = 3  # with fewer, a token has at most one cosine of adjacent layers, and their variance is always 0

# Rounding of float32 hidden states changes a cosine by about 1e-7. A sum of variances below the square of that holds
# no information about the tokens.
FLAT = 1e-14


def sbert_wk(layers: Tensor, *, layer_start: int = 4, window: int = 2) -> Tensor:
    """Sentence vectors by SBERT-WK, as its authors released it.

    layers       (L + 1, m, t, d) hidden states of m texts of t >= 2 tokens; the last token, [SEP], is left out
    layer_start  the first layer that is used, 0 <= layer_start <= L - 2; 0 is the output of the embedding layer
    window       layers on each side of a layer that are its context, >= 1
    Returns (m, d) float32.
    Where all layers of all tokens are equal, the released code gives NaN, or weights that rounding alone decides.
    Here, layers or tokens whose weights cannot be divided by their sum get equal weights. As in the released code, a
    layer k < window, counted from layer_start, has no context on its left, and a negative alignment gives a negative
    weight.
    Raises ParameterError. Cost O(m t d L^2) time, O(m t L d) float64 memory.
    Source: Wang & Kuo 2020, doi:10.1109/TASLP.2020.3008390; the repository BinWang28/SBERT-WK-Sentence-Embedding
    """
    most = len(layers) - LEAST_LAYERS
    if not 0 <= layer_start <= most:
        raise ParameterError(
            "SBERT-WK needs more layers", where="layer_start", expected=f"0 to {most}, so that 3 layers are left",
            got=f"{layer_start}, in a model of {len(layers) - 1} layers",
        )  # fmt: skip
    if layers.shape[2] < 2:
        raise ParameterError(
            "SBERT-WK needs a token besides [SEP]", where="layers", expected="texts of 2 or more tokens",
            got=f"{layers.shape[2]}",
        )  # fmt: skip
    if window < 1:
        raise ParameterError("SBERT-WK needs a context", where="window", expected="1 or more", got=str(window))
    x = layers[layer_start:, :, :-1].permute(1, 2, 0, 3).double()  # (m, t - 1, n, d): the n layers of each token
    tokens = (_layer_weights(x, window).unsqueeze(-1) * x).sum(dim=-2)
    weights = _shares(_token_weights(x), floor=FLAT)
    return (weights.unsqueeze(-1) * tokens).sum(dim=1).float()


def _layer_weights(x: Tensor, window: int) -> Tensor:
    """(m, t, n) weights of the n layers of each token; they sum to 1. A weight is a share of alignment and novelty."""
    import torch
    from torch.nn.functional import normalize

    # The weights depend on angles and lengths alone, so the n layers are written in n coordinates first.
    short = torch.linalg.qr(x.transpose(-1, -2), mode="r").R
    alignments, novelties = [], []
    for context, layer in _contexts(x.shape[-2], window):
        r = torch.linalg.qr(short[..., [*context, layer]], mode="r").R
        inside = r[..., :-1, -1]  # the layer's coordinates in the span of its context
        similarity = (normalize(r[..., :-1, :-1], dim=-2).mean(dim=-1) * inside).sum(dim=-1) / inside.norm(dim=-1)
        alignments.append(1 / (2 * (len(context) + 1) * similarity))
        novelties.append(r[..., -1, -1].abs() / r[..., -1].norm(dim=-1))
    return (_shares(torch.stack(alignments, dim=-1)) + _shares(torch.stack(novelties, dim=-1))) / 2


def _contexts(n: int, window: int) -> list[tuple[list[int], int]]:
    """Each of n layers with the layers of its context.

    The slice on the left is the released one: where its start is negative, Python counts from the end.
    """
    layers = list(range(n))
    return [(layers[k - window : k] + layers[k + 1 : k + window + 1], k) for k in layers]


def _token_weights(x: Tensor) -> Tensor:
    """(m, t) variance of the cosines of adjacent layers of each token."""
    from torch.nn.functional import cosine_similarity

    return cosine_similarity(x[..., 1:, :], x[..., :-1, :], dim=-1).var(dim=-1, correction=0)


def _shares(values: Tensor, *, floor: float = 0.0) -> Tensor:
    """Values divided by their sum over the last axis; equal shares where the sum is not finite or at most `floor`."""
    import torch

    total = values.sum(dim=-1, keepdim=True)
    usable = total.isfinite() & (total.abs() > floor)
    return torch.where(usable, values / total, 1 / values.shape[-1])
