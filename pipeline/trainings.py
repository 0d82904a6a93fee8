"""The blocks of `trainings:` in params.yaml, and the names of what a training writes."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from pipeline.base.params import load_parameters
from sentfold.settings import Parameters, Slug
from sentfold.training.settings import HeadSettings, LossSettings, Recipe, TrainerSettings

RECORD = "training.json"  # in a model folder: how the model was trained, or why it was not


class PairsSource(Parameters):
    """The pairs that a training reads, from corpora that the suite does not score.

    train      a corpus of similarity or inference; otherwise: another one, for a source that lacks the first
    dev        a corpus of similarity; the best score on it decides which step of the training is kept
    pairs      number of training pairs, drawn at random with `seed`; None: all of them
    scale      the label of a similarity pair is its score divided by this number
    least      the label is 1 for a score of at least this number, and 0 otherwise; None: the label is score / scale
    In a corpus of inference, entailment has label 1, contradiction 0, and neutral pairs are left out.
    """

    train: Slug
    otherwise: Slug | None = None
    dev: Slug
    pairs: int | None = Field(default=None, ge=2)
    seed: int = Field(default=0, ge=0)
    scale: float = Field(default=5.0, gt=0)
    least: float | None = None


class TrainingParameters(Parameters):
    """A block of `trainings:`. Each of its seeds is a space, <block>-seed<N>.

    base  a block of `encoders:`, whose transformer is trained; its own pooling is replaced by the head's
    """

    base: Slug
    seeds: list[int] = Field(min_length=1)
    data: PairsSource
    head: HeadSettings = HeadSettings()
    loss: LossSettings
    trainer: TrainerSettings = TrainerSettings()

    @property
    def recipe(self) -> Recipe:
        """What the library trains by."""
        return Recipe(head=self.head, loss=self.loss, trainer=self.trainer)


def load_training(name: str) -> TrainingParameters:
    """The block trainings.<name> of params.yaml. Raises ParameterError."""
    return load_parameters(TrainingParameters, f"trainings.{name}")


def model_path(suite: str, space: str) -> Path:
    """The folder of a trained model."""
    return Path("data") / suite / "models" / space


def curve_path(suite: str, space: str) -> Path:
    """The file of the losses and scores of a training."""
    return Path("reports") / suite / "sweeps" / f"{space}-training" / "curve.json"
