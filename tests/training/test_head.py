"""The convolutional head: what it computes, that padding has no part in it, and that a plain folder holds it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from sentfold.encoders.model_safety import refuse_unsafe
from sentfold.training.head import build_encoder
from sentfold.training.losses import build_loss
from sentfold.training.settings import HeadSettings, LossSettings
from tests.tiny_bert import HIDDEN, write_bert

SHORT, LONG = "the dog naps .", "a cat sat on the quiet harbour , bread rises and nine kettles in rows"
TEXTS = [SHORT, LONG, "snow falls", ""]


def make_encoder(folder: Path, **settings: Any) -> Any:
    from sentence_transformers.base.modules import Transformer

    torch.manual_seed(0)
    return build_encoder(Transformer(str(folder)), HeadSettings(**{"channels": 8, **settings}))


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert"), layers=2)


HEADS = [
    {},
    {"pooling": "max"},
    {"activation": "relu"},
    {"activation": "gelu", "pooling": "max", "kernels": [3]},
    {"activation": "tanh"},
]
FUNCTIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "gelu": lambda x: torch.nn.functional.gelu(torch.from_numpy(x)).numpy(),
}


def by_hand(encoder: Any, text: str, settings: HeadSettings) -> np.ndarray:
    """The vector of one sentence: the convolution as a sum over the positions of each kernel."""
    features = encoder.tokenize([text])
    with torch.no_grad():
        tokens = encoder[0](dict(features))["token_embeddings"][0].double().numpy()  # (t, d), without padding
    convolution = next(module for module in encoder if type(module).__name__ == "CNN")
    made = []
    for width, layer in zip(settings.kernels, convolution.convs, strict=True):
        weight, bias = layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
        padded = np.pad(tokens, ((width // 2, width // 2), (0, 0)))
        made.append([bias + sum(weight[:, :, j] @ padded[i + j] for j in range(width)) for i in range(len(tokens))])
    values = FUNCTIONS[settings.activation](np.concatenate(made, axis=1))
    return np.asarray(values.mean(axis=0) if settings.pooling == "mean" else values.max(axis=0))


@pytest.mark.parametrize("head", HEADS)
def test_the_vector_is_the_pooled_convolution_of_the_tokens_of_that_sentence_alone(
    head: dict[str, Any], bert: Path, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    encoder, settings = make_encoder(bert, **head), HeadSettings(**{"channels": 8, **head})
    together = encoder.encode(TEXTS, batch_size=len(TEXTS))  # the short ones are padded
    assert together.shape == (len(TEXTS), 8 * len(settings.kernels))
    for text, vector in zip(TEXTS, together, strict=True):
        # Padding changes the blocks of float32 sums in two layers and the head; numbers are below 10.
        np.testing.assert_allclose(vector, by_hand(encoder, text, settings), atol=2e-5)
    encoder.save_pretrained(str(tmp_path))
    again = SentenceTransformer(str(tmp_path), device="cpu")  # no trust_remote_code
    np.testing.assert_array_equal(again.encode(TEXTS, batch_size=len(TEXTS)), together)
    refuse_unsafe("trained", tmp_path)  # and sentfold's own commands load the folder
    types = [module["type"] for module in json.loads((tmp_path / "modules.json").read_text())]
    assert all(kind.startswith("sentence_transformers.") for kind in types)


def test_without_the_mask_the_padding_would_leak(bert: Path) -> None:
    encoder = make_encoder(bert)
    del encoder[1]  # the mask
    alone, padded = encoder.encode([SHORT])[0], encoder.encode([SHORT, LONG])[0]
    assert np.abs(alone - padded).max() > 1e-3


def test_without_channels_the_head_is_the_pooling_alone(bert: Path) -> None:
    encoder = make_encoder(bert, channels=0, activation="relu")
    assert [type(module).__name__ for module in encoder] == ["Transformer", "Pooling"]
    assert encoder.encode([SHORT]).shape == (1, HIDDEN)


def test_a_step_of_training_changes_the_convolution_and_neither_mask_nor_identity(bert: Path) -> None:
    encoder = make_encoder(bert, activation="relu")
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    loss = build_loss(LossSettings(kind="alignment-uniformity"), encoder)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.5)
    features = [encoder.tokenize(texts) for texts in ([SHORT, LONG], ["a dog", "snow falls"])]
    loss(features, torch.tensor([1.0, 0.0])).backward()
    optimizer.step()
    changed = {name for name, value in encoder.state_dict().items() if not torch.equal(value, before[name])}
    assert any(name.startswith("0.") for name in changed) and any(name.startswith("2.convs") for name in changed)
    assert not [name for name in changed if name.startswith(("1.", "3."))]


@pytest.mark.parametrize("wrong", [{"kernels": [2]}, {"kernels": []}, {"channels": -1}, {"pooling": "sum"}])
def test_a_head_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        HeadSettings(**wrong)
