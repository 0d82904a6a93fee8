"""Settings of the flow, of heads and of losses. This module imports no torch: a check of parameters reads it alone."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from sentfold.settings import Parameters


class FlowSettings(Parameters):
    """The flow of BERT-flow and its training; the defaults are the released ones.

    levels, depth, width  levels with `depth` steps each; numbers in the hidden layers of a coupling
    split_prior           of the half of the coordinates that leaves after a level: standard, a unit Gaussian, as in the
                          released code; conditional, a Gaussian whose mean and scale depend on the other half, as in
                          Glow
    """

    levels: int = Field(default=3, ge=1, le=8)
    depth: int = Field(default=3, ge=1)
    width: int = Field(default=32, ge=1)
    split_prior: Literal["standard", "conditional"] = "standard"
    learning_rate: float = Field(default=1e-3, gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    clip: float = Field(default=1.0, gt=0)
    batch_size: int = Field(default=32, ge=2)
    epochs: int = Field(default=1, ge=1)
    seed: int = Field(default=0, ge=0)


class HeadSettings(Parameters):
    """channels of each kernel, 0 for no convolution; kernels: odd widths in tokens; activation: of the convolution."""

    channels: int = Field(default=256, ge=0)
    kernels: list[int] = Field(default=[1, 3, 5], min_length=1)
    activation: Literal["none", "relu", "gelu", "tanh"] = "none"
    pooling: Literal["mean", "max"] = "mean"

    @field_validator("kernels")
    @classmethod
    def _odd(cls, kernels: list[int]) -> list[int]:
        if any(width < 1 or width % 2 == 0 for width in kernels):
            raise ValueError("a kernel is an odd number of tokens, 1 or more")
        return kernels


class LossSettings(Parameters):
    """Which loss, and its numbers; a loss ignores the numbers of the others.

    kind     contrastive: 0.5 (y D^2 + (1 - y) max(0, margin - D)^2), D = 1 - cosine; y may lie between 0 and 1
             cosine-regression: (cosine - y)^2
             lorentz-contrastive: as contrastive, D = the squared Lorentzian distance
             lorentz-regression: (1 - D / 2 - y)^2, D = the squared Lorentzian distance
             alignment-uniformity: see AlignmentUniformityLoss
    margin   of the contrastive losses; None: 0.5 of cosine distance, and 1, the same for unit vectors, of Lorentzian
    beta     of the hyperboloid
    alpha, t, alignment_weight, uniformity_weight  of alignment-uniformity
    """

    kind: Literal[
        "contrastive", "cosine-regression", "lorentz-contrastive", "lorentz-regression", "alignment-uniformity"
    ]
    margin: float | None = Field(default=None, gt=0)
    beta: float = Field(default=1.0, gt=0)
    alpha: float = Field(default=2.0, ge=1)
    t: float = Field(default=2.0, gt=0)
    alignment_weight: float = Field(default=1.0, ge=0)
    uniformity_weight: float = Field(default=1.0, ge=0)


class TrainerSettings(Parameters):
    """How an encoder is trained.

    learning_rate   of AdamW; it rises from 0 in the first `warmup` of all steps, and falls to 0 in a straight line
    clip            largest norm of a gradient
    max_length      tokens that are read of a sentence
    evaluate_every  steps from one score on the development pairs to the next; each one is a checkpoint
    patience        scores without a gain after which the training ends; None: it never ends early
    device          cpu, or a device of torch, such as cuda; the same settings give the same model on cpu alone
    """

    learning_rate: float = Field(default=2e-5, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    clip: float = Field(default=1.0, gt=0)
    warmup: float = Field(default=0.1, ge=0, lt=1)
    epochs: int = Field(default=1, ge=1)
    batch_size: int = Field(default=16, ge=2)
    max_length: int = Field(default=128, ge=3)
    evaluate_every: int = Field(default=100, ge=1)
    patience: int | None = Field(default=None, ge=1)
    device: str = "cpu"


class Recipe(Parameters):
    """A head, a loss and a trainer: all that decides a trained encoder but its transformer, its pairs and its seed."""

    head: HeadSettings = HeadSettings()
    loss: LossSettings
    trainer: TrainerSettings = TrainerSettings()
