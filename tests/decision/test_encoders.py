"""A method over word vectors that was fitted once gives the same vectors later, also without `sentfold[text]`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file, save_file

import sentfold
from sentfold.cli import append, encode, similar
from sentfold.data.tables import DataError
from sentfold.data.vectors import encode_texts
from sentfold.decision.encoders import (
    PAGE_START,
    clear_decision,
    encode_by_name,
    find_exported,
    fit_method,
    hash_encoder,
    is_exported,
    load_exported,
    load_fit,
    load_words,
    open_encoder,
    prompt_notes,
    save_fit,
)
from sentfold.decision.export import export_space
from sentfold.decision.spaces import LandmarkSpace, LinearSpace, Unchanged, save_space
from sentfold.errors import ArtifactError, EncoderError, ParameterError, SentfoldError, SourceError
from sentfold.files import fixed_lists, sha256_of
from sentfold.fold.texts import find_text_encoder
from sentfold.manifold.base.linear import LinearMap
from sentfold.words.wordllama import TOKENIZER
from tests.cli.test_main import ROOT
from tests.decision.test_export import load_elsewhere

WORDS = [
    *("the", "a", "dog", "cat", "sleeps", "runs", "snow", "falls", "on", "quiet", "harbour"),
    *("prices", "rose", "by", "again", ".", ",", "3", "%"),
]
TEXTS = ["The dog sleeps.", "A cat runs on the snow", "prices rose again, by 3 %", "the quiet harbour", "snow falls."]
# The modules of an exported method, as its modules.json has them.
OWN = [
    {"path": "0_WordModule", "type": "sentfold.WordModule"},
    {"path": "1_SpaceModule", "type": "sentfold.SpaceModule"},
]
FRESH = ["A dog runs again", "", "unheard-of words only", "The harbour sleeps."]
METHODS = ("average", "sif", "usif", "pmeans", "dct", "gem")
ABSENT = ("torch", "sentence_transformers", "transformers", "tokenizers", "gensim", "wordllama")


@pytest.fixture
def words(tmp_path: Path) -> str:
    """A Parquet file of word vectors."""
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 12)).astype(np.float32)
    pq.write_table(pa.table({"word": WORDS, "vector": fixed_lists(vectors)}), tmp_path / "words.parquet")
    return str(tmp_path / "words.parquet")


def linear(d: int) -> LinearSpace:
    rng = np.random.default_rng(1)
    return LinearSpace(LinearMap(rng.normal(size=d) / 9, rng.normal(size=(d, 5)), np.ones(5)))


def light(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command `sentfold` in a process that cannot import what `sentfold[text]` brings."""
    code = f"""
import sys
from importlib.machinery import PathFinder

class Light(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {ABSENT!r} else PathFinder.find_spec(name, path, target)

sys.meta_path = [Light if finder is PathFinder else finder for finder in sys.meta_path]
sys.path.insert(0, {str(ROOT)!r})
from sentfold.cli.main import main
main()
"""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize("name", METHODS)
def test_a_saved_fit_gives_the_vectors_of_the_fit(name: str, words: str, tmp_path: Path) -> None:
    fitted, encoded = fit_method(name, TEXTS, words)
    fitted.save(tmp_path / "space")
    again = load_fit(tmp_path / "space", words)
    # uSIF computes its shares from the stored singular values again: one rounding. float32 holds seven digits.
    np.testing.assert_allclose(again.encode(TEXTS).vectors, encoded.vectors, atol=1e-6 * np.abs(encoded.vectors).max())
    alone = np.concatenate([again.encode([text]).vectors for text in FRESH])
    np.testing.assert_allclose(alone, again.encode(FRESH).vectors, atol=1e-6)
    assert again.dimension == encoded.vectors.shape[1]
    assert again.counts["the"] == 3  # a dog of the texts to encode is none of the fit


@pytest.mark.parametrize("name", METHODS)
def test_a_method_learns_from_distinct_texts(name: str, words: str) -> None:
    """As `encode` does, which writes each text once; documents of published collections come again, or are empty."""
    texts = [*TEXTS, "the café runs"]
    once = fit_method(name, texts, words)[1].vectors
    again = fit_method(name, [*texts, *texts[1:3], "", "the cafe\u0301 runs"], words)[1].vectors
    np.testing.assert_allclose(again, np.concatenate([once, once[1:3], 0 * once[:1], once[5:]]), atol=1e-6)


@pytest.mark.parametrize(("after", "between"), [(" ", " "), ("\t", "\t"), ("\t", " ")])
@pytest.mark.parametrize("header", ["", f"{len(WORDS)} 3\n", f"{len(WORDS)}\t3\n", f"\ufeff{len(WORDS)} 3\n"])
def test_words_whose_numbers_follow_tabs_are_refused(after: str, between: str, header: str, tmp_path: Path) -> None:
    lines = [word + after + between.join([str(number), "1.0", "2.0"]) for number, word in enumerate(WORDS)]
    (tmp_path / "words.txt").write_text(header + "\n".join(lines) + "\n")
    with nullcontext() if after == " " else pytest.raises(SourceError, match=r"(?s)by tabs.*unpacked: tr '\\t'"):
        assert fit_method("average", TEXTS, str(tmp_path / "words.txt"))[0].dimension == 3


def test_the_ending_of_a_file_of_words_can_be_in_capitals(words: str, tmp_path: Path) -> None:
    capitals, binary = Path(shutil.copy(words, tmp_path / "WORDS.PARQUET")), tmp_path / "WORDS.BIN"
    vectors = np.array(pq.read_table(words)["vector"].to_pylist(), dtype=np.float32)
    lines = [f"{word} ".encode() + row.tobytes() for word, row in zip(WORDS, vectors, strict=True)]
    binary.write_bytes(b"%d %d\n" % vectors.shape + b"".join(lines))
    wanted = fit_method("sif", TEXTS, words)[1].vectors
    for file in (capitals, binary):
        np.testing.assert_array_equal(fit_method("sif", TEXTS, str(file))[1].vectors, wanted)


def test_other_word_vectors_and_damaged_folders_are_refused(words: str, tmp_path: Path) -> None:
    fit_method("sif", TEXTS, words)[0].save(tmp_path / "space")
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"word": ["the"], "vector": fixed_lists(np.ones((1, 12), np.float32))}), other)
    for wrong in (str(other), "no-such-package", str(tmp_path / "missing.parquet")):
        with pytest.raises(ArtifactError, match="not the word vectors of the fit") as refused:
            load_fit(tmp_path / "space", wrong)
        assert "--words words.parquet" in refused.value.remedy
    for content in ("[]", "{", json.dumps({"method": "no-such"})):
        (tmp_path / "space" / "encoder.json").write_text(content)
        with pytest.raises(ArtifactError, match="no fitted method"):
            load_fit(tmp_path / "space", words)


def test_a_space_is_used_with_the_fit_that_it_was_made_with_and_with_no_other(words: str, tmp_path: Path) -> None:
    space = tmp_path / "space"
    save_space(Unchanged(), space)
    with pytest.raises(EncoderError, match="holds no fit"):
        open_encoder("sif", words, space=space, fit_on=TEXTS)
    fitted, encoded = fit_method("sif", TEXTS, words)
    save_fit(space, fitted)
    kept = open_encoder("SIF", words, space=space, fit_on=FRESH)(TEXTS).vectors
    np.testing.assert_allclose(kept, encoded.vectors, atol=1e-6)
    for name in ("average", "all-MiniLM-L6-v2"):
        with pytest.raises(EncoderError, match="another encoder"):
            open_encoder(name, words, space=space, fit_on=TEXTS)
    save_fit(space, None)  # a later decision on vectors leaves no fit of an earlier one behind
    assert sorted(path.name for path in space.iterdir()) == ["space.json", "space.safetensors"]


def test_texts_without_known_words_and_texts_that_are_cut_are_counted_by_every_command_that_encodes(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A space maps the zero of a text without known words to a place near other texts."""
    fitted, _ = fit_method("average", TEXTS, words)
    save_space(linear(12), tmp_path / "space")
    save_fit(tmp_path / "space", fitted)
    for name, lines in (("texts", TEXTS), ("odd", [*FRESH[2:3], "qqq"])):
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
    append.command(tmp_path / "odd.txt", tmp_path / "v.parquet", "average", tmp_path / "space", words=words)
    assert "all words unknown: 2" in capsys.readouterr().err
    with pytest.raises(DataError, match="the text has no vector"):
        similar.command("qqq", tmp_path / "texts.txt", "average", words=words, space=tmp_path / "space")
    similar.command("The dog qqq", tmp_path / "odd.txt", "average", words=words)
    said = capsys.readouterr().err
    assert "all words unknown: 2" in said and "of the text itself, unknown words (tokens): 1" in said
    export_space(tmp_path / "space", "average", tmp_path / "model", words=words)
    assert encode_by_name(str(tmp_path / "model"), FRESH).fallbacks["all words unknown"] == 1
    encode.command(str(tmp_path / "model"), tmp_path / "odd.txt", tmp_path / "e.parquet")
    assert "all words unknown: 2" in capsys.readouterr().out
    with pytest.raises(DataError, match="the text has no vector"):
        similar.command("qqq", tmp_path / "texts.txt", str(tmp_path / "model"))
    (tmp_path / "long.txt").write_text("word " * 600)
    save_space(Unchanged(), tmp_path / "plain")
    append.command(tmp_path / "long.txt", tmp_path / "w.parquet", "all-MiniLM-L6-v2", tmp_path / "plain")
    assert "all-MiniLM-L6-v2: texts cut at the model's limit: 1" in capsys.readouterr().err
    texts = ["word " * 600, *TEXTS]
    found = sentfold.decide("all-MiniLM-L6-v2", labels=(2 * texts, 6 * ["a", "b"]), families=())
    assert "all-MiniLM-L6-v2: texts cut at the model's limit: 1" in found.notes


def test_a_published_file_of_word_vectors_is_not_copied_into_an_export(tmp_path: Path) -> None:
    lines = [f"{word} {number} 1.0 2.0" for number, word in enumerate(WORDS)]
    (tmp_path / "words.txt").write_text("\n".join(lines) + "\n")
    fitted, _ = fit_method("average", TEXTS, str(tmp_path / "words.txt"))
    fitted.save(tmp_path / "space")
    save_space(Unchanged(), tmp_path / "space")
    with pytest.raises(ParameterError, match="published file"):
        export_space(tmp_path / "space", "average", tmp_path / "model", words=str(tmp_path / "words.txt"))
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sif", "gem"])
def test_sentence_transformers_loads_an_exported_method_and_saves_it_again(
    name: str, words: str, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    fitted, _ = fit_method(name, TEXTS, words)
    rng = np.random.default_rng(2)
    space = (
        linear(12)
        if name == "sif"
        else LandmarkSpace(rng.normal(size=(40, 12)).astype(np.float32), rng.normal(size=(40, 3)), 6, 1e-3)
    )
    save_space(space, tmp_path / "space")
    fitted.save(tmp_path / "space")
    assert export_space(tmp_path / "space", name, tmp_path / "model", words=words) <= 1e-5
    Path(words).unlink()  # the folder has its own
    wanted = space.transform(load_exported(tmp_path / "model").fitted.encode(FRESH).vectors)
    model = SentenceTransformer(str(tmp_path / "model"), device="cpu", trust_remote_code=True)
    assert np.abs(model.encode(FRESH) - wanted).max() <= 1e-5 * np.abs(wanted).max()
    model.save_pretrained(str(tmp_path / "again"), create_model_card=False)
    assert find_exported(str(tmp_path / "again")) == tmp_path / "again"
    np.testing.assert_allclose(load_exported(tmp_path / "again").encode(FRESH), wanted, atol=1e-6)
    model.truncate_dim = 2
    model.save_pretrained(str(tmp_path / "again"), create_model_card=False)
    with pytest.raises(EncoderError, match="truncate_dim"):
        hash_encoder(str(tmp_path / "again"))


@pytest.mark.slow
def test_means_of_token_vectors_become_a_model_that_needs_no_sentfold(tmp_path: Path) -> None:
    save_space(linear(256), tmp_path / "space")
    assert export_space(tmp_path / "space", "wordllama", tmp_path / "model") <= 1e-5
    loaded = load_elsewhere(tmp_path / "model", trusted=False)
    assert loaded["sentfold"] is False
    texts = ["A dog sleeps.", "Snow falls on the quiet harbour.", "", "prices rose by 3%"]
    wanted = linear(256).transform(encode_texts("wordllama", texts))
    assert np.abs(np.array(loaded["vectors"]) - wanted).max() <= 1e-5 * np.abs(wanted).max()


@pytest.mark.slow
def test_a_light_install_uses_a_space_of_word_vectors_from_the_decision_to_the_export(
    words: str, tmp_path: Path
) -> None:
    fitted, encoded = fit_method("sif", TEXTS, words)
    save_space(linear(12), tmp_path / "verdict")
    fitted.save(tmp_path / "verdict")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    common = ("--encoder", "sif", "--words", "words.parquet", "--space", "verdict")
    found = light("similar", TEXTS[3], "texts.txt", *common, "--top", "2", folder=tmp_path)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[0] == f"1.000  {TEXTS[3]}"
    added = light("append", "texts.txt", "all.parquet", *common, folder=tmp_path)
    assert "5 texts added, 5 in all" in added.stdout, added.stderr
    vectors = np.array(pq.read_table(tmp_path / "all.parquet").column("vector").to_pylist())
    wanted = linear(12).transform(encoded.vectors)
    np.testing.assert_allclose(vectors, wanted, atol=1e-5)
    made = light("export", "verdict", *common[:4], "--to", "model", folder=tmp_path)
    assert "SentenceTransformer is not installed" in made.stdout, made.stderr
    done = light("encode", "model", "texts.txt", "v.parquet", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(
        np.array(pq.read_table(tmp_path / "v.parquet").column("vector").to_pylist()), wanted, atol=1e-5
    )
    missing = light("similar", "a", "texts.txt", "--encoder", "all-MiniLM-L6-v2", folder=tmp_path)
    assert missing.returncode == 2
    assert "pip install '.[text]'" in missing.stderr and "Traceback" not in missing.stderr


@pytest.mark.parametrize("name", ["encoder.json", "encoder.safetensors"])
def test_a_pipe_in_place_of_a_part_of_a_fit_is_refused_and_not_waited_for(
    tmp_path: Path, words: str, name: str
) -> None:
    save_fit(tmp_path / "space", fit_method("sif", TEXTS, words)[0])
    (tmp_path / "space" / name).unlink()
    os.mkfifo(tmp_path / "space" / name)
    with pytest.raises(ArtifactError, match="no fitted method"):
        load_fit(tmp_path / "space", words)


@pytest.mark.parametrize("named", ["a" * 300, "a\0b"], ids=["300 letters", "a NUL"])
def test_a_fit_whose_words_no_file_can_be_called_is_refused(tmp_path: Path, words: str, named: str) -> None:
    folder = tmp_path / "space"
    save_fit(folder, fit_method("sif", TEXTS, words)[0])
    record = json.loads((folder / "encoder.json").read_text())
    (folder / "encoder.json").write_text(json.dumps({**record, "words": named}))
    with pytest.raises(ArtifactError, match=r"no fitted method|not the word vectors of the fit"):
        load_words(folder)


def test_files_of_others_that_have_the_names_of_a_decision_stay(tmp_path: Path, words: str) -> None:
    """`decide --to FOLDER` deleted the vectors encoder.safetensors of the folder."""
    mine = {"encoder.safetensors": b"vectors", "encoder.json": b'{"model": "mine"}', "space.safetensors": b"mine"}
    for name, content in mine.items():
        (tmp_path / name).write_bytes(content)
    save_fit(tmp_path, None)
    clear_decision(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == mine | {
        "words.parquet": Path(words).read_bytes()
    }
    save_fit(tmp_path / "space", fit_method("sif", TEXTS, words)[0])
    save_space(Unchanged(), tmp_path / "space")
    (tmp_path / "space/verdict.html").write_bytes(PAGE_START)
    clear_decision(tmp_path / "space")
    assert not list((tmp_path / "space").iterdir())


COUNTS: dict[str, object] = {"10^30": 10**30, "negative": -5, "a fraction": 1.9, "true": True, "a text": "3"}


@pytest.mark.parametrize("case", COUNTS)
def test_a_fit_whose_counts_are_none_is_refused(tmp_path: Path, words: str, case: str) -> None:
    save_fit(tmp_path, fit_method("sif", TEXTS, words)[0])
    record = json.loads((tmp_path / "encoder.json").read_text())
    for changed in ({"counts": {"the": COUNTS[case]}}, {"dimension": COUNTS[case] if case != "a text" else 0}):
        (tmp_path / "encoder.json").write_text(json.dumps({**record, **changed}))
        with pytest.raises(ArtifactError, match="no fitted method"):
            load_fit(tmp_path, words)


@pytest.mark.parametrize("shape", [(1, 7), (2, 12), (1, 0)])
def test_directions_that_do_not_fit_the_vectors_of_a_fit_are_refused(
    tmp_path: Path, words: str, shape: tuple[int, int]
) -> None:
    """The compiled loops read beyond the end of such directions."""
    save_fit(tmp_path, fit_method("sif", TEXTS, words)[0])
    learned = load_file(tmp_path / "encoder.safetensors")
    assert learned["directions"].shape == (1, 12)
    save_file({**learned, "directions": np.ones(shape)}, tmp_path / "encoder.safetensors")
    with pytest.raises(ArtifactError, match="no fitted method"):
        load_fit(tmp_path, words)


def test_the_words_of_an_exported_folder_are_no_file_outside_of_the_folder(tmp_path: Path, words: str) -> None:
    """A name such as /proc/self/pagemap was read for hours."""
    fit_method("sif", TEXTS, words)[0].save(tmp_path / "model")
    record = json.loads((tmp_path / "model/encoder.json").read_text())
    secret = tmp_path / "secret.parquet"
    secret.write_bytes(Path(words).read_bytes())
    assert record["sha256"] == sha256_of(secret)
    for named in (str(secret), "../secret.parquet", ["secret"]):
        (tmp_path / "model/encoder.json").write_text(json.dumps({**record, "words": named}))
        with pytest.raises(ArtifactError, match="not the word vectors of the fit"):
            load_words(tmp_path / "model")


@pytest.mark.parametrize("name", ["encoder.json", "encoder.safetensors", "verdict.json"])
def test_a_file_of_holes_in_a_space_or_an_exported_folder_is_refused_and_not_read(
    name: str, tmp_path: Path, words: str
) -> None:
    """An archive of some hundred bytes holds such a file of any size."""
    space = tmp_path / "space"
    fit_method("sif", TEXTS, words)[0].save(space)
    save_space(linear(12), space)
    export_space(space, "sif", tmp_path / "model", words=words)
    with (space / name).open("ab") as stream:
        stream.truncate(1 << 43)
    by = "wordllama" if name == "verdict.json" else "sif"
    with pytest.raises(SentfoldError, match="never written"):
        open_encoder(by, words, space=space, fit_on=())
    for file in ("modules.json", "config_sentence_transformers.json", "0_WordModule/encoder.json"):
        with (tmp_path / "model" / file).open("ab") as stream:
            size = stream.tell()
            stream.truncate(1 << 43)
        for call in (hash_encoder, prompt_notes):
            with pytest.raises(DataError, match="never written"):
                call(str(tmp_path / "model"))
        os.truncate(tmp_path / "model" / file, size)
    assert is_exported(tmp_path / "model")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("modules.json", [*OWN, {"path": "2_Dense", "type": "models.Dense"}]),
        ("modules.json", [OWN[0], {"path": "1_SpaceModule", "type": "models.Normalize"}]),
        ("modules.json", [{"path": "", "type": "models.Transformer"}, {"path": "1_Pooling", "type": "models.Pooling"}]),
        ("modules.json", "no list"),
        ("config_sentence_transformers.json", {"truncate_dim": 16}),
        ("config_sentence_transformers.json", {"prompts": {"query": "q: "}, "default_prompt_name": "query"}),
    ],
)
def test_another_model_in_the_folder_of_an_exported_method_is_refused(
    file: str, content: object, tmp_path: Path, words: str
) -> None:
    """sentence-transformers leaves the files of the method there when it saves another model in the folder."""
    fit_method("sif", TEXTS, words)[0].save(tmp_path / "space")
    save_space(linear(12), tmp_path / "space")
    export_space(tmp_path / "space", "sif", tmp_path / "model", words=words)
    model = str(tmp_path / "model")
    settings = {"prompts": {"query": "", "document": ""}, "default_prompt_name": None, "truncate_dim": None}
    (tmp_path / "model/config_sentence_transformers.json").write_text(json.dumps(settings))
    assert find_exported(model) == tmp_path / "model"
    with pytest.raises(EncoderError, match="decide on the method itself"):
        find_text_encoder(model)
    (tmp_path / "model" / file).write_text(json.dumps(content))
    with pytest.raises(EncoderError, match="another model was saved"):
        encode_by_name(model, TEXTS[:2])


@pytest.mark.parametrize("name", ["wordllama", "all-MiniLM-L6-v2"])
def test_an_exported_folder_does_not_take_the_place_of_an_installed_model(
    name: str, tmp_path: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder of data that a stranger packed, it gave the stranger's vectors for the model of the README."""
    fit_method("sif", TEXTS, words)[0].save(tmp_path / "space")
    save_space(linear(12), tmp_path / "space")
    export_space(tmp_path / "space", "sif", tmp_path / name, words=words)
    monkeypatch.chdir(tmp_path)
    for call in (hash_encoder, prompt_notes, lambda named: encode_by_name(named, TEXTS)):
        with pytest.raises(EncoderError, match="a folder here and an installed package are both called"):
            call(name)
        call(f"./{name}")


@pytest.mark.parametrize("name", METHODS)
def test_a_text_without_a_word_is_encoded_alone_as_it_is_among_others(name: str) -> None:
    """Of the tokenizer that keeps letters and digits of ASCII, such a text asked the package for no word at all."""
    fitted = fit_method(name, TEXTS, "wordllama")[0]
    for text in ("\N{THUMBS UP SIGN}", "Где мой заказ?", "", "   "):
        alone, among = fitted.encode([text]).vectors, fitted.encode([text, *TEXTS]).vectors
        assert (alone[0] == among[0]).all()


def test_a_space_is_not_used_with_another_model_than_its_verdict_names(tmp_path: Path) -> None:
    """Of one width, it gave vectors without a word, and the card showed the verdict on the other model."""
    save_space(linear(256), tmp_path / "space")
    own = {"texts.parquet": "0" * 64, **hash_encoder("wordllama")}
    (tmp_path / "space/verdict.json").write_text(json.dumps({"inputs": own}))
    assert open_encoder("wordllama", "", space=tmp_path / "space", fit_on=())(["a dog"]).vectors.shape == (1, 256)
    other = {name: "other" if name == "encoder" else "0" * 64 for name in own}
    (tmp_path / "space/verdict.json").write_text(json.dumps({"inputs": other}))
    with pytest.raises(EncoderError, match=r"(?s)another encoder.*other, as verdict\.json has it"):
        open_encoder("wordllama", "", space=tmp_path / "space", fit_on=())
    with pytest.raises(EncoderError, match="another encoder"):
        export_space(tmp_path / "space", "wordllama", tmp_path / "model")
    (tmp_path / "space/verdict.json").write_text(json.dumps({"inputs": own | {f"wordllama/{TOKENIZER}": "0" * 64}}))
    with pytest.raises(EncoderError, match="another encoder"):  # of the same weights
        open_encoder("wordllama", "", space=tmp_path / "space", fit_on=())
    for nothing in ("[]", "{", "{}", '{"inputs": []}', '{"inputs": {"texts.csv": "0", "vectors.npy": "0"}}'):
        (tmp_path / "space/verdict.json").write_text(nothing)
        open_encoder("wordllama", "", space=tmp_path / "space", fit_on=())


def test_data_in_a_folder_with_the_name_of_the_model_are_no_files_of_the_model(tmp_path: Path) -> None:
    from sentfold.cli.inputs import hashes_of_data, read_inputs

    folder = tmp_path / "data/wordllama"
    folder.mkdir(parents=True)
    for part in ("train", "test"):
        (folder / f"{part}.csv").write_text("\n".join(["text,label", *(f"{part} {n},{n % 2}" for n in range(8))]))
    read = read_inputs(folder, None, "wordllama", None, "")
    save_space(linear(256), tmp_path / "space")
    (tmp_path / "space/verdict.json").write_text(json.dumps({"inputs": read.hashes}))
    open_encoder("wordllama", "", space=tmp_path / "space", fit_on=())
    assert hashes_of_data(folder, read.data.files, read.hashes) == {
        f"wordllama/{part}.csv": sha256_of(folder / f"{part}.csv") for part in ("train", "test")
    }


def test_files_of_git_of_a_file_manager_and_for_other_libraries_make_no_other_model(tmp_path: Path) -> None:
    model = tmp_path / "model"
    (model / ".git/logs").mkdir(parents=True)
    for name in ("modules.json", ".git/FETCH_HEAD", ".git/logs/HEAD"):
        (model / name).write_text("[]")
    save_space(Unchanged(), tmp_path / "space")
    (tmp_path / "space/verdict.json").write_text(json.dumps({"inputs": hash_encoder(str(model))}))
    (model / ".git/FETCH_HEAD").write_text("after git pull")
    (model / ".DS_Store").write_bytes(b"Bud1")
    (model / "Thumbs.db").write_bytes(b"1")
    (model / "onnx").mkdir()
    (model / "onnx/config.json").write_text("{}")
    open_encoder(str(model), "", space=tmp_path / "space", fit_on=())
    (model / "modules.json").write_text("[ ]")
    with pytest.raises(EncoderError, match=r"(?s)another encoder.*modules\.json"):
        open_encoder(str(model), "", space=tmp_path / "space", fit_on=())


@pytest.mark.parametrize("folder", [".pool", ".cache", ".git"])
def test_a_module_in_a_hidden_folder_is_a_part_of_the_model(tmp_path: Path, folder: str) -> None:
    (tmp_path / "model" / folder).mkdir(parents=True)
    (tmp_path / "model/modules.json").write_text(json.dumps([{"path": ""}, {"path": folder}]))
    (tmp_path / "model" / folder / "config.json").write_text("mean")
    save_space(Unchanged(), tmp_path / "space")
    (tmp_path / "space/verdict.json").write_text(json.dumps({"inputs": hash_encoder(str(tmp_path / "model"))}))
    (tmp_path / "model" / folder / "config.json").write_text("cls")
    with pytest.raises(EncoderError, match=f"(?s)another encoder.*{folder}/config"):
        open_encoder(str(tmp_path / "model"), "", space=tmp_path / "space", fit_on=())


def test_a_space_is_not_used_with_a_model_that_lacks_a_file_of_the_judged_one(tmp_path: Path) -> None:
    """Without its default prompt or its longest text, a model gives other vectors by the same weights."""
    prompts = "config_sentence_transformers.json"
    (tmp_path / "model").mkdir()
    for name in ("modules.json", prompts):
        (tmp_path / "model" / name).write_text(f"[{name}]")
    save_space(Unchanged(), tmp_path / "space")
    own = {
        prompts: sha256_of(tmp_path / "model" / prompts),
        **hash_encoder(str(tmp_path / "model")),
    }  # and such a corpus
    (tmp_path / "space/verdict.json").write_text(json.dumps({"inputs": own}))
    (tmp_path / "model").rename(tmp_path / "renamed")
    open_encoder(str(tmp_path / "renamed"), "", space=tmp_path / "space", fit_on=())
    (tmp_path / "renamed" / prompts).rename(tmp_path / "renamed" / "old.json")  # the same bytes under another name
    with pytest.raises(EncoderError, match=f"(?s)another encoder.*renamed, which has no {prompts}"):
        open_encoder(str(tmp_path / "renamed"), "", space=tmp_path / "space", fit_on=())
    (tmp_path / "renamed/old.json").unlink()
    with pytest.raises(EncoderError, match="another encoder"):
        export_space(tmp_path / "space", str(tmp_path / "renamed"), tmp_path / "exported")


@pytest.mark.parametrize(
    ("prompts", "named"),
    [
        ({"query": "Instruct: find passages\nQuery:", "document": ""}, "prompts (query), which are not used"),
        ({"query": "query: ", "passage": "passage: "}, "prompts (passage, query), which"),
        ({"default": "text: "}, ""),
        ({"query": "", "document": ""}, ""),
    ],
)
def test_prompts_that_are_not_used_are_named(prompts: dict[str, str], named: str, tmp_path: Path) -> None:
    """encode_query of the library puts them before the texts, so a model can be better or worse than it is judged."""
    (tmp_path / "modules.json").write_text("[]")
    config = {"prompts": prompts, "default_prompt_name": "default" if "default" in prompts else None}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(config))
    assert named in "".join(prompt_notes(str(tmp_path)))
    assert bool(prompt_notes(str(tmp_path))) == bool(named)
