"""Sentences by the partition: what a text's vector depends on, and what it is."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from pipeline.encoders.embed import EmbedParameters, EncoderParameters, encode_sentences, load_model, locate_model
from pipeline.errors import ParameterError, SourceError
from pipeline.params import load_parameters
from pipeline.partitions.text_encoders import CHUNK, TextEncoder, find_text_encoder
from pipeline.words.vector_parameters import WordVectorParameters
from tests.partitions.corpus import sentences


def test_a_token_mean_is_the_mean_of_the_tokens_at_unit_length() -> None:
    spec = find_spec("wordllama")
    assert spec is not None and spec.submodule_search_locations
    folder = Path(next(iter(spec.submodule_search_locations)))
    (table,) = load_file(folder / "weights/l2_supercat_256.safetensors").values()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers/l2_supercat_tokenizer_config.json"))
    tokenizer.no_truncation()
    texts = sentences()[:50]
    rows = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    means = np.array([table[ids].astype(np.float64).mean(axis=0) for ids in rows])
    wanted = means / np.linalg.norm(means, axis=1, keepdims=True)
    vectors, counted = find_text_encoder("wordllama").encode(texts)
    assert (vectors.dtype, vectors.shape, counted) == (np.float32, (50, 256), {"blank": 0})
    # Two ways of adding some tens of float64 numbers, then rounding to float32.
    np.testing.assert_allclose(vectors, wanted, rtol=0, atol=2**-24)


def test_a_text_has_one_vector_whoever_stands_beside_it_and_a_blank_one_is_zero() -> None:
    encoder, texts = find_text_encoder("wordllama"), [*sentences()[: CHUNK + 30], "", sentences()[0]]
    together, counted = encoder.encode(texts)
    assert counted["blank"] == 1 and not together[-2].any()
    for rows in (slice(0, 7), slice(CHUNK - 3, None), slice(500, 501)):
        np.testing.assert_array_equal(encoder.encode(texts[rows])[0], together[rows])
    np.testing.assert_array_equal(together[-1], together[0])
    assert encoder.encode([])[0].shape == (0, 256)


@pytest.mark.slow
def test_a_transformer_is_run_by_the_batches_of_the_stage_embed() -> None:
    texts = sentences()[:40]
    place = load_parameters(EncoderParameters, "encoders.minilm")
    size = load_parameters(EmbedParameters, "embed").batch_size
    wanted = encode_sentences(load_model("minilm", locate_model("minilm", place)), texts, batch_size=size)
    vectors, counted = find_text_encoder("minilm").encode(texts)
    np.testing.assert_array_equal(vectors, wanted.vectors)
    assert counted == {"batches": wanted.batches, "blank": 0, "truncated": 0}


def test_an_encoder_is_recorded_with_all_that_decides_its_vectors() -> None:
    transformer, tokens = find_text_encoder("minilm").record(), find_text_encoder("wordllama").record()
    assert {"model.safetensors", "tokenizer.json"} <= set(transformer["sha256"]) and transformer["batch_size"] == 64
    assert len(tokens["sha256"]) == 2 and "batch_size" not in tokens


def test_an_unknown_encoder_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ParameterError, match=r"(?s)minilm.*wordllama.*no-such"):
        find_text_encoder("no-such")
    with pytest.raises(ParameterError, match="no sentence encoder 'glove'"):
        find_text_encoder("glove")


def test_token_vectors_with_other_bytes_are_refused() -> None:
    block = load_parameters(WordVectorParameters, "word_vectors.wordllama")
    other = block.model_copy(update={"sha256": dict.fromkeys(block.sha256, "0" * 64)})
    with pytest.raises(SourceError, match="pinned token vectors"):
        TextEncoder("wordllama", other, 64).encode(["a"])
    absent = block.model_copy(update={"package": "no_such_package"})
    with pytest.raises(SourceError, match="no such file"):
        TextEncoder("wordllama", absent, 64).encode(["a"])
