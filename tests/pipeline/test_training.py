"""Training as stages of a suite: plans, pairs, the stages `train` and `embed_trained`, and what they write."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

from pipeline.base.artifacts import (
    absence,
    corpus_path,
    read_record,
    read_vectors,
    scores_path,
    space_path,
    write_absence,
    write_table,
)
from pipeline.trainings import RECORD, curve_path, load_training, model_path
from sentfold.encoders.model_folder import model_digests
from sentfold.errors import ParameterError, SuiteError
from tests.checkout import ROOT, make_suite
from tests.tiny_bert import WORDS, write_bert

TASKS = {"scored": "similarity", "learnt": "similarity", "entailed": "inference", "held-out": "similarity"}
TINY = {
    "base": "tiny",
    "seeds": [0, 1],
    "data": {"train": "gone", "otherwise": "learnt", "dev": "held-out", "pairs": 16},
    "head": {"channels": 4, "kernels": [1, 3], "pooling": "max"},
    "loss": {"kind": "contrastive"},
    "trainer": {"batch_size": 8, "evaluate_every": 1, "max_length": 20},
}
TRAININGS: dict[str, Any] = {
    "tiny": TINY,
    "lost": {**TINY, "data": {"train": "gone", "dev": "held-out"}},
    "nli": {**TINY, "data": {"train": "entailed", "dev": "held-out"}, "loss": {"kind": "alignment-uniformity"}},
}
SPACES = ("tiny-seed0", "tiny-seed0-pca", "nli-seed1", "lost-seed0")
PARAMS = {"encoders": {"tiny": {}}, "trainings": TRAININGS}
SUITE = make_suite(PARAMS, suite="made", corpora=("scored",), spaces=SPACES)


def write_corpus(name: str, seed: int, n: int = 24) -> None:
    """Pairs of random sentences; scores 0 to 5, or labels 0 to 2."""
    rng, words = np.random.default_rng(seed), WORDS.split()
    texts = [f"{' '.join(rng.choice(words, size=3))}{' a' * i}" for i in range(2 * n)]
    rows: dict[str, Any] = {"row1": np.arange(n), "row2": n + np.arange(n), "split": ["test"] * n}
    rows |= (
        {"score": np.arange(n) % 6.0, "subset": ["all"] * n}
        if TASKS[name] == "similarity"
        else {"label": np.arange(n) % 3}
    )
    notes = {"corpus": name, "task": TASKS[name], "resample": "items"}
    for part, table in (("sentences", {"text": texts}), ("items", rows)):
        kind = part if part == "sentences" else f"items.{TASKS[name]}"
        write_table(corpus_path("made", name, part), pa.table(table), kind=kind, parameters={}, notes=notes)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert"), layers=2)


@pytest.fixture(scope="module")
def folder(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Parameters and corpora; the source lacks the corpus `gone`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("made"))
        content = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
        content |= {"encoders": {"tiny": {"folder": str(bert), "sha256": model_digests(bert)}}, "trainings": TRAININGS}
        content["evaluate"] |= {"resamples": 100}
        Path("params.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
        for seed, name in enumerate(TASKS):
            write_corpus(name, seed)
        for part in ("sentences", "items"):
            kind = part if part == "sentences" else "items.similarity"
            write_absence(corpus_path("made", "gone", part), "not in the mirror", kind=kind)
        yield Path.cwd()


# --- plans ------------------------------------------------------------------------------------------


def test_a_seed_of_a_training_is_a_space_and_its_corpora_are_downloaded_and_not_scored() -> None:
    stages = SUITE.stages
    assert set(stages["train"]) == {"tiny-seed0", "nli-seed1", "lost-seed0"}
    item = stages["train"]["tiny-seed0"]
    assert item == {
        "training": "tiny", "seed": 0, "base": "tiny", "train": "gone", "otherwise": "learnt", "dev": "held-out",
    }  # fmt: skip
    assert stages["train"]["nli-seed1"]["otherwise"] == "entailed"
    assert list(stages["download"]) == ["scored", "gone", "learnt", "held-out", "entailed"]
    assert set(stages["embed_trained"]) == {f"scored-{space}" for space in stages["train"]}
    assert set(stages["evaluate"]) == set(SPACES) and set(stages["transform"]) == {"tiny-seed0-pca"}
    assert SUITE.paths["sweeps"] == "reports/made/sweeps" and not stages["embed"]


@pytest.mark.parametrize("corpus", ["gone", "learnt", "held-out"])
def test_a_corpus_that_is_trained_or_developed_on_is_never_scored_for_the_same_suite(corpus: str) -> None:
    with pytest.raises(SuiteError, match="reads pairs that the suite scores") as caught:
        make_suite(PARAMS, corpora=("lee", corpus), spaces=("tiny-seed0",))
    assert corpus in caught.value.got


@pytest.mark.parametrize(("corpora", "told"), [(("sts13", "stsb"), "sts13"), (("stsb", "mrpc"), "mrpc")])
def test_a_corpus_with_pairs_of_the_training_is_not_scored(corpora: tuple[str, ...], told: str) -> None:
    params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    with pytest.raises(SuiteError, match="reads pairs that the suite scores") as caught:
        make_suite(params, corpora=corpora, spaces=("small-mean-seed0",))
    assert caught.value.got == told
    assert make_suite(params, corpora=("stsb", "sickr", "snli"), spaces=("small-mean-seed0",)).stages["train"]
    params["trainings"]["mine"] = {
        **params["trainings"]["small-mean"],
        "data": {**params["trainings"]["small-mean"]["data"], "train": "sickr-train", "dev": "sickr-dev"},
    }
    with pytest.raises(SuiteError, match="reads pairs that the suite scores"):
        make_suite(params, corpora=("stsb", "sickr-all"), spaces=("mine-seed0",))
    assert make_suite(params, corpora=("sickr", "sick-e"), spaces=("mine-seed0",)).stages["train"]


def test_a_seed_that_a_training_lacks_makes_no_space() -> None:
    with pytest.raises(SuiteError, match="names a space that nothing makes"):
        make_suite(PARAMS, spaces=("tiny-seed7",))


def test_every_training_of_the_project_is_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    blocks = yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8"))["trainings"]
    made = {name: load_training(name) for name in blocks}
    small = {name for name in made if name.startswith("small-")}
    assert len(small) == 6 and all(made[name].seeds == [0, 1, 2] for name in small)
    # Paired: the six differ in their heads, losses and pairs alone.
    assert len({made[name].trainer for name in small}) == 1
    activations = {made[name].head.activation for name in made}
    assert activations == {"none", "relu"} and {made[name].data.least for name in made} == {None, 3.0, 4.0}


# --- stages -----------------------------------------------------------------------------------------


def test_labels_are_shares_of_the_scale_or_thresholds_and_neutral_pairs_are_left_out(folder: Path) -> None:
    pytest.importorskip("accelerate", reason="the trainer needs requirements-train.lock")
    from pipeline.stages.train import choose_corpus, read_pairs

    data = load_training("tiny").data
    assert choose_corpus("made", data) == "learnt"
    every = read_pairs("made", "learnt", data, draw=False)
    np.testing.assert_allclose(every.labels, np.arange(24) % 6 / 5)
    binary = read_pairs("made", "learnt", data.model_copy(update={"least": 3.0}), draw=False)
    np.testing.assert_array_equal(binary.labels, np.arange(24) % 6 >= 3)
    drawn = read_pairs("made", "learnt", data, draw=True)
    places = [every.first.index(text) for text in drawn.first]
    assert len(drawn) == 16 and places == sorted(places)
    assert [every.labels[place] for place in places] == list(drawn.labels)
    nli = read_pairs("made", "entailed", data, draw=False)
    assert list(nli.labels) == [1.0, 0.0] * 8
    with pytest.raises(ParameterError, match="cannot be trained on a corpus of this task"):
        write_table(
            corpus_path("made", "topics", "items"), pa.table({"row": [0]}), kind="items.clustering", parameters={}
        )
        read_pairs("made", "topics", data, draw=False)


@pytest.fixture(scope="module")
def trained(folder: Path) -> Path:
    """All trained spaces of the suite."""
    pytest.importorskip("accelerate", reason="the trainer needs requirements-train.lock")
    from pipeline.stages.embed_trained import embed_trained
    from pipeline.stages.train import train

    for space, item in SUITE.stages["train"].items():
        train("made", space, item["training"], item["seed"])
        embed_trained("made", "scored", space)
    return folder


def test_the_vectors_are_those_that_plain_sentence_transformers_computes_from_the_folder(trained: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(model_path("made", "tiny-seed0")), device="cpu")
    import pyarrow.parquet as pq

    texts = pq.read_table(corpus_path("made", "scored", "sentences")).column("text").to_pylist()
    got = read_vectors(space_path("made", "tiny-seed0", "scored"))
    np.testing.assert_allclose(np.stack([model.encode(text) for text in texts]), got, atol=1e-5)
    record = read_record(space_path("made", "tiny-seed0", "scored"), kind="vectors")
    assert record["parameters"]["trained_on"] == "learnt" and record["parameters"]["seed"] == 0
    assert record["notes"]["model"] == model_digests(model_path("made", "tiny-seed0"))


def test_a_trained_space_is_scored_like_any_other_and_leaves_no_checkpoint(trained: Path) -> None:
    from pipeline.stages.evaluate import evaluate

    evaluate(SUITE, "tiny-seed0")
    scores = json.loads(scores_path("made", "tiny-seed0").read_text())["corpora"]["scored"]["scores"]
    assert scores["spearman.all.cosine"]["value"] is not None
    assert list(Path(".sentfold/training").iterdir()) == []
    curve = json.loads(curve_path("made", "tiny-seed0").read_text())
    assert {"loss", "spearman"} <= {key for entry in curve["curve"] for key in entry}
    assert curve["best_step"] in {entry["step"] for entry in curve["curve"] if "spearman" in entry}


@pytest.mark.slow
def test_the_same_training_writes_the_same_bytes(trained: Path) -> None:
    from pipeline.stages.train import train

    paths = [*model_path("made", "tiny-seed0").rglob("*"), curve_path("made", "tiny-seed0")]
    before = {path: path.read_bytes() for path in paths if path.is_file()}
    train("made", "tiny-seed0", "tiny", 0)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.slow
def test_a_training_does_not_continue_what_other_code_began(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline.stages import train as stage

    model_path("made", "tiny-seed9").write_text("a file in the place of the model folder")
    copied = tmp_path / "training"
    shutil.copytree(stage.PACKAGE / "training", copied)
    monkeypatch.setattr(stage, "CODE", (copied, *stage.CODE[1:]))
    begun = []
    for edit in ("", "# another loss"):
        with (copied / "losses.py").open("a") as stream:
            stream.write(edit)
        with pytest.raises(OSError):
            stage.train("made", "tiny-seed9", "tiny", 0)
        begun.append({path.name for path in stage.CHECKPOINTS.iterdir()})
    shutil.rmtree(stage.CHECKPOINTS)
    assert [len(names) for names in begun] == [1, 2]


def test_a_training_without_its_corpus_is_a_blank_with_its_reason(trained: Path) -> None:
    assert json.loads((model_path("made", "lost-seed0") / RECORD).read_text()) == {"absent": "not in the mirror"}
    assert absence(space_path("made", "lost-seed0", "scored"), kind="vectors") == "not in the mirror"


def test_another_seed_and_another_loss_give_another_model(trained: Path) -> None:
    assert model_digests(model_path("made", "tiny-seed0")) != model_digests(model_path("made", "nli-seed1"))
