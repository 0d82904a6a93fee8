"""Heads behind a transformer: a convolution over the token vectors, then mean or max pooling.

All modules are those of sentence-transformers, so SentenceTransformer(folder) loads a saved model without sentfold and
without trust_remote_code, which it demands for any class of another package.
"""

from __future__ import annotations

from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.base.modules.module import Module
from sentence_transformers.sentence_transformer.modules import CNN, Pooling, WordWeights

from sentfold.training.settings import HeadSettings

ACTIVATIONS: dict[str, type[torch.nn.Module]] = {
    "relu": torch.nn.ReLU,
    "gelu": torch.nn.GELU,
    "tanh": torch.nn.Tanh,
}


def build_encoder(transformer: Transformer, settings: HeadSettings) -> SentenceTransformer:
    """The transformer with its head; vectors of channels * len(kernels) dimensions, or of the transformer's.

    Padding is masked before the convolution, so a vector does not depend on the lengths of the other sentences.
    Source: "Hyperboloid embeddings and hypersphere similarity metrics for Sentence-BERT", table 5
    """
    width = int(transformer.get_embedding_dimension())
    modules: list[Module] = [transformer]
    if settings.channels:
        modules += [_mask(transformer), CNN(width, settings.channels, settings.kernels)]
        width = settings.channels * len(settings.kernels)
    if settings.channels and settings.activation != "none":
        modules.append(_activation(width, settings.activation))
    return SentenceTransformer(modules=[*modules, Pooling(width, settings.pooling)], device="cpu")


def _mask(transformer: Transformer) -> WordWeights:
    """Multiplies the vector of each token by 1 and of padding by 0: the weight of every word is 1 and stays 1."""
    tokenizer: Any = transformer.tokenizer
    tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    return WordWeights(vocab=tokens, word_weights={}).requires_grad_(False)


def _activation(width: int, name: str) -> Dense:
    """The activation alone: the library has it only behind a linear map, which is the identity here and stays so."""
    return Dense(
        width,
        width,
        bias=False,
        activation_function=ACTIVATIONS[name](),
        init_weight=torch.eye(width),
        module_input_name="token_embeddings",
    ).requires_grad_(False)
