"""The poolings: each one is a function from the hidden states of a batch to one vector per text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sentfold.errors import EncoderError, ParameterError
from sentfold.poolings.sbert_wk import sbert_wk

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class HiddenStates:
    """What one forward pass computes for m texts that all have t tokens, [CLS] and [SEP] included.

    layers  (L + 1, m, t, d) float32; layer 0 is the output of the embedding layer
    pooled  (m, d) float32, the model's own pooled output: a trained layer and tanh behind [CLS]; None without weights
    """

    layers: Tensor
    pooled: Tensor | None


Pooling = Callable[[HiddenStates], "Tensor"]


def cls(states: HiddenStates) -> Tensor:
    """(m, d) [CLS] of the last layer."""
    return states.layers[-1][:, 0]


def cls_pooled(states: HiddenStates) -> Tensor:
    """(m, d) the model's own pooled output. Raises EncoderError if the model has no weights for it."""
    if states.pooled is None:
        raise EncoderError(
            "the model has no pooled output",
            where="--pooling cls-pooled",
            expected="a model saved with its pooling layer",
            remedy="use the pooling cls or mean",
        )
    return states.pooled


def mean(states: HiddenStates) -> Tensor:
    """(m, d) mean of all tokens of the last layer."""
    return states.layers[-1].mean(dim=1)


def mean_without_sep(states: HiddenStates) -> Tensor:
    """(m, d) mean of the last layer without its last token, as SBERT-WK's authors average."""
    return states.layers[-1][:, :-1].mean(dim=1)


def first_last(states: HiddenStates) -> Tensor:
    """(m, d) mean of all tokens of layer 1 and of the last layer. Source: Su et al. 2021, arXiv:2103.15316"""
    return states.layers[[1, -1]].mean(dim=(0, 2))


def last_two(states: HiddenStates) -> Tensor:
    """(m, d) mean of all tokens of the last two layers. Raises ParameterError for a model of one layer."""
    _require_layers(states, 2, "last-two")
    return states.layers[-2:].mean(dim=(0, 2))


def second_to_second_last(states: HiddenStates) -> Tensor:
    """(m, d) mean of all tokens of all layers but the first and the last, as LASE's table has it.

    Raises ParameterError for a model of fewer than 3 layers.
    """
    _require_layers(states, 3, "second-to-second-last")
    return states.layers[2:-1].mean(dim=(0, 2))


def weighted_layers(states: HiddenStates, *, layer_start: int = 4, window: int = 2) -> Tensor:
    """(m, d) SBERT-WK. Raises ParameterError; see sbert_wk."""
    return sbert_wk(states.layers, layer_start=layer_start, window=window)


POOLINGS: dict[str, Pooling] = {
    "cls": cls,
    "cls-pooled": cls_pooled,
    "mean": mean,
    "mean-without-sep": mean_without_sep,
    "first-last": first_last,
    "last-two": last_two,
    "second-to-second-last": second_to_second_last,
    "sbert-wk": weighted_layers,
}

# BERT-flow's paper averages the last two layers and calls it last2avg. Its released code averages the first and the
# last layer, because it takes index -0 for the last one (issues 11 and 16 of its repository).
LAST2AVG = {"published": "last-two", "released": "first-last"}


def find_pooling(name: str, *, layer_start: int = 4, window: int = 2) -> Pooling:
    """The pooling of a name. layer_start and window are parameters of sbert-wk. Raises ParameterError."""
    if name not in POOLINGS:
        raise ParameterError(
            f"there is no pooling '{name}'", where="--pooling", expected=f"one of: {', '.join(POOLINGS)}", got=name
        )
    if name == "sbert-wk":
        return partial(weighted_layers, layer_start=layer_start, window=window)
    return POOLINGS[name]


def _require_layers(states: HiddenStates, least: int, name: str) -> None:
    if len(states.layers) - 1 < least:
        raise ParameterError(
            "the model has too few layers for this pooling",
            where=f"--pooling {name}",
            expected=f"{least} or more layers",
            got=str(len(states.layers) - 1),
        )
