"""BERT-flow: an invertible map of sentence vectors to a Gaussian, fitted without labels. Needs `sentfold[text]`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sentfold.encoders.transformer import _one_thread
from sentfold.errors import ParameterError, SolverError
from sentfold.files import Vectors
from sentfold.training.settings import FlowSettings

FACTOR = 3.0  # a scale is exp(FACTOR * parameter), so that scales learn faster than shifts
CHUNK = 4096  # rows that are mapped at a time


@dataclass(frozen=True)
class FittedFlow:
    """A fitted flow.

    flow  the module, in evaluation mode
    bits  bits per dimension of each batch of the training, in order
    """

    flow: Flow
    bits: tuple[float, ...]

    def transform(self, x: Vectors) -> Vectors:
        """(n, d) float32 images; their distribution is near a unit Gaussian if the flow fits. Compare by cosine."""
        return _map_rows(lambda rows: self.flow(rows)[0], x)

    def invert(self, z: Vectors) -> Vectors:
        """(n, d) float32 vectors whose images are z."""
        return _map_rows(self.flow.invert, z)


def fit_flow(x: Vectors, settings: FlowSettings | None = None) -> FittedFlow:
    """Fit a flow to (n, d) float32 vectors by maximum likelihood, on the CPU.

    n is at least 2, and d a multiple of 2^levels. The scales start from the first batch (data-dependent start).
    AdamW, gradients clipped by their norm. The same vectors and settings give the same flow.
    Raises ParameterError for vectors that cannot be fitted, SolverError if the fitted flow gives images that are not
    finite. Cost O(epochs n levels depth d width) time.
    Source: Li et al. 2020, doi:10.18653/v1/2020.emnlp-main.733, and its code; Kingma & Dhariwal 2018, arXiv:1807.03039
    """
    settings = settings or FlowSettings()
    singles = _single_rows(x)
    _check_rows(singles, settings)
    rows = torch.from_numpy(singles)
    bits: list[float] = []
    with _one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        flow = Flow(rows.shape[1], settings)
        optimizer = torch.optim.AdamW(
            flow.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay, eps=1e-6
        )
        for _ in range(settings.epochs):
            order = torch.randperm(len(rows))
            for start in range(0, len(rows), settings.batch_size):
                loss = flow.bits_per_dimension(rows[order[start : start + settings.batch_size]]).mean()
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
                nn.utils.clip_grad_norm_(flow.parameters(), settings.clip)
                optimizer.step()
                bits.append(float(loss.detach()))
    fitted = FittedFlow(flow.eval(), tuple(bits))
    if not np.isfinite(fitted.transform(singles)).all():
        raise SolverError(
            "a fitted flow gives images that are not finite",
            where="x",
            expected="vectors that differ from each other in every coordinate",
            got=f"{int((singles == singles[0]).all(axis=0).sum())} of {singles.shape[1]} coordinates are constant",
            remedy="leave out constant coordinates, scale the vectors, or lower `learning_rate`",
        )
    return fitted


def _check_rows(x: Vectors, settings: FlowSettings) -> None:
    least = 2**settings.levels
    if x.ndim != 2 or len(x) < 2 or x.shape[1] % least or not np.isfinite(x).all():
        raise ParameterError(
            "a flow cannot be fitted to these vectors",
            where="x",
            expected=f"2 or more rows of finite numbers; a multiple of {least} numbers, for {settings.levels} levels",
            got=f"shape {x.shape}" if np.isfinite(x).all() else "numbers that are not finite",
        )


def _single_rows(x: Vectors) -> Vectors:
    """A float32 copy, because torch takes no read-only array; what overflows float32 becomes infinite."""
    with np.errstate(over="ignore"):
        return np.array(x, dtype=np.float32)


def _map_rows(function: Callable[[Tensor], Tensor], x: Vectors) -> Vectors:
    rows = torch.from_numpy(_single_rows(x))
    with _one_thread(), torch.no_grad():
        parts = [function(rows[start : start + CHUNK]).numpy() for start in range(0, max(len(rows), 1), CHUNK)]
    return np.concatenate(parts)


class Flow(nn.Module):
    """Glow on vectors: levels of steps; after each level but the last, half of the coordinates leaves."""

    def __init__(self, d: int, settings: FlowSettings) -> None:
        super().__init__()
        widths = [d // 2**level for level in range(settings.levels)]
        self.leaving = [width // 2 for width in widths[:-1]]  # coordinates that leave after each level
        self.levels = nn.ModuleList(
            nn.ModuleList(FlowStep(width, settings.width) for _ in range(settings.depth)) for width in widths
        )
        conditional = settings.split_prior == "conditional"
        self.priors = nn.ModuleList(ZeroLinear(half, 2 * half) for half in self.leaving if conditional)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, d) images of (n, d) rows, and (n,) log densities of the rows. The first call starts the scales."""
        parts: list[Tensor] = []
        log_density = x.new_zeros(len(x))
        for level in range(len(self.levels)):
            for step in self._steps(level):
                x, growth = step(x)
                log_density = log_density + growth
            if level < len(self.leaving):
                x, leaving = x.chunk(2, dim=-1)
                mean, log_scale = self._prior(level, x)
                parts.append((leaving - mean) * torch.exp(-log_scale))
                log_density = log_density - log_scale.sum(dim=-1)
        z = torch.cat([*parts, x], dim=-1)
        return z, log_density - 0.5 * (z.square() + math.log(2 * math.pi)).sum(dim=-1)

    def invert(self, z: Tensor) -> Tensor:
        """(n, d) rows whose images are z."""
        *parts, x = torch.tensor_split(z, list(accumulate(self.leaving)), dim=-1)
        for level in reversed(range(len(self.levels))):
            if level < len(self.leaving):
                mean, log_scale = self._prior(level, x)
                x = torch.cat([x, parts[level] * torch.exp(log_scale) + mean], dim=-1)
            for step in reversed(self._steps(level)):
                x = step.invert(x)
        return x

    def bits_per_dimension(self, x: Tensor) -> Tensor:
        """(n,) minus log2 of the density of each row, divided by d."""
        bits: Tensor = -self(x)[1] / (math.log(2) * x.shape[-1])
        return bits

    def _steps(self, level: int) -> list[FlowStep]:
        steps: Any = self.levels[level]
        return list(steps)

    def _prior(self, level: int, kept: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log scale of the coordinates that leave after a level, given those that are kept."""
        if not self.priors:
            return torch.zeros_like(kept), torch.zeros_like(kept)
        mean, log_scale = self.priors[level](kept).chunk(2, dim=-1)
        return mean, log_scale


class FlowStep(nn.Module):
    """Scale each coordinate, reverse the order of the coordinates, shift the second half by a function of the first."""

    def __init__(self, d: int, width: int) -> None:
        super().__init__()
        self.norm = ActNorm(d)
        self.coupling = Coupling(d, width)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        scaled, growth = self.norm(x)
        first, second = scaled.flip(-1).chunk(2, dim=-1)
        return torch.cat([first, second + self.coupling(first)], dim=-1), growth

    def invert(self, z: Tensor) -> Tensor:
        first, second = z.chunk(2, dim=-1)
        reversed_order = torch.cat([first, second - self.coupling(first)], dim=-1)
        return self.norm.invert(reversed_order.flip(-1))


class ActNorm(nn.Module):
    """(x + shift) * scale of each coordinate. The first batch sets both, so that it gets mean 0 and variance 1."""

    started: Tensor

    def __init__(self, d: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(d))
        self.log_scale = nn.Parameter(torch.zeros(d))
        self.register_buffer("started", torch.tensor(False))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if not self.started:
            with torch.no_grad():
                self.shift.copy_(-x.mean(dim=0))
                self.log_scale.copy_(-torch.log(x.std(dim=0, correction=0) + 1e-6) / FACTOR)
                self.started.fill_(True)
        log_scale = FACTOR * self.log_scale
        return (x + self.shift) * torch.exp(log_scale), log_scale.sum()

    def invert(self, z: Tensor) -> Tensor:
        return z * torch.exp(-FACTOR * self.log_scale) - self.shift


class Coupling(nn.Module):
    """The shift of half of the coordinates: two hidden layers with scales, and a last layer that starts at 0."""

    def __init__(self, d: int, width: int) -> None:
        super().__init__()
        hidden = [nn.Linear(size, width, bias=False) for size in (d // 2, width)]
        for layer in hidden:
            nn.init.normal_(layer.weight, std=0.05)
        self.hidden = nn.ModuleList(hidden)
        self.norms = nn.ModuleList(ActNorm(width) for _ in hidden)
        self.last = ZeroLinear(width, d // 2)

    def forward(self, x: Tensor) -> Tensor:
        for layer, norm in zip(self.hidden, self.norms, strict=True):
            x = torch.relu(norm(layer(x))[0])
        shift: Tensor = self.last(x)
        return shift


class ZeroLinear(nn.Module):
    """A linear map that is 0 before the training, with a learned scale of each output."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.log_scale = nn.Parameter(torch.zeros(outputs))
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        mapped: Tensor = self.linear(x) * torch.exp(FACTOR * self.log_scale)
        return mapped
