"""Sentence transformers: the vectors are the model's own, depend on nothing else, and come from safe bytes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.base.artifacts import (
    absence,
    corpus_path,
    read_record,
    read_vectors,
    space_path,
    write_absence,
    write_table,
)
from pipeline.base.params import load_parameters
from pipeline.stages.embed import embed
from sentfold.decision.spaces import LandmarkSpace, save_space
from sentfold.encoders.model_folder import ModelSource, locate_model, model_digests, pin_lines
from sentfold.encoders.model_safety import SPACE_MODULE, refuse_unsafe
from sentfold.encoders.transformer import encode_sentences, load_model, plan_batches, token_lengths
from sentfold.errors import EncoderError, ParameterError
from sentfold.fold.texts import load_transformer
from tests.corpora.hub_server import HubServer, Page, serving

ROOT = Path(__file__).parents[2]
COMMIT = "89abcdef0123456789abcdef0123456789abcdef"

# Lengths from one word to thirty, so that a batch of the plain kind would be mostly padding.
STORY = "the dog naps while snow falls on a quiet harbour and bread rises near nine old kettles in rows"
WORDS = STORY.split()
SENTENCES = [" ".join(WORDS[(7 * i + j * (i % 5 + 1)) % len(WORDS)] for j in range(1 + i * i % 30)) for i in range(90)]
SENTENCES = list(dict.fromkeys([*SENTENCES, "The café opens at nine.", "Is it late?", "Émile's dog: 3.5 kg!"]))


@pytest.fixture(scope="module")
def folder() -> Path:
    """The quick suite's model, as it lies in its package, held against the digests of params.yaml."""
    return locate_model("minilm", load_parameters(ModelSource, "encoders.minilm", path=ROOT / "params.yaml"))


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return load_model("minilm", folder)


@pytest.fixture(scope="module")
def vectors(model: Any) -> np.ndarray:
    return encode_sentences(model, SENTENCES, batch_size=16).vectors


# --- the vectors ------------------------------------------------------------------------------------


def test_a_vector_is_the_normalised_mean_of_the_token_vectors(folder: Path, vectors: np.ndarray) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, bert = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    tokens = tokenizer(SENTENCES, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.no_grad():
        states = bert(**tokens).last_hidden_state.double()
    mask = tokens["attention_mask"].unsqueeze(-1)
    mean = ((states * mask).sum(1) / mask.sum(1)).numpy()
    expected = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    # Six float32 layers, padded here and unpadded there: a few hundred roundings of 6e-8 on entries below 1.
    np.testing.assert_allclose(vectors, expected, atol=1e-5, rtol=0)


def test_every_vector_has_unit_length(vectors: np.ndarray) -> None:
    assert vectors.dtype == np.float32
    # The norm of 384 float32 entries, each rounded by at most 6e-8 of itself.
    np.testing.assert_allclose(np.linalg.norm(vectors.astype(np.float64), axis=1), 1, atol=1e-6)


def test_a_vector_does_not_depend_on_its_company(model: Any, vectors: np.ndarray) -> None:
    picked = range(0, len(SENTENCES), 6)
    alone = np.vstack([encode_sentences(model, [SENTENCES[row]], batch_size=1).vectors for row in picked])
    # Without padding only the blocking of matrix products is left: about 2e-7, six layers deep.
    assert np.abs(alone - vectors[list(picked)]).max() < 1e-6


def test_a_vector_does_not_depend_on_the_batch_size(model: Any, vectors: np.ndarray) -> None:
    assert np.abs(encode_sentences(model, SENTENCES, batch_size=5).vectors - vectors).max() < 1e-6


def test_the_order_of_the_sentences_leaves_no_trace(model: Any, vectors: np.ndarray) -> None:
    order = np.random.default_rng(3).permutation(len(SENTENCES))
    shuffled = encode_sentences(model, [SENTENCES[row] for row in order], batch_size=16).vectors
    np.testing.assert_array_equal(shuffled, vectors[order])


ENCODE = """
import hashlib, json, sys
from pathlib import Path
import torch
from sentfold.encoders.transformer import encode_sentences, load_model
torch.set_num_threads(int(sys.argv[1]))
vectors = encode_sentences(load_model("minilm", Path(sys.argv[2])), json.loads(sys.argv[3]), batch_size=16).vectors
print(torch.get_num_threads(), hashlib.sha256(vectors.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_the_bytes_depend_on_neither_the_threads_nor_the_process(folder: Path, vectors: np.ndarray) -> None:
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", ENCODE, threads, str(folder), json.dumps(SENTENCES)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": threads},
        )
        for threads in ("1", "2")
    ]
    said = [run.communicate(timeout=120)[0].split() for run in runs]
    digest = hashlib.sha256(vectors.tobytes()).hexdigest()
    assert said == [["1", digest], ["2", digest]]


# --- odd sentences ----------------------------------------------------------------------------------

ODD = {
    "empty": "",
    "blank": " \t\n ",
    "no-break space": "\u00a0",
    "emoji": "🦊🎉👩‍👩‍👧",
    "control characters": "\x00\x07\x1b[31m",
    "invisible": "\u200b\u202e",
    "lone surrogate": "half a \ud83e pair",
    "one hundred thousand characters": "kettle " * 14_286,
    "one long word": "a" * 100_000,
}


@pytest.fixture(scope="module")
def odd(model: Any) -> Any:
    return encode_sentences(model, list(ODD.values()), batch_size=4)


def test_every_odd_sentence_has_a_finite_unit_vector(odd: Any) -> None:
    assert odd.vectors.shape == (len(ODD), 384)
    assert np.isfinite(odd.vectors).all()
    np.testing.assert_allclose(np.linalg.norm(odd.vectors.astype(np.float64), axis=1), 1, atol=1e-6)


def test_blank_and_cut_sentences_are_counted(odd: Any) -> None:
    assert odd.blank == 3
    # The long word is one unknown token to this tokenizer, so it is not cut.
    assert odd.truncated == 1


def test_blank_sentences_are_all_encoded_as_no_words(odd: Any) -> None:
    names = list(ODD)
    for name in ("blank", "no-break space"):
        assert np.abs(odd.vectors[names.index(name)] - odd.vectors[names.index("empty")]).max() < 1e-6


def test_a_lone_surrogate_is_encoded_as_the_replacement_character(model: Any, odd: Any) -> None:
    # Three bytes of UTF-8 would be one surrogate; each is replaced.
    row = list(ODD).index("lone surrogate")
    text = ODD["lone surrogate"].replace("\ud83e", "\ufffd\ufffd\ufffd")
    assert np.abs(encode_sentences(model, [text], batch_size=1).vectors - odd.vectors[row]).max() < 1e-6


def test_a_cut_sentence_is_encoded_as_its_beginning(model: Any, odd: Any) -> None:
    row = list(ODD).index("one hundred thousand characters")
    # 256 tokens with [CLS] and [SEP] leave 254 words of one token each.
    beginning = encode_sentences(model, ["kettle " * 254], batch_size=1)
    assert beginning.truncated == 0
    assert np.abs(beginning.vectors - odd.vectors[row]).max() < 1e-6


def test_no_sentences_make_no_vectors(model: Any) -> None:
    encoding = encode_sentences(model, [], batch_size=4)
    assert (encoding.vectors.shape, encoding.batches) == ((0, 384), 0)


# --- the plan ---------------------------------------------------------------------------------------

TEXTS = st.lists(st.text("abc ", max_size=6), max_size=40)
SIZES = st.integers(1, 9)


def lengths_of(texts: list[str]) -> np.ndarray:
    """A stand-in for token counts with many ties."""
    return np.array([len(text) // 2 for text in texts], dtype=np.int64)


@given(texts=TEXTS, size=SIZES)
def test_a_plan_holds_every_row_once_in_batches_of_one_length(texts: list[str], size: int) -> None:
    lengths = lengths_of(texts)
    plan = list(plan_batches(texts, lengths, batch_size=size))
    assert sorted(row for batch in plan for row in batch) == list(range(len(texts)))
    for batch in plan:
        assert 1 <= len(batch) <= size
        assert len({int(lengths[row]) for row in batch}) == 1


@given(texts=TEXTS, size=SIZES)
def test_a_plan_wastes_no_batch(texts: list[str], size: int) -> None:
    counts = np.unique(lengths_of(texts), return_counts=True)[1]
    assert len(list(plan_batches(texts, lengths_of(texts), batch_size=size))) == sum(-(-n // size) for n in counts)


@given(texts=TEXTS, size=SIZES, seed=st.randoms(use_true_random=False))
def test_a_plan_is_the_same_for_the_same_texts_in_any_order(texts: list[str], size: int, seed: Any) -> None:
    shuffled = seed.sample(texts, len(texts))
    plans = [
        [[order[row] for row in batch] for batch in plan_batches(order, lengths_of(order), batch_size=size)]
        for order in (texts, shuffled)
    ]
    assert plans[0] == plans[1]


def test_the_plan_counts_the_tokens_that_the_model_sees(model: Any) -> None:
    words = ["", "kettle", "the kettle fell", "kettle " * 300]
    # [CLS], [SEP], and one token for each of these words.
    assert token_lengths(model, words, chunk=3).tolist() == [2, 3, 5, 302]


# --- where the bytes come from ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_folder(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A transformer of one random layer with the real tokenizer, saved as sentence-transformers does."""
    import torch
    from transformers import BertConfig, BertModel

    small = tmp_path_factory.mktemp("models") / "small"
    shutil.copytree(folder, small, ignore=shutil.ignore_patterns("*.safetensors", "*.bin", "*.onnx", "README*"))
    torch.manual_seed(0)
    config = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    BertModel(config).save_pretrained(small)
    pooling = small / "1_Pooling" / "config.json"
    pooling.write_text(json.dumps({**json.loads(pooling.read_text()), "word_embedding_dimension": 8}))
    return small


@pytest.fixture
def small(small_folder: Path, tmp_path: Path) -> Path:
    """A copy of the small model, to be spoilt."""
    return Path(shutil.copytree(small_folder, tmp_path / "small"))


def place_of(folder: Path) -> ModelSource:
    """The parameters that pin the model folder as it is now."""
    paths = [path for path in folder.rglob("*") if path.suffix in {".safetensors", ".json", ".txt"}]
    digests = {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    return ModelSource(folder=str(folder), sha256=digests)


def refused(folder: Path, *parts: str, place: ModelSource | None = None) -> None:
    """Locating and loading must raise an EncoderError that names the encoder and `parts`."""
    with pytest.raises(EncoderError) as caught:
        load_model("mine", locate_model("mine", place or place_of(folder)))
    for part in ("'mine'", *parts):
        assert part in str(caught.value), f"{part!r} is not in:\n{caught.value}"


def test_a_pinned_folder_is_loaded(small: Path) -> None:
    encoding = encode_sentences(load_model("mine", locate_model("mine", place_of(small))), SENTENCES, batch_size=8)
    assert encoding.vectors.shape == (len(SENTENCES), 8)


def test_other_bytes_than_the_pinned_are_refused(small: Path) -> None:
    place = place_of(small)
    weights = small / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    refused(small, "model.safetensors", place.sha256["model.safetensors"], place=place)


def test_weights_that_are_not_pinned_are_refused(small: Path) -> None:
    place = place_of(small)
    others = {name: digest for name, digest in place.sha256.items() if name != "model.safetensors"}
    refused(small, "model.safetensors", "a pinned sha256", place=place.model_copy(update={"sha256": others}))


def test_another_pooling_is_another_model_and_refused(small: Path) -> None:
    place = place_of(small)
    config = small / "1_Pooling" / "config.json"
    config.write_text(config.read_text() + " ")
    refused(small, "1_Pooling/config.json", place=place)


def test_a_pinned_file_that_is_gone_is_named(small: Path) -> None:
    place = place_of(small).model_copy(update={"sha256": {**place_of(small).sha256, "tokenizer.bin": "0" * 64}})
    refused(small, "tokenizer.bin", "no such file", place=place)


@pytest.mark.parametrize(
    ("place", "parts"),
    [
        (ModelSource(package="no-such-package"), ["no-such-package", "not installed"]),
        (ModelSource(package="numpy"), ["numpy", "modules.json"]),
        (ModelSource(folder="no/such/folder"), ["no/such/folder", "modules.json"]),
        (ModelSource(hub="acme/model"), ["not pinned", "40 hexadecimal", "pin-encoder mine"]),
    ],
    ids=["no package", "no model in it", "no folder", "no revision"],
)
def test_a_place_that_holds_no_model_is_refused(place: ModelSource, parts: list[str]) -> None:
    refused(Path(), *parts, place=place)


def test_a_cut_weight_file_is_refused(small: Path) -> None:
    weights = small / "model.safetensors"
    whole = weights.read_bytes()
    for size in (0, 7, 100, len(whole) // 2, len(whole) - 1):
        weights.write_bytes(whole[:size])
        refused(small, "cannot be loaded")


@pytest.mark.parametrize("name", ["config.json", "modules.json", "tokenizer.json", "1_Pooling/config.json"])
def test_a_damaged_description_is_refused(small: Path, name: str) -> None:
    (small / name).write_text('{"half": ')
    refused(small)


@pytest.mark.parametrize("content", ["{}", '["Transformer"]', "[]", "7", "\ufeff[]"])
def test_modules_that_are_no_list_of_modules_are_refused(small: Path, content: str) -> None:
    (small / "modules.json").write_text(content, encoding="utf-8")
    refused(small, "modules.json")


def test_weights_in_a_pickle_are_refused_unread(small: Path, tmp_path: Path) -> None:
    (small / "model.safetensors").unlink()
    write_bomb(small / "pytorch_model.bin", tmp_path / "ran")
    refused(small, "pytorch_model.bin", "pickle", "safetensors")
    assert not (tmp_path / "ran").exists()


def test_a_pickle_beside_safetensors_is_left_alone(small: Path, tmp_path: Path) -> None:
    write_bomb(small / "pytorch_model.bin", tmp_path / "ran")
    load_model("mine", locate_model("mine", place_of(small)))
    assert not (tmp_path / "ran").exists()


def write_bomb(path: Path, mark: Path) -> None:
    """A pickle that leaves a mark when it is loaded: protocol 0, `os.mkdir(mark)`."""
    path.write_bytes(f"cos\nmkdir\n(S'{mark}'\ntR.".encode())


def write_code(folder: Path, mark: Path) -> None:
    """A module of the model's own that leaves a mark when it is imported."""
    code = f"import os\nos.mkdir({str(mark)!r})\nimport torch\n\nclass Mine(torch.nn.Module):\n    pass\n"
    (folder / "mine.py").write_text(code)


def test_code_in_a_model_folder_is_refused_and_never_runs(small: Path, tmp_path: Path) -> None:
    write_code(small, tmp_path / "ran")
    modules = json.loads((small / "modules.json").read_text())
    modules.append({"idx": 3, "name": "3", "path": "", "type": "mine.Mine"})
    (small / "modules.json").write_text(json.dumps(modules))
    refused(small, "code", "mine.Mine")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("arguments", "part"), [(None, "cannot be loaded"), ((), "known to be safe"), (("model_args",), "known to be safe")]
)
def test_code_behind_the_configuration_never_runs(
    small: Path, tmp_path: Path, arguments: tuple[str, ...] | None, part: str
) -> None:
    write_code(small, tmp_path / "ran")
    config = json.loads((small / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.Mine", "AutoModel": "mine.Mine"}}
    (small / "config.json").write_text(json.dumps(config))
    trust = {name: {"trust_remote_code": True} for name in arguments or ()}
    for name in () if arguments is None else ("sentence_bert_config.json", "config_sentence_transformers.json"):
        old = json.loads((small / name).read_text()) if (small / name).exists() else {}
        (small / name).write_text(json.dumps({**old, **trust, "trust_remote_code": True}))
    refused(small, part)
    assert not (tmp_path / "ran").exists()


def add_space(folder: Path) -> list[dict[str, Any]]:
    """Put a map that is not linear behind a model, as `sentfold export` does; its list of modules."""
    rng = np.random.default_rng(0)
    landmarks = rng.normal(size=(30, 8)).astype(np.float32)
    save_space(LandmarkSpace(landmarks, rng.normal(size=(30, 3)), 4, 1e-3), folder / "9_Space")
    modules: list[dict[str, Any]] = json.loads((folder / "modules.json").read_text())
    modules.append({"idx": 9, "name": "9", "path": "9_Space", "type": SPACE_MODULE})
    (folder / "modules.json").write_text(json.dumps(modules))
    return modules


def test_a_model_with_a_space_is_loaded_and_trusts_no_code_that_its_configuration_names(
    small: Path, tmp_path: Path
) -> None:
    """The code is in another folder, or of the hub, and the key is written as JSON may write it."""
    add_space(small)
    assert load_transformer("mine", place_of(small)).encode(["a cat", "a dog"]).vectors.shape == (2, 3)
    (tmp_path / "elsewhere").mkdir()
    write_code(tmp_path / "elsewhere", tmp_path / "ran")
    named = f"{tmp_path / 'elsewhere'}--mine.Mine"
    config = json.loads((small / "config.json").read_text())
    config |= {"model_type": "mine", "KEY": {"AutoConfig": named, "AutoModel": named}}
    (small / "config.json").write_text(json.dumps(config).replace("KEY", "auto\\u005fmap"))
    assert json.loads((small / "config.json").read_text())["auto_map"]["AutoModel"] == named
    with pytest.raises(EncoderError, match="cannot be loaded"):
        load_transformer("mine", place_of(small))
    assert not (tmp_path / "ran").exists()


def test_a_model_with_a_space_that_lacks_a_layer_is_refused(small: Path) -> None:
    from safetensors.torch import load_file, save_file

    add_space(small)
    weights = {name: value for name, value in load_file(small / "model.safetensors").items() if "layer.0" not in name}
    save_file(weights, small / "model.safetensors", {"format": "pt"})
    with pytest.raises(EncoderError, match="not whole"):
        load_transformer("mine", place_of(small))


def test_the_stage_refuses_a_model_with_a_space(small: Path) -> None:
    """sentence-transformers would load it only with trust in all code that the folder names."""
    add_space(small)
    refused(small, "a map that is not linear", "sentfold encode")


def test_a_dense_module_before_a_space_calls_no_function_that_its_configuration_names(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentence_transformers.base.modules import Dense

    (small / "8_Dense").mkdir()
    Dense(8, 8).save(str(small / "8_Dense"))
    modules = add_space(small)
    modules.insert(-1, {"idx": 8, "name": "8", "path": "8_Dense", "type": "sentence_transformers.models.Dense"})
    (small / "modules.json").write_text(json.dumps(modules))
    config = json.loads((small / "8_Dense/config.json").read_text())
    (small / "8_Dense/config.json").write_text(json.dumps(config | {"activation_function": "tempfile.mkdtemp"}))
    (tmp_path / "marks").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "marks"))
    load_transformer("mine", place_of(small))  # with the usual activation, as sentence-transformers has it
    assert not list((tmp_path / "marks").iterdir())


@pytest.mark.slow
def test_the_bomb_and_the_code_of_these_tests_do_go_off(small: Path, tmp_path: Path) -> None:
    # Else the tests above could not fail.
    write_bomb(small / "pytorch_model.bin", tmp_path / "pickle")
    write_code(small, tmp_path / "code")
    load = "import pickle, sys; pickle.load(open(sys.argv[1], 'rb'))"
    subprocess.run([sys.executable, "-c", load, str(small / "pytorch_model.bin")], check=True)
    subprocess.run([sys.executable, str(small / "mine.py")], check=True)
    assert (tmp_path / "pickle").is_dir()
    assert (tmp_path / "code").is_dir()


# --- the hub ----------------------------------------------------------------------------------------


class ModelServer(HubServer):
    """A hub with one model repository at one commit."""

    def add(self, path: str, data: bytes, *, lfs: bool = False) -> Page:
        digest = hashlib.sha1(b"blob %d\0%b" % (len(data), data)).hexdigest()
        page = Page(data, headers={"ETag": f'"{digest}"', "X-Repo-Commit": COMMIT})
        self.pages[f"/acme/small/resolve/{COMMIT}/{path}"] = page
        listing = self.pages.setdefault(f"/api/models/acme/small/tree/{COMMIT}", Page(b"[]"))
        entry = {"type": "file", "path": path, "size": len(data), "oid": digest}
        listing.body = json.dumps([*json.loads(listing.body), entry]).encode()
        siblings = [{"rfilename": item["path"]} for item in json.loads(listing.body)]
        answer = {"id": "acme/small", "modelId": "acme/small", "sha": COMMIT, "siblings": siblings, "tags": []}
        for name in ("/api/models/acme/small", f"/api/models/acme/small/revision/{COMMIT}"):
            self.pages[name] = Page(json.dumps(answer).encode())
        return page


@pytest.fixture
def hub(small: Path, tmp_path: Path) -> Iterator[ModelServer]:
    server = ModelServer()
    write_bomb(small / "pytorch_model.bin", tmp_path / "ran")
    write_code(small, tmp_path / "ran")
    for path in sorted(small.rglob("*")):
        if path.is_file():
            server.add(str(path.relative_to(small)), path.read_bytes())
    with serving(server):
        yield server


FETCH = """
import sys
from sentfold.encoders.model_folder import ModelSource, locate_model
from sentfold.errors import EncoderError
place = ModelSource(hub="acme/small", revision=sys.argv[1])
try:
    print(locate_model("mine", place))
except EncoderError as error:
    print(error)
    sys.exit(2)
"""


def fetch(code: str, server: ModelServer, cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a process of its own: the hub's client reads its settings once, when it is imported."""
    clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment = {**clean, "HF_ENDPOINT": server.url, "HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_pinned_model_of_the_hub_is_fetched_without_its_pickle_and_its_code(
    hub: ModelServer, small: Path, tmp_path: Path
) -> None:
    done = fetch(FETCH, hub, tmp_path / "cache", COMMIT)
    assert done.returncode == 0, done.stdout + done.stderr
    fetched = {path.name: path.read_bytes() for path in Path(done.stdout.split()[0]).rglob("*") if path.is_file()}
    assert fetched["model.safetensors"] == (small / "model.safetensors").read_bytes()
    assert not {"pytorch_model.bin", "mine.py"} & set(fetched)
    asked = {path for path, page in hub.pages.items() if page.asked}
    assert f"/acme/small/resolve/{COMMIT}/model.safetensors" in asked
    assert not {path for path in asked if path.endswith((".bin", ".py"))}
    assert not (tmp_path / "ran").exists()


def test_a_revision_that_the_hub_lacks_is_refused(hub: ModelServer, tmp_path: Path) -> None:
    done = fetch(FETCH, hub, tmp_path / "cache", "0" * 40)
    assert done.returncode == 2, done.stderr
    assert "encoder 'mine' cannot be fetched" in done.stdout
    assert f"acme/small@{'0' * 40}" in done.stdout


@pytest.mark.slow
def test_the_newest_commit_of_an_encoder_is_what_the_hub_says(hub: ModelServer, tmp_path: Path) -> None:
    code = (
        "from sentfold.encoders.model_folder import ModelSource, pin_lines\n"
        "print(pin_lines('mine', ModelSource(hub='acme/small')))"
    )
    assert fetch(code, hub, tmp_path / "cache", str(tmp_path)).stdout.strip() == f"revision: {COMMIT}"
    hub.pages.clear()
    failed = fetch(code, hub, tmp_path / "cache", str(tmp_path)).stderr.splitlines()
    assert any(line.startswith("sentfold.errors.EncoderError: the hub does not give") for line in failed)


def test_the_lines_that_pin_a_folder_are_the_ones_that_it_is_checked_by(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text(f"encoders:\n  mine:\n    folder: {small}\n")
    with Path("params.yaml").open("a") as stream:
        stream.write(pin_lines("mine", ModelSource(folder=str(small))) + "\n")
    assert load_parameters(ModelSource, "encoders.mine") == place_of(small)


# --- the stage --------------------------------------------------------------------------------------


@pytest.fixture
def checkout(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    encoders = {"mine": place_of(small).model_dump(exclude_none=True)}
    Path("params.yaml").write_text(json.dumps({"encoders": encoders, "embed": {"batch_size": 4}}))
    return tmp_path


def test_the_stage_writes_one_vector_per_sentence_and_what_it_counted(checkout: Path, small: Path) -> None:
    source = corpus_path("quick", "lee", "sentences")
    texts = ["The kettle boils.", "", "Snow fell.", "Is it late?", "word " * 600]
    write_table(source, pa.table({"text": texts}), kind="sentences", parameters={}, notes={"task": "similarity"})
    assert embed("quick", "lee", "mine") == 5
    target = space_path("quick", "mine", "lee")
    expected = encode_sentences(load_model("mine", small), texts, batch_size=4).vectors
    np.testing.assert_array_equal(read_vectors(target), expected)
    notes = read_record(target, kind="vectors")["notes"]
    counted = {key: notes[key] for key in ("blank", "dimension", "sentences", "task", "truncated")}
    assert counted == {"blank": 1, "dimension": 8, "sentences": 5, "task": "similarity", "truncated": 1}
    assert notes["model"] == model_digests(small)
    before = target.read_bytes()
    embed("quick", "lee", "mine")
    assert target.read_bytes() == before


def test_an_absent_corpus_is_absent_in_every_space(checkout: Path) -> None:
    write_absence(corpus_path("quick", "lee", "sentences"), "the mirror lacks 'lee'", kind="sentences")
    assert embed("quick", "lee", "mine") == 0
    assert absence(space_path("quick", "mine", "lee"), kind="vectors") == "the mirror lacks 'lee'"


def test_an_unknown_encoder_is_refused_with_those_there_are(checkout: Path) -> None:
    with pytest.raises(ParameterError, match=r"encoders\.other"):
        embed("quick", "lee", "other")


def test_every_module_of_the_real_model_is_the_librarys_own(folder: Path) -> None:
    refuse_unsafe("minilm", folder)
    types = [module["type"] for module in json.loads((folder / "modules.json").read_text())]
    assert [name.rpartition(".")[2] for name in types] == ["Transformer", "Pooling", "Normalize"]
