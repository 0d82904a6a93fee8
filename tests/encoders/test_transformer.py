"""A sentence transformer behind the Protocol of all encoders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.base.params import load_parameters
from sentfold.encoders.base.protocol import Encoder
from sentfold.encoders.model_folder import ModelSource, locate_model
from sentfold.encoders.transformer import TransformerEncoder, encode_sentences, load_model

ROOT = Path(__file__).parents[2]
SENTENCES = ["The dog naps.", "", "Snow falls on the quiet harbour.", "word " * 400]


@pytest.mark.slow
def test_a_transformer_is_an_encoder_like_any_other() -> None:
    place = load_parameters(ModelSource, "encoders.minilm", path=ROOT / "params.yaml")
    encoder: Encoder = TransformerEncoder("minilm", place, batch_size=8)
    fitted = encoder.fit(["whatever it is fitted on"])
    encoded = fitted.encode(SENTENCES)
    model = load_model("minilm", locate_model("minilm", place))
    np.testing.assert_array_equal(encoded.vectors, encode_sentences(model, SENTENCES, batch_size=8).vectors)
    assert dict(encoded.fallbacks) == {"blank": 1, "cut at the model's limit": 1}
    assert not fitted.learned
