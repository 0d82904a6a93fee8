"""Training: what it learns, that a kill leaves no trace in the result, and that a plain folder holds the result."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("accelerate", reason="the trainer needs requirements-train.lock")

from sentfold.encoders.model_folder import model_digests
from sentfold.encoders.model_safety import refuse_unsafe
from sentfold.errors import EncoderError
from sentfold.training.settings import Recipe
from sentfold.training.train import STATE, LabelledPairs, last_checkpoint, load_transformer, save_encoder, train_encoder
from tests.tiny_bert import WORDS, write_bert

PAIRS = 48
STEPS = 6  # of an epoch
RECIPE: dict[str, Any] = {
    "head": {"channels": 4, "activation": "relu"},
    "loss": {"kind": "cosine-regression"},
    "trainer": {"batch_size": 8, "epochs": 4, "evaluate_every": 4, "learning_rate": 1e-2, "max_length": 20},
}


def make_pairs(seed: int, n: int = PAIRS) -> LabelledPairs:
    """Pairs that share a first half of their words or none of them; alike if they share it."""
    rng, words = np.random.default_rng(seed), WORDS.split()
    firsts = [" ".join(rng.choice(words, size=4)) for _ in range(n)]
    seconds = [text if row % 2 else " ".join(rng.choice(words, size=4)) for row, text in enumerate(firsts)]
    return LabelledPairs(firsts, [f"{text} {rng.choice(words)}" for text in seconds], [float(r % 2) for r in range(n)])


def train(bert: Path, checkpoints: Path, target: Path, *, seed: int = 0, **trainer: Any) -> Any:
    """Train on made-up pairs and save the folder."""
    recipe = Recipe.model_validate({**RECIPE, "trainer": {**RECIPE["trainer"], **trainer}})
    transformer = load_transformer("bert", bert, max_length=recipe.trainer.max_length)
    made = train_encoder(transformer, recipe, make_pairs(0), make_pairs(1), seed=seed, checkpoints=checkpoints)
    save_encoder(made.model, target)
    shutil.rmtree(checkpoints)
    return made


def is_json(file: Path) -> bool:
    """Whether the file exists and was written to its end."""
    try:
        json.loads(file.read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    return True


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert"), layers=2)


@pytest.fixture(scope="module")
def finished(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A training that nothing disturbed, and its folder."""
    folder = tmp_path_factory.mktemp("finished")
    return train(bert, folder / "checkpoints", folder / "model"), folder / "model"


CHILD = """
import sys
from pathlib import Path
from tests.training.test_train import train
train(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("wait_for", [4, 16], ids=["first epoch", "third epoch"])
def test_a_training_that_is_killed_in_mid_epoch_continues_and_gives_the_same_bytes(
    bert: Path, finished: tuple[Any, Path], tmp_path: Path, wait_for: int
) -> None:
    checkpoints, target = tmp_path / "checkpoints", tmp_path / "model"
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(bert), str(checkpoints), str(target)])
    # A checkpoint counts from the moment its state is whole: a kill while the state is written leaves the one before.
    while child.poll() is None and not is_json(checkpoints / f"checkpoint-{wait_for}" / STATE):
        time.sleep(0.002)
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL and not target.exists()
    at = last_checkpoint(checkpoints)
    assert at is not None and wait_for <= int(at.rpartition("-")[2]) < 4 * STEPS
    made = train(bert, checkpoints, target)
    assert contents(target) == contents(finished[1])
    assert made.curve == finished[0].curve and made.best == finished[0].best


def test_an_unfinished_checkpoint_is_deleted_and_an_older_one_is_used(tmp_path: Path) -> None:
    for step, state in ((4, json.dumps({"global_step": 4})), (8, '{"global_st'), (12, None), (16, "[]")):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        if state is not None:
            (folder / STATE).write_text(state)
    assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-4")
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-4"]
    assert last_checkpoint(tmp_path / "none") is None


def test_a_file_and_a_link_in_the_place_of_checkpoints_are_removed(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-1").write_text("x")
    (tmp_path / "other").mkdir()
    (tmp_path / "checkpoint-2").symlink_to(tmp_path / "other")
    assert last_checkpoint(tmp_path) is None
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_a_base_with_a_prompt_is_refused(bert: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(bert, tmp_path / "bert"))
    prompts = {"prompts": {"q": "query: "}, "default_prompt_name": "q"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    with pytest.raises(EncoderError, match="puts a prompt before all texts"):
        load_transformer("bert", folder, max_length=20)


def test_training_moves_alike_pairs_together(bert: Path, finished: tuple[Any, Path]) -> None:
    losses = [entry["loss"] for entry in finished[0].curve if "loss" in entry]
    scores = [entry["spearman"] for entry in finished[0].curve if "spearman" in entry]
    assert losses[-1] < losses[0] / 2
    # Labels of two values: the largest possible rank correlation is about 0.87, and 48 pairs by chance give 0 ± 0.15.
    assert max(scores) > 0.6
    best = next(entry for entry in finished[0].curve if entry.get("spearman") == max(scores))
    assert finished[0].best == best["step"]
    assert len(scores) == STEPS  # every fourth of 24 steps


@pytest.mark.slow
def test_the_last_step_is_scored_and_training_ends_early_without_a_gain(bert: Path, tmp_path: Path) -> None:
    made = train(bert, tmp_path / "a", tmp_path / "m", epochs=1, evaluate_every=4)
    assert [entry["step"] for entry in made.curve if "spearman" in entry] == [4, STEPS]
    # Steps too small to change a rank: the first score is never beaten.
    made = train(bert, tmp_path / "b", tmp_path / "n", learning_rate=1e-12, evaluate_every=2, patience=2)
    assert [entry["step"] for entry in made.curve if "spearman" in entry] == [2, 4, 6]
    assert made.best == 2


@pytest.mark.slow
def test_another_seed_is_another_head_and_the_random_state_outside_stays(
    bert: Path, finished: tuple[Any, Path], tmp_path: Path
) -> None:
    import torch

    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    train(bert, tmp_path / "c", tmp_path / "m", seed=1, epochs=1)
    assert torch.equal(torch.rand(1), expected) and not torch.are_deterministic_algorithms_enabled()
    assert model_digests(tmp_path / "m") != model_digests(finished[1])


def test_plain_sentence_transformers_loads_the_folder_with_equal_vectors(finished: tuple[Any, Path]) -> None:
    from sentence_transformers import SentenceTransformer

    made, folder = finished
    refuse_unsafe("trained", folder)
    texts = list(make_pairs(2).first)
    plain = SentenceTransformer(str(folder), device="cpu")
    np.testing.assert_array_equal(plain.encode(texts), made.model.encode(texts))
    assert plain.encode(texts).shape == (PAIRS, 12)
    assert plain.max_seq_length == 20
    assert not [path for path in folder.rglob("*") if path.suffix in {".bin", ".pt", ".pth", ".py"}]


def test_a_folder_that_lacks_a_layer_or_all_words_is_refused(bert: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(bert, tmp_path / "layer")
    weights = load_file(folder / "model.safetensors")
    save_file(
        {name: w for name, w in weights.items() if "layer.0." not in name},
        folder / "model.safetensors",
        {"format": "pt"},
    )
    with pytest.raises(EncoderError, match="no weights for"):
        load_transformer("bert", folder, max_length=20)
    folder = shutil.copytree(bert, tmp_path / "words")
    for path in [*folder.glob("tokenizer.json"), *folder.glob("vocab.txt")]:
        path.unlink()
    with pytest.raises(EncoderError, match=r"special tokens alone|cannot be trained"):
        load_transformer("bert", folder, max_length=20)


def test_a_folder_without_safe_weights_is_refused(bert: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bert, tmp_path / "bert")
    (folder / "model.safetensors").unlink()
    with pytest.raises(EncoderError, match="cannot be trained"):
        load_transformer("bert", folder, max_length=20)


def test_a_base_that_makes_texts_lower_case_outside_of_its_tokenizer_is_refused(bert: Path, tmp_path: Path) -> None:
    """The training would read its texts as they are."""
    folder = Path(shutil.copytree(bert, tmp_path / "bert"))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 20, "do_lower_case": True}))
    with pytest.raises(EncoderError, match="lower case outside of its tokenizer"):
        load_transformer("bert", folder, max_length=20)
