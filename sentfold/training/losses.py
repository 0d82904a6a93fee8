"""Losses on the embeddings of two sentences and a label, as SentenceTransformerTrainer takes them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import (
    ContrastiveLoss,
    CosineSimilarityLoss,
    SiameseDistanceMetric,
)
from torch import Tensor, nn
from torch.nn.functional import mse_loss, normalize

from sentfold.training.settings import LossSettings


def build_loss(settings: LossSettings, model: SentenceTransformer) -> nn.Module:
    """The loss as a module: forward(features of two columns, labels), and compute_loss_from_embeddings.

    Labels are (m,), from 0 for unlike to 1 for alike. The losses on cosines are those of sentence-transformers.
    Sources: Hadsell et al. 2006, doi:10.1109/CVPR.2006.100; Law et al. 2019 (PMLR 97); Wang & Isola 2020 (PMLR 119)
    """
    if settings.kind == "alignment-uniformity":
        return AlignmentUniformityLoss(model, settings)
    if settings.kind == "lorentz-regression":
        return LorentzRegressionLoss(model, settings.beta)
    if settings.kind == "cosine-regression":
        return CosineSimilarityLoss(model)
    if settings.kind == "contrastive":
        return ContrastiveLoss(model, SiameseDistanceMetric.COSINE_DISTANCE, settings.margin or 0.5)
    return ContrastiveLoss(model, partial(squared_lorentz_distance, beta=settings.beta), settings.margin or 1.0)


def squared_lorentz_distance(x: Tensor, y: Tensor, *, beta: float = 1.0) -> Tensor:
    """Squared Lorentzian distance of the images of (m, d) rows on the hyperboloid; (m,), between 0 and |x - y|^2.

    The image of x is g(x) = (sqrt(|x|^2 + beta), x), beta > 0, and the distance is -2 beta - 2 <g(x), g(y)>. That
    equals |x - y|^2 - (g(x)_0 - g(y)_0)^2, which does not cancel where x and y are close. For unit vectors it is
    2 - 2 cosine, whatever beta is. Source: Law et al. 2019 (PMLR 97), eq. 9
    """
    firsts = [(rows.square().sum(dim=-1) + beta).sqrt() for rows in (x, y)]
    apart = ((x - y) * (x + y)).sum(dim=-1) / (firsts[0] + firsts[1])  # the difference of the first coordinates
    return ((x - y).square().sum(dim=-1) - apart.square()).clamp(min=0)


def uniformity(unit: Tensor, *, t: float) -> Tensor:
    """log of the mean of exp(-t |f_i - f_j|^2) over all pairs i < j of (n, d) unit vectors; 0 for n < 2."""
    n = len(unit)
    if n < 2:
        return unit.sum() * 0
    rows, columns = torch.triu_indices(n, n, offset=1)
    squared = (2 - 2 * (unit @ unit.T)[rows, columns]).clamp(min=0)
    return (-t * squared).logsumexp(dim=0) - math.log(len(rows))


class PairLoss(nn.Module, ABC):
    """A loss on the embeddings of two columns of sentences."""

    def __init__(self, model: SentenceTransformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor) -> Tensor:
        """The loss of a batch, as the trainer asks for it."""
        embeddings = [self.model(features)["sentence_embedding"] for features in sentence_features]
        return self.compute_loss_from_embeddings(embeddings, labels)

    @abstractmethod
    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """The loss of two (m, d) embeddings and (m,) labels from 0 to 1."""


class AlignmentUniformityLoss(PairLoss):
    """alignment_weight * alignment + uniformity_weight * the mean of the uniformity of both columns.

    Alignment is the mean of |f(x) - f(y)|^alpha over the pairs with a label above 0.5 (entailments). All other pairs
    count in the uniformity alone. f is the embedding at unit length. A batch without positives has alignment 0.
    Source: Wang & Isola 2020 (PMLR 119)
    """

    def __init__(self, model: SentenceTransformer, settings: LossSettings) -> None:
        super().__init__(model)
        self.settings = settings

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """See the class. Cost O(m^2 d)."""
        x, y = (normalize(rows, dim=-1) for rows in embeddings)
        positive = labels.view(-1) > 0.5
        distances = torch.linalg.vector_norm((x - y)[positive], dim=-1)
        alignment = distances.pow(self.settings.alpha).sum() / positive.sum().clamp(min=1)
        spread = (uniformity(x, t=self.settings.t) + uniformity(y, t=self.settings.t)) / 2
        loss: Tensor = self.settings.alignment_weight * alignment + self.settings.uniformity_weight * spread
        return loss


class LorentzRegressionLoss(PairLoss):
    """Mean of (1 - D / 2 - y)^2, D the squared Lorentzian distance. For unit vectors, 1 - D / 2 is the cosine."""

    def __init__(self, model: SentenceTransformer, beta: float) -> None:
        super().__init__(model)
        self.beta = beta

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """See the class."""
        similarity = 1 - squared_lorentz_distance(embeddings[0], embeddings[1], beta=self.beta) / 2
        return mse_loss(similarity, labels.view(-1).to(similarity.dtype))
