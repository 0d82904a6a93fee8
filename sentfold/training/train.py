"""Train a sentence transformer on pairs. A training that was killed continues from its last checkpoint.

Needs `sentfold[train]`: the trainer of sentence-transformers asks for accelerate.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.base.sampler import DefaultBatchSampler

from sentfold.encoders.model_safety import refuse_lower_case, refuse_prompt, refuse_unsafe
from sentfold.encoders.transformer import SAFE_WEIGHTS, _one_thread, lack
from sentfold.errors import EncoderError, first_line
from sentfold.training.head import build_encoder
from sentfold.training.losses import build_loss
from sentfold.training.settings import Recipe, TrainerSettings

STATE = "trainer_state.json"  # the last file of a checkpoint that the trainer writes
METRIC = "eval_dev_spearman_cosine"


@dataclass(frozen=True)
class LabelledPairs:
    """Pairs of sentences with labels from 0 for unlike to 1 for alike; all three are equally long."""

    first: Sequence[str]
    second: Sequence[str]
    labels: Sequence[float]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Trained:
    """A trained encoder.

    model  as it was at the best score on the development pairs
    curve  in order: {step, epoch, loss} of training batches, and {step, epoch, spearman} on development pairs
    best   step of the best score
    """

    model: SentenceTransformer
    curve: tuple[dict[str, float], ...]
    best: int


def load_transformer(name: str, folder: Path, *, max_length: int) -> Transformer:
    """The transformer of a model folder, with or without modules.json: safetensors only, no code. Raises EncoderError.

    max_length  tokens that it reads of a text, at most the number of positions that it has
    """
    refuse_unsafe(name, folder)
    refuse_prompt(name, folder)
    if (folder / "modules.json").is_file():
        folder /= str(json.loads((folder / "modules.json").read_text(encoding="utf-8"))[0].get("path", ""))
    refuse_lower_case(name, folder)
    safe = {"local_files_only": True, "trust_remote_code": False}
    try:
        transformer: Transformer = Transformer(
            str(folder),
            max_seq_length=max_length,
            model_kwargs={**safe, **SAFE_WEIGHTS},
            processor_kwargs=safe,
            config_kwargs=safe,
        )
    except Exception as error:  # noqa: BLE001  # a damaged folder makes torch, transformers or json raise anything
        raise _refusal(name, folder, f"{type(error).__name__}: {first_line(error)}") from None
    if got := lack(transformer.model, transformer.tokenizer):
        raise _refusal(name, folder, got)
    transformer.float()
    return transformer


def _refusal(name: str, folder: Path, got: str) -> EncoderError:
    return EncoderError(
        f"encoder '{name}' cannot be trained",
        where=folder.name,
        expected="a transformer with safetensors weights",
        got=got,
        remedy="save the model again with save_pretrained",
    )


def train_encoder(
    transformer: Transformer, recipe: Recipe, train: LabelledPairs, dev: LabelledPairs, *, seed: int, checkpoints: Path
) -> Trained:
    """Train the transformer with a head on pairs; keep what is best on the development pairs.

    transformer  which the training changes
    dev          pairs with labels; the score is Spearman's correlation of labels and cosines
    seed         of the head's first weights, of the order of the pairs and of dropout
    checkpoints  a folder for this training alone. If it has a complete checkpoint, the training continues from it. The
                 caller deletes it. A checkpoint has pickles; torch loads them with weights_only.
    On the CPU the same inputs give the same bits, however often the training was killed. Cost: `epochs` forward and
    backward passes over `train`, and a forward pass over `dev` for every score.
    Sources: see build_encoder and build_loss.
    """
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator, SimilarityFunction
    from sentence_transformers.sentence_transformer.trainer import SentenceTransformerTrainer
    from transformers import EarlyStoppingCallback

    settings = recipe.trainer
    with _repeatable(settings.device, seed):
        encoder = build_encoder(transformer, recipe.head)
        patience = settings.patience
        trainer = SentenceTransformerTrainer(
            model=encoder.to(settings.device),
            args=_arguments(settings, len(train), seed=seed, folder=checkpoints),
            train_dataset=_dataset(train),
            loss=build_loss(recipe.loss, encoder),
            evaluator=EmbeddingSimilarityEvaluator(
                list(dev.first), list(dev.second), list(dev.labels), name="dev", write_csv=False,
                main_similarity=SimilarityFunction.COSINE, similarity_fn_names=["cosine"],
                batch_size=settings.batch_size,
            ),
            callbacks=[_score_at_the_end(), *([EarlyStoppingCallback(patience)] if patience else [])],
        )  # fmt: skip
        trainer.train(resume_from_checkpoint=last_checkpoint(checkpoints))
    state = trainer.state
    return Trained(encoder.cpu().eval(), tuple(_curve(state.log_history)), int(state.best_global_step or 0))


def save_encoder(model: SentenceTransformer, folder: Path) -> None:
    """Write a model folder that SentenceTransformer(folder) loads; the same model gives the same bytes."""
    model.save_pretrained(str(folder), create_model_card=False)


def last_checkpoint(folder: Path) -> str | None:
    """The newest complete checkpoint of a training, or None. Unfinished ones are deleted."""
    complete: dict[int, Path] = {}
    for path in folder.glob("checkpoint-*"):
        try:
            complete[int(json.loads((path / STATE).read_text(encoding="utf-8"))["global_step"])] = path
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    return str(complete[max(complete)]) if complete else None


class EpochSampler(DefaultBatchSampler):
    """Batches in an order that depends on the seed and the epoch alone, so that a resumed training has the same ones.

    The library's own order depends on the state of a generator, which no checkpoint has.
    """

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        sampled: Any = self.sampler  # the data set, as the library passes it
        order = torch.randperm(len(sampled), generator=generator).tolist()
        yield from (order[start : start + self.batch_size] for start in range(0, len(order), self.batch_size))


@contextmanager
def _repeatable(device: str, seed: int) -> Iterator[None]:
    """The random state of a seed; on the CPU, one thread and deterministic operations. All is put back at the end."""
    before = torch.are_deterministic_algorithms_enabled()
    with _one_thread() if device == "cpu" else nullcontext(), torch.random.fork_rng():
        torch.manual_seed(seed)
        torch.use_deterministic_algorithms(device == "cpu")
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before)


def _arguments(settings: TrainerSettings, pairs: int, *, seed: int, folder: Path) -> Any:
    from sentence_transformers.sentence_transformer.training_args import SentenceTransformerTrainingArguments

    steps = math.ceil(pairs / settings.batch_size) * settings.epochs
    return SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.clip,
        warmup_steps=math.ceil(settings.warmup * steps),
        batch_sampler=EpochSampler,
        seed=seed,
        use_cpu=settings.device == "cpu",
        dataloader_pin_memory=False,
        eval_strategy="steps",
        eval_steps=settings.evaluate_every,
        save_strategy="steps",
        save_steps=settings.evaluate_every,
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model=METRIC,
        greater_is_better=True,
        restore_callback_states_from_checkpoint=True,
        logging_steps=max(1, min(settings.evaluate_every, steps // 20)),
        report_to="none",
        disable_tqdm=True,
    )


def _dataset(pairs: LabelledPairs) -> Any:
    from datasets import Dataset

    return Dataset.from_dict(
        {"sentence1": list(pairs.first), "sentence2": list(pairs.second), "label": [float(y) for y in pairs.labels]}
    )


def _score_at_the_end() -> Any:
    """A callback: the model after the last step is scored and saved, whatever `evaluate_every` is."""
    from transformers import TrainerCallback

    class ScoreAtTheEnd(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            if state.global_step >= state.max_steps:
                control.should_evaluate = control.should_save = True
            return control

    return ScoreAtTheEnd()


def _curve(history: Sequence[dict[str, Any]]) -> Iterator[dict[str, float]]:
    """The losses and scores of the trainer's log, without its times."""
    for entry in history:
        for key, name in (("loss", "loss"), (METRIC, "spearman")):
            if key in entry:
                yield {
                    "epoch": round(float(entry["epoch"]), 4),
                    "step": int(entry["step"]),
                    name: round(float(entry[key]), 6),
                }
