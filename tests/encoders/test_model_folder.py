"""Errors of model folders: a hub that does not answer, which a stage may try again, and folders of an attacker."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sentfold.encoders.model_folder import ModelSource, check_digests, locate_model, model_digests, pin_lines
from sentfold.encoders.model_safety import refuse_unsafe
from sentfold.encoders.transformer import TransformerEncoder, encode_sentences, load_model, most_positions
from sentfold.errors import EncoderError, ParameterError
from sentfold.poolings.hidden_states import load_layers, pool_texts
from sentfold.poolings.pooling import find_pooling
from tests.corpora.hub_server import Page, PageServer, serving
from tests.tiny_bert import make_tokenizer, write_bert

PROGRAM = """
from sentfold.encoders.model_folder import ModelSource, locate_model
from sentfold.errors import SentfoldError
try:
    locate_model("mini", ModelSource(hub="a/b", revision="0" * 40))
except SentfoldError as error:
    print(error.what, error.exit_code)
"""
ASKED_FIRST = "/api/models/a/b/tree/" + "0" * 40


def fetch(endpoint: str, home: Path, program: str = PROGRAM) -> str:
    """The error, and the exit code of a stage that ends with it."""
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}
    for name in ("HF_HUB_OFFLINE", "HF_HUB_CACHE"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    return done.stdout.strip() or done.stderr


@pytest.mark.slow  # the hub's client waits between its own attempts
def test_a_hub_that_nobody_runs_is_worth_another_attempt(tmp_path: Path) -> None:
    assert fetch("http://127.0.0.1:9", tmp_path) == "encoder 'mini' cannot be fetched 75"


@pytest.mark.parametrize(("status", "code"), [pytest.param(503, 75, marks=pytest.mark.slow), (404, 2)])
def test_an_answer_of_the_hub_is_worth_another_attempt_only_if_it_says_later(
    status: int, code: int, tmp_path: Path
) -> None:
    server = PageServer()
    server.pages[ASKED_FIRST] = Page(b"{}", status=status)
    with serving(server):
        assert fetch(server.url, tmp_path) == f"encoder 'mini' cannot be fetched {code}"


def test_a_list_of_modules_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(EncoderError, match="encoder 'mini' has no list of modules") as error:
        refuse_unsafe("mini", tmp_path)
    assert error.value.where == "modules.json"


def test_an_answer_of_the_hub_that_is_no_commit_is_refused(tmp_path: Path) -> None:
    server = PageServer()
    server.pages["/api/models/a/b"] = Page(b'{"id": "a/b", "sha": "main\\n  sha256: {}"}')
    program = PROGRAM.replace("locate_model(", "print(pin_lines(").replace('revision="0" * 40))', ")))")
    with serving(server):
        told = fetch(
            server.url, tmp_path, program.replace("import ModelSource, locate", "import pin_lines, ModelSource, locate")
        )
    assert told == "the hub does not give the newest commit of encoder 'mini' 2"


# --- folders of an attacker -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small BERT with a mean pooling and a dense layer, as sentence-transformers saves it."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    bert = write_bert(tmp_path_factory.mktemp("bert"))
    transformer = Transformer(str(bert))
    width = transformer.get_embedding_dimension()
    folder = tmp_path_factory.mktemp("sound")
    SentenceTransformer(modules=[transformer, Pooling(width), Dense(width, 8)], device="cpu").save(str(folder))
    return folder


@pytest.fixture
def spoilt(sound: Path, tmp_path: Path) -> Path:
    """A copy of the sound folder, to be spoilt."""
    return Path(shutil.copytree(sound, tmp_path / "spoilt"))


def edit(path: Path, **values: Any) -> None:
    """Set values of a JSON object."""
    path.write_text(json.dumps({**(json.loads(path.read_text()) if path.is_file() else {}), **values}))


def fit(folder: Path) -> None:
    """Load a folder as TransformerEncoder does, pinned as it is now."""
    TransformerEncoder("mine", ModelSource(folder=str(folder), sha256=model_digests(folder))).fit()


def keep_weights(folder: Path, wanted: Callable[[str], bool]) -> None:
    """Write the weights again, without those whose names are not wanted."""
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    save_file({name: value for name, value in load_file(path).items() if wanted(name)}, path, {"format": "pt"})


class Bomb:
    """Leaves a mark when its pickle is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


def hide_pickle(folder: Path, mark: Path) -> None:
    """Replace the weights by an index that lists a pickle under a name that no list of suffixes has."""
    import torch
    from safetensors.torch import load_file

    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save({"x": Bomb(mark)}, folder / "evil.model")
    edit(
        folder / "model.safetensors.index.json",
        metadata={"total_size": 1},
        weight_map=dict.fromkeys(weights, "evil.model"),
    )
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({key: value for key, value in config.items() if key != "dtype"}))


def test_a_pickle_that_an_index_lists_never_runs(spoilt: Path, tmp_path: Path) -> None:
    hide_pickle(spoilt, tmp_path / "ran")
    edit(spoilt / "sentence_bert_config.json", model_args={"weights_only": False, "dtype": "auto"})
    with pytest.raises(EncoderError, match="weights in a pickle") as caught:
        fit(spoilt)
    assert caught.value.where == "model.safetensors.index.json"
    (spoilt / "modules.json").unlink()
    with pytest.raises(EncoderError, match="weights in a pickle"):
        load_layers("mine", spoilt, max_length=8)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["../other.safetensors", "/other.safetensors", "sub/other.safetensors", 7, None])
def test_an_index_names_files_of_its_own_folder(spoilt: Path, name: Any) -> None:
    edit(spoilt / "model.safetensors.index.json", weight_map={"x": name})
    with pytest.raises(EncoderError, match="weights in a pickle"):
        fit(spoilt)


@pytest.mark.parametrize(
    "values",
    [
        {"model_args": {"weights_only": False}},
        {"model_kwargs": {"attn_implementation": "someone/kernel"}},
        {"config_kwargs": {"name_or_path": "elsewhere"}},
        {"processor_kwargs": {"tokenizer_file": "/elsewhere.json"}},
        {"tokenizer_args": [1]},
        {"tokenizer_name_or_path": "/elsewhere"},
        {"trust_remote_code": True},
        {"processing_kwargs": {"text": {"max_length": 4, "truncation": True}}},
        {"modality_config": {"message": {"method": "forward", "method_output_name": "last_hidden_state"}}},
    ],
)
def test_an_argument_for_the_library_is_refused_unless_it_is_known_to_be_safe(
    spoilt: Path, values: dict[str, Any]
) -> None:
    edit(spoilt / "sentence_bert_config.json", **values)
    with pytest.raises(EncoderError, match="not known to be safe") as caught:
        fit(spoilt)
    assert caught.value.where == f"sentence_bert_config.json, {next(iter(values))}"


def test_the_arguments_that_sound_models_have_are_taken(spoilt: Path) -> None:
    arguments = {"dtype": "float32", "attn_implementation": "eager", "add_pooling_layer": False}
    edit(spoilt / "sentence_bert_config.json", model_args=arguments)
    fit(spoilt)


def test_weights_that_lack_a_layer_are_refused(spoilt: Path) -> None:
    keep_weights(spoilt, lambda name: "layer.1." not in name)
    with pytest.raises(EncoderError, match="not whole") as caught:
        fit(spoilt)
    assert caught.value.got.startswith("no weights for encoder.layer.1.")
    with pytest.raises(EncoderError, match="cannot be read"):
        load_layers("mine", spoilt, max_length=8)


def test_weights_without_a_pooler_are_whole(spoilt: Path) -> None:
    keep_weights(spoilt, lambda name: "pooler" not in name)
    fit(spoilt)
    assert not load_layers("mine", spoilt, max_length=8).has_pooler


def test_a_tokenizer_without_words_is_refused(spoilt: Path) -> None:
    for name in ("tokenizer.json", "vocab.txt"):
        (spoilt / name).unlink(missing_ok=True)
    with pytest.raises(EncoderError, match="not whole") as caught:
        fit(spoilt)
    assert caught.value.got == "a tokenizer of special tokens alone"
    with pytest.raises(EncoderError, match="cannot be read"):
        load_layers("mine", spoilt, max_length=8)


def test_a_link_to_a_folder_is_refused_and_links_to_files_are_not(spoilt: Path, tmp_path: Path) -> None:
    shutil.move(spoilt / "2_Dense", tmp_path / "elsewhere")
    (spoilt / "2_Dense").mkdir()
    for path in (tmp_path / "elsewhere").iterdir():
        (spoilt / "2_Dense" / path.name).symlink_to(path)
    fit(spoilt)  # as the hub's cache has it
    shutil.rmtree(spoilt / "2_Dense")
    (spoilt / "2_Dense").symlink_to(tmp_path / "elsewhere")
    for load in (fit, lambda folder: load_model("mine", folder)):
        with pytest.raises(EncoderError, match="something else than files") as caught:
            load(spoilt)
        assert (caught.value.where, caught.value.got) == ("2_Dense", "a link to a folder")


@pytest.mark.parametrize("decoy", ["other.safetensors", "model.safetensors.index.json"])
def test_a_pickle_beside_a_decoy_is_refused(spoilt: Path, decoy: str) -> None:
    import torch
    from safetensors.torch import load_file

    weights = spoilt / "2_Dense/model.safetensors"
    torch.save(load_file(weights), spoilt / "2_Dense/pytorch_model.bin")
    if decoy.endswith(".json"):
        edit(weights.with_name(decoy), weight_map={"x": "other.safetensors"})
    weights.rename(weights.with_name("other.safetensors"))
    with pytest.raises(EncoderError, match="weights in a pickle") as caught:
        fit(spoilt)
    assert caught.value.where == "2_Dense/pytorch_model.bin"


@pytest.mark.parametrize("place", ["../bert", "/bert", 7, None])
def test_a_module_outside_of_the_folder_is_refused(spoilt: Path, place: Any) -> None:
    modules = json.loads((spoilt / "modules.json").read_text())
    modules[0]["path"] = place
    (spoilt / "modules.json").write_text(json.dumps(modules))
    for load in (fit, lambda folder: load_layers("mine", folder, max_length=8)):
        with pytest.raises(EncoderError, match="a module outside of its folder"):
            load(spoilt)


@pytest.mark.parametrize("name", ["modules.json", "1_Pooling/config.json", "README.md", "tokenizer.json"])
def test_a_pipe_in_a_model_folder_is_refused_and_not_waited_for(spoilt: Path, name: str) -> None:
    pinned = model_digests(spoilt)
    (spoilt / name).unlink()
    os.mkfifo(spoilt / name)
    for load in (
        lambda: refuse_unsafe("mine", spoilt),
        lambda: check_digests("mine", spoilt, pinned),
        lambda: locate_model("mine", ModelSource(folder=str(spoilt), sha256=pinned)),
        lambda: load_layers("mine", spoilt, max_length=8),
    ):
        with pytest.raises(EncoderError):
            load()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("config.json", {"num_hidden_layers": 10**8}),
        ("config.json", {"text_config": {"encoder_layers": 10**8}}),
        ("2_Dense/config.json", {"out_features": 25_000_000}),
        ("2_Dense/config.json", {"in_features": 40_000, "out_features": 40_000}),
        ("2_Dense/lstm_config.json", {"num_layers": 10**8}),
        ("2_Dense/lstm_config.json", {"hidden_dim": 40_000, "word_embedding_dimension": 1}),
        ("2_Dense/cnn_config.json", {"in_word_embedding_dimension": 1, "out_channels": 1, "kernel_sizes": [10**9]}),
        ("config.json", {"num_labels": 10**9}),
        ("config.json", {"intermediate_size": 4_000_000}),
        ("config.json", {"max_position_embeddings": 30_000_000}),
        ("config.json", {"vocab_size": 10_000_000}),
        ("config.json", {"model_type": "gpt_neo", "attention_types": [[["global", "local"], 10**8]]}),
        ("config.json", {"model_type": "resnet", "depths": [64] * 240, "hidden_sizes": [4] * 240}),
    ],
)
def test_a_configuration_that_asks_for_more_than_the_weights_are_is_refused_at_once(
    spoilt: Path, name: str, values: dict[str, Any]
) -> None:
    edit(spoilt / name, **values)
    with pytest.raises(EncoderError, match="asks for more than its weights") as caught:
        fit(spoilt)
    assert caught.value.where.startswith(name)


def test_thousands_of_modules_are_refused_at_once(spoilt: Path) -> None:
    modules = json.loads((spoilt / "modules.json").read_text())
    (spoilt / "modules.json").write_text(json.dumps(modules + modules[1:] * 100_000))
    with pytest.raises(EncoderError, match="no list of modules"):
        fit(spoilt)


@pytest.mark.parametrize("limit", [-5, 0, 1, 8.5, "8"])
def test_a_limit_that_is_none_is_refused(spoilt: Path, limit: Any) -> None:
    edit(spoilt / "sentence_bert_config.json", max_seq_length=limit)
    with pytest.raises(EncoderError, match="not whole") as caught:
        fit(spoilt)
    assert caught.value.expected == "a max_seq_length of 3 or more tokens"


@pytest.mark.parametrize("limit", [41, 10**12])
def test_a_limit_above_the_positions_becomes_their_number(spoilt: Path, limit: int) -> None:
    """sentence-transformers itself writes 514 for a RoBERTa of 512 positions, which fails on longer texts."""
    edit(spoilt / "sentence_bert_config.json", max_seq_length=40)
    texts = ["a cat sat", "the dog ran on " * 20]
    wanted = encode_sentences(load_model("mine", spoilt), texts, batch_size=2)
    edit(spoilt / "sentence_bert_config.json", max_seq_length=limit)
    got = encode_sentences(load_model("mine", spoilt), texts, batch_size=2)
    np.testing.assert_array_equal(got.vectors, wanted.vectors)
    assert got.truncated == 1


@pytest.mark.parametrize(
    "name", ["modules.json", "config.json", "sentence_bert_config.json", "tokenizer_config.json", "2_Dense/config.json"]
)
def test_brackets_without_end_in_a_file_of_a_model_are_an_error(spoilt: Path, name: str) -> None:
    (spoilt / name).write_text("[" * 100_000)
    with pytest.raises(EncoderError) as caught:
        fit(spoilt)
    assert caught.value.where == name


NESTED = "sentence_transformers.cross_encoder.fit_mixin.SentenceTransformer"


def test_a_module_that_loads_the_folder_again_with_trust_is_refused_and_calls_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library imports any name that one of its own modules has; a SentenceTransformer takes its trust from JSON."""
    import torch
    from safetensors.torch import save_file

    folder = tmp_path / "model"
    for name in ("dense", "again"):
        (folder / name).mkdir(parents=True)
    save_file({"linear.weight": torch.eye(4)}, folder / "dense/model.safetensors")
    edit(
        folder / "dense/config.json",
        in_features=4,
        out_features=4,
        bias=False,
        activation_function="tempfile.mkdtemp",
    )
    edit(folder / "again/sentence_bert_config.json", trust_remote_code=True)
    dense = {"idx": 0, "name": "0", "path": "dense", "type": "sentence_transformers.base.modules.dense.Dense"}
    again = {"idx": 1, "name": "1", "path": "again", "type": NESTED}
    (folder / "modules.json").write_text(json.dumps([dense, again]))
    (tmp_path / "marks").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "marks"))
    with pytest.raises(EncoderError):
        fit(folder)
    assert not list((tmp_path / "marks").iterdir())


@pytest.mark.parametrize(
    "name", [NESTED, "sentence_transformers.base.modules.router.Router", "sentence_transformers.x"]
)
def test_a_module_of_the_library_that_is_not_known_to_be_safe_is_refused(spoilt: Path, name: str) -> None:
    modules = json.loads((spoilt / "modules.json").read_text())
    modules[2]["type"] = name
    (spoilt / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(EncoderError, match="not known to be safe") as caught:
        fit(spoilt)
    assert (caught.value.where, caught.value.got) == ("modules.json", name)


def test_every_file_that_is_not_known_to_be_idle_has_a_pin(spoilt: Path) -> None:
    pinned = model_digests(spoilt)
    for name in ("README.md", ".gitattributes", "LICENSE", "mine.py", "picture.png", "model.onnx"):
        (spoilt / name).write_text("idle")
    assert model_digests(spoilt) == pinned
    for name in ("bpe.codes", "chat_template.jinja", "vocab.dat", "1_Pooling/x", "LICENSE.safetensors"):
        (spoilt / name).write_text("decides")
        with pytest.raises(EncoderError, match="not the pinned model") as caught:
            check_digests("mine", spoilt, pinned)
        assert caught.value.where == name
        (spoilt / name).unlink()


@pytest.mark.parametrize(
    "values",
    [
        {"vocab": "/x/vocab.dat"},
        {"vocab_file": "x"},
        {"vocab_file": ["x"]},
        {"merges": "x"},
        {"source_spm": "x"},
        {"init_inputs": ["x"]},
        {"fast_tokenizer_files": ["../decoy/tokenizer.4.0.0.json"]},
        {"fast_tokenizer_files": ["my-tokenizer.4.0.0.json"]},
        {"fast_tokenizer_files": {"../tokenizer.4.0.0.json": 1}},
    ],
)
def test_a_tokenizer_that_names_a_file_is_refused(spoilt: Path, values: dict[str, Any]) -> None:
    edit(spoilt / "tokenizer_config.json", **values)
    with pytest.raises(EncoderError, match="a tokenizer or an adapter") as caught:
        fit(spoilt)
    assert (caught.value.where, caught.value.got) == ("tokenizer_config.json", next(iter(values)))


@pytest.mark.parametrize(
    "replacement",
    [
        {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"},
        {"type": "Replace", "pattern": {"Regex": "(?=.)"}, "content": "a"},
    ],
)
@pytest.mark.parametrize("part", ["normalizer", "pre_tokenizer"])
def test_a_tokenizer_that_makes_a_text_a_million_times_longer_is_refused(
    spoilt: Path, part: str, replacement: dict[str, Any]
) -> None:
    edit(spoilt / "tokenizer.json", **{part: {"type": "Sequence", f"{part}s": [replacement] * 20}})
    with pytest.raises(EncoderError, match="a tokenizer or an adapter") as caught:
        fit(spoilt)
    assert (caught.value.where, caught.value.got) == ("tokenizer.json", "a text of 1048576 times the length")


def charsmap(text: bytes) -> dict[str, Any]:
    """A map of characters without a trie, whose one text is given."""
    raw = (4).to_bytes(4, "little") + bytes(4) + text + b"\0"
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(raw).decode()}


def template(*, special: int = 1, texts: int = 1) -> dict[str, Any]:
    """A template of special tokens, and of the text as often as given."""
    mark, text = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    ids = {"id": "[CLS]", "ids": [2] * special, "tokens": ["[CLS]"] * special}
    pair = [text, {"Sequence": {"id": "B", "type_id": 1}}]
    single = [mark] * special + [text] * texts
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": {"[CLS]": ids}}


@pytest.mark.parametrize(
    ("part", "step"),
    [
        ("normalizer", charsmap(b"a" * 20_000)),
        ("normalizer", {"type": "Precompiled", "precompiled_charsmap": "a"}),
        ("normalizer", {"type": "Prepend", "prepend": "a" * 20_000}),
        ("post_processor", template(texts=2_000)),
    ],
)
def test_a_step_that_makes_a_text_thousands_of_times_longer_is_refused(
    spoilt: Path, part: str, step: dict[str, Any]
) -> None:
    edit(spoilt / "tokenizer.json", **{part: step})
    with pytest.raises(EncoderError, match="a tokenizer or an adapter") as caught:
        refuse_unsafe("mine", spoilt)
    assert caught.value.where == "tokenizer.json"


def test_the_steps_and_the_files_that_sound_tokenizers_have_are_taken(spoilt: Path) -> None:
    edit(spoilt / "tokenizer.json", normalizer=charsmap("\N{GREEK SMALL LETTER ALPHA}".encode() * 18))
    edit(spoilt / "tokenizer_config.json", fast_tokenizer_files=["tokenizer.json", "tokenizer.4.0.0.json"])
    refuse_unsafe("mine", spoilt)


def test_a_tokenizer_that_adds_thousands_of_tokens_to_each_text_is_refused(spoilt: Path) -> None:
    edit(spoilt / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    edit(spoilt / "tokenizer.json", post_processor=template(special=100))
    with pytest.raises(EncoderError, match="not whole") as caught:
        fit(spoilt)
    assert caught.value.got == "a tokenizer that adds 10000 special tokens to a text"
    with pytest.raises(EncoderError, match="cannot be read"):
        load_layers("mine", spoilt, max_length=8)


def test_a_prompt_is_counted_and_is_not_left_out_in_silence(spoilt: Path) -> None:
    edit(spoilt / "config_sentence_transformers.json", prompts={"q": "a dog " * 30}, default_prompt_name="q")
    assert encode_sentences(load_model("mine", spoilt), ["a cat", "snow"], batch_size=2).truncated == 2
    with pytest.raises(EncoderError, match="puts a prompt before all texts"):
        load_layers("mine", spoilt, max_length=8)


@pytest.mark.parametrize("values", [{"model_type": "CrossEncoder"}, {"prompts": {"q": [1]}}, {"prompts": 1}])
def test_a_model_of_another_kind_is_refused(spoilt: Path, values: dict[str, Any]) -> None:
    edit(spoilt / "config_sentence_transformers.json", **values)
    with pytest.raises(EncoderError, match="is no sentence transformer"):
        fit(spoilt)


def test_two_modules_of_one_name_are_refused(spoilt: Path) -> None:
    modules = json.loads((spoilt / "modules.json").read_text())
    modules[2]["name"] = modules[1]["name"]
    (spoilt / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(EncoderError, match="two modules of one name"):
        fit(spoilt)


def test_an_adapter_is_refused(spoilt: Path) -> None:
    edit(spoilt / "adapter_config.json", base_model_name_or_path="/elsewhere", peft_type="LORA")
    with pytest.raises(EncoderError, match="a tokenizer or an adapter"):
        fit(spoilt)


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation", "experts_implementation"])
@pytest.mark.parametrize("value", ["someone/kernel", {"text_config": "someone/kernel"}])
def test_a_kernel_of_the_hub_is_refused(spoilt: Path, key: str, value: Any) -> None:
    edit(spoilt / "config.json", text_config={key: value})
    with pytest.raises(EncoderError, match="code of another place") as caught:
        fit(spoilt)
    assert caught.value.where == f"config.json, {key}"


def test_random_weights_of_a_pooler_whose_output_is_the_vector_are_refused(spoilt: Path) -> None:
    keep_weights(spoilt, lambda name: "pooler" not in name)
    modules = json.loads((spoilt / "modules.json").read_text())
    (spoilt / "modules.json").write_text(json.dumps(modules[:1]))
    # Of an object the library takes the keys.
    for output in ("pooler_output", {"pooler_output": "last_hidden_state"}, ["last_hidden_state"]):
        ways = {"text": {"method": "forward", "method_output_name": output}}
        edit(spoilt / "sentence_bert_config.json", modality_config=ways, module_output_name="sentence_embedding")
        with pytest.raises(EncoderError, match=r"not whole|cannot be loaded") as caught:
            fit(spoilt)
        if caught.match("not whole"):
            assert caught.value.got == "no weights for pooler.dense.weight"


def test_a_word_that_the_model_has_no_vector_for_is_refused(spoilt: Path) -> None:
    tokenizer = json.loads((spoilt / "tokenizer.json").read_text())
    rows = json.loads((spoilt / "config.json").read_text())["vocab_size"]
    tokenizer["model"]["vocab"]["zzz"] = rows
    (spoilt / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(EncoderError, match="not whole") as caught:
        fit(spoilt)
    assert caught.value.got == f"a word with the number {rows}, and vectors for {rows} words"
    with pytest.raises(EncoderError, match="cannot be read"):
        load_layers("mine", spoilt, max_length=8)


def test_a_token_for_padding_without_a_vector_is_refused(spoilt: Path) -> None:
    """As after add_special_tokens without resize_token_embeddings."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(spoilt)
    tokenizer.add_special_tokens({"pad_token": "<pad>"})
    tokenizer.save_pretrained(spoilt)
    with pytest.raises(EncoderError, match="a word with the number"):
        fit(spoilt)


def test_a_token_for_pictures_without_a_vector_is_refused_in_a_text_alone(spoilt: Path) -> None:
    """Gemma 3 adds a token to its vocabulary, behind the last word that has a vector."""
    sound = load_model("mine", spoilt)
    poolings = {"mean": find_pooling("mean")}
    pooled = pool_texts(load_layers("mine", spoilt, max_length=8), ["a cat sat"], poolings)
    tokenizer = json.loads((spoilt / "tokenizer.json").read_text())
    rows = json.loads((spoilt / "config.json").read_text())["vocab_size"]
    tokenizer["added_tokens"].append({**tokenizer["added_tokens"][0], "id": rows, "content": "<picture>"})
    (spoilt / "tokenizer.json").write_text(json.dumps(tokenizer))
    model, layers = load_model("mine", spoilt), load_layers("mine", spoilt, max_length=8)
    np.testing.assert_array_equal(
        encode_sentences(model, ["a cat sat"], batch_size=2).vectors,
        encode_sentences(sound, ["a cat sat"], batch_size=2).vectors,
    )
    np.testing.assert_array_equal(pool_texts(layers, ["a cat sat"], poolings)["mean"].vectors, pooled["mean"].vectors)
    for encode in (
        partial(encode_sentences, model, batch_size=2),
        partial(pool_texts, layers, poolings=poolings),
    ):
        with pytest.raises(EncoderError, match="a token that the model has no vector for") as caught:
            encode(["a cat sat", "a cat <picture> sat"])
        assert (caught.value.where[:6], caught.value.got) == ("text 2", f"'<picture>', with the number {rows}")


SMALL: dict[str, Any] = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
SMALL |= {"intermediate_size": 16, "max_position_embeddings": 20}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Bert", SMALL), ("Roberta", SMALL), ("XLMRoberta", SMALL), ("MPNet", SMALL), ("NomicBert", SMALL),
        ("DebertaV2", SMALL | {"position_biased_input": False, "relative_attention": True, "pos_att_type": ["p2c"]}),
        ("OPT", SMALL | {"ffn_dim": 16, "word_embed_proj_dim": 16}),
        ("GPT2", {"vocab_size": 60, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 20}),
    ],
)  # fmt: skip
def test_a_model_reads_as_many_tokens_as_it_has_positions_and_no_more(name: str, options: dict[str, Any]) -> None:
    """max_position_embeddings, which config.json has, is 2 more for RoBERTa, and no limit for NomicBert."""
    import torch
    import transformers

    config = getattr(transformers, f"{name}Config")(**options)
    model = getattr(transformers, f"{name}Model")(config).eval()

    def reads(tokens: int) -> bool:
        try:
            model(input_ids=torch.full((1, tokens), 5), attention_mask=torch.ones(1, tokens, dtype=torch.long))
        except (IndexError, RuntimeError):
            return False
        return True

    most = most_positions(model)
    assert [n for n in range(3, 50) if reads(n)] == [n for n in range(3, 50) if n <= most]


def test_a_table_for_sounds_is_no_limit_of_texts() -> None:
    """Qwen2-Audio learns a vector for each of 1,500 places of a sound, and computes those of texts."""
    import torch
    from transformers import PreTrainedModel, Qwen2AudioConfig, Qwen2AudioModel

    text = SMALL | {"model_type": "qwen2", "num_key_value_heads": 2}
    sound = {"d_model": 16, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 16}
    sound |= {"model_type": "qwen2_audio_encoder", "num_mel_bins": 4, "max_source_positions": 30}
    model = Qwen2AudioModel(Qwen2AudioConfig(audio_config=sound, text_config=text, audio_token_index=1)).eval()
    model(input_ids=torch.full((1, 40), 5), attention_mask=torch.ones(1, 40, dtype=torch.long))
    assert {most_positions(part) for part in model.modules() if isinstance(part, PreTrainedModel)} == {np.inf}


def test_layers_are_read_up_to_the_positions_that_a_model_states_where_its_table_has_more(tmp_path: Path) -> None:
    """Nystromformer leaves out the first two rows of its table, and does not say so."""
    from transformers import NystromformerConfig, NystromformerModel

    config = NystromformerConfig(**SMALL, segment_means_seq_len=20, num_landmarks=2)
    NystromformerModel(config).save_pretrained(tmp_path)
    make_tokenizer(tmp_path).save_pretrained(tmp_path)
    assert load_layers("mine", tmp_path, max_length=20).max_length == 20
    with pytest.raises(ParameterError, match="3 to 20 tokens"):
        load_layers("mine", tmp_path, max_length=22)


def test_what_other_libraries_read_in_a_model_s_folder_is_no_part_of_the_model(spoilt: Path) -> None:
    """Models of the hub have folders for OpenVINO, ONNX and Core ML, with configurations and weights."""
    before = encode_sentences(load_model("mine", spoilt), ["a cat sat"], batch_size=1).vectors
    for place in ("openvino/openvino_model.bin", "coreml/a.mlpackage/Data/weights/weight.bin", "onnx/model.onnx"):
        (spoilt / place).parent.mkdir(parents=True)
        (spoilt / place).write_bytes(b"x")
        shutil.copy(spoilt / "config.json", (spoilt / place).with_name("config.json"))
    fit(spoilt)
    after = encode_sentences(load_model("mine", spoilt), ["a cat sat"], batch_size=1).vectors
    np.testing.assert_array_equal(after, before)


def test_weights_that_are_no_numbers_give_no_vectors(spoilt: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(spoilt / "model.safetensors")
    weights["embeddings.LayerNorm.weight"] *= float("nan")
    save_file(weights, spoilt / "model.safetensors", {"format": "pt"})
    model = load_model("mine", spoilt)
    with pytest.raises(EncoderError, match="not finite"):
        encode_sentences(model, ["a cat"], batch_size=1)


def test_lower_case_outside_of_the_tokenizer_is_not_left_out_in_silence(spoilt: Path) -> None:
    edit(spoilt / "sentence_bert_config.json", do_lower_case=True)
    fit(spoilt)
    with pytest.raises(EncoderError, match="lower case outside of its tokenizer"):
        load_layers("mine", spoilt, max_length=8)


def test_a_limit_of_the_tokenizer_that_is_no_number_is_refused(spoilt: Path) -> None:
    edit(spoilt / "tokenizer_config.json", model_max_length="x")
    with pytest.raises(EncoderError):
        load_layers("mine", spoilt, max_length=8)


def test_a_model_of_word_vectors_alone_is_refused(spoilt: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    module = StaticEmbedding(Tokenizer.from_file(str(spoilt / "tokenizer.json")), embedding_dim=4)
    SentenceTransformer(modules=[module], device="cpu").save(str(tmp_path / "static"))
    with pytest.raises(EncoderError, match="no tokenizer of transformers"):
        fit(tmp_path / "static")


@pytest.mark.parametrize("name", ["a.json: 0\n    folder: evil\n  x.json", "- a.json", "a: b.json", "#a.json"])
def test_a_name_that_could_be_other_yaml_is_not_printed_as_a_pin(spoilt: Path, name: str) -> None:
    (spoilt / name).write_text("{}")
    with pytest.raises(EncoderError, match="cannot be pinned") as caught:
        pin_lines("mine", ModelSource(folder=str(spoilt)))
    assert caught.value.got == repr(name)


LIST = """
import os, sys
from pathlib import Path
from sentfold.encoders.model_folder import model_digests
from sentfold.errors import EncoderError, ParameterError
if os.getuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
try:
    print(model_digests(Path(sys.argv[1])))
except EncoderError as error:
    print(error.what)
"""


def test_a_folder_that_cannot_be_listed_is_refused(spoilt: Path) -> None:
    """Its files could be opened by their names, and would have no pins."""
    for folder in (spoilt, *spoilt.parents):
        if folder.name.startswith(("spoilt", "test_", "pytest-")):
            folder.chmod(0o755)
    (spoilt / "1_Pooling").chmod(0o311)
    try:
        done = subprocess.run(
            [sys.executable, "-c", LIST, str(spoilt)], capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        (spoilt / "1_Pooling").chmod(0o755)
    assert done.stdout.strip() == "a folder of a model cannot be listed", done.stderr


def test_encode_names_prompts_that_are_not_used_and_obeys_no_escape_code(
    spoilt: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sentfold.cli.encode import command

    edit(spoilt / "config_sentence_transformers.json", prompts={"query\x1b[2K": "query: "}, default_prompt_name=None)
    (tmp_path / "texts.txt").write_text("a cat\na dog\n")
    command(str(spoilt), tmp_path / "texts.txt", tmp_path / "v.parquet")
    printed = capsys.readouterr()
    assert "has prompts (query\\x1b[2K), which are not used" in printed.err
    assert "\x1b" not in printed.out + printed.err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["theirs", f"theirs@{40 * 'a'}"])  # a folder may look like a model and its commit
def test_a_folder_whose_configuration_names_another_model_asks_no_hub(spoilt: Path, tmp_path: Path, name: str) -> None:
    config = {
        "model_type": "detr",
        "backbone": "a/tracker",
        "use_timm_backbone": False,
        "use_pretrained_backbone": True,
    }
    (spoilt / "config.json").write_text(json.dumps(config))
    shutil.copytree(spoilt, tmp_path / name)
    (tmp_path / "texts.txt").write_text("a cat\na dog\n")
    asked: list[str] = []

    class Server(PageServer):
        def find(self, path: str) -> Page:
            asked.append(path)
            return Page(b"not found", status=404)

    server = Server()
    words = ["encode", name, "texts.txt", "v.parquet"]
    if "@" not in name:
        words = ["similar", "me@home", "texts.txt", "--encoder", name]
    with serving(server):
        done = subprocess.run(
            [sys.executable, "-c", "from sentfold.cli.main import main; main()", *words], cwd=tmp_path, text=True,
            env={**os.environ, "HF_ENDPOINT": server.url, "HF_TOKEN": "hf_hush"}, capture_output=True, check=False,
        )  # fmt: skip
    assert (done.returncode, asked) == (2, []), done.stderr
