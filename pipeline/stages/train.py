"""Stage `train`: a sentence transformer trained on pairs, as a model folder, and the curve of its training."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import sentfold
from pipeline.base.artifacts import absence, corpus_path, kind_of, read_table
from pipeline.base.params import PARAMS_FILE, load_parameters
from pipeline.trainings import RECORD, PairsSource, curve_path, load_training, model_path
from sentfold.encoders.model_folder import ModelSource, model_digests
from sentfold.errors import ParameterError, located
from sentfold.files import sha256_of, write_json
from sentfold.poolings.hidden_states import locate_layers, transformer_folder
from sentfold.training.train import LabelledPairs, load_transformer, save_encoder, train_encoder

ENTAILMENT, CONTRADICTION = 0, 2  # labels of a corpus of inference
CHECKPOINTS = Path(".sentfold") / "training"  # on this machine alone; no output of a stage
PACKAGE = Path(sentfold.__file__).parent
CODE = (PACKAGE / "training", PACKAGE / "poolings", PACKAGE / "encoders", Path(__file__))
LIBRARIES = ("accelerate", "sentence-transformers", "torch", "transformers")


def train(suite: str, space: str, training: str, seed: int) -> Mapping[str, Any]:
    """Train one encoder with one seed; write its model folder and its curve. Returns how it was trained.

    A training that was killed continues from its last checkpoint. The checkpoints of a training have a folder whose
    name is the hash of everything that decides the result.
    """
    parameters = load_training(training)
    source = load_parameters(ModelSource, f"encoders.{parameters.base}")
    target, data = model_path(suite, space), parameters.data
    used = choose_corpus(suite, data)
    reasons = [absence(corpus_path(suite, corpus, "items"), kind=_kind(suite, corpus)) for corpus in (used, data.dev)]
    if any(reasons):
        absent = {"absent": next(filter(None, reasons))}
        write_json(target / RECORD, absent)
        write_json(curve_path(suite, space), absent)
        return absent
    folder = transformer_folder(parameters.base, locate_layers(parameters.base, source))
    pairs, dev = read_pairs(suite, used, data, draw=True), read_pairs(suite, data.dev, data, draw=False)
    record = {
        "base": source.model_dump(),
        "parameters": parameters.model_dump(mode="json", exclude={"seeds"}),
        "pairs": len(pairs),
        "seed": seed,
        "trained_on": used,
    }
    read = [corpus_path(suite, corpus, part) for corpus in (used, data.dev) for part in ("sentences", "items")]
    decides = {
        **record,
        "code": code_digests(CODE),
        "inputs": [sha256_of(path) for path in read],
        "libraries": {name: version(name) for name in LIBRARIES},
        "model": model_digests(folder),
    }
    key = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:16]
    with located(f"{PARAMS_FILE}: trainings.{training}"):
        transformer = load_transformer(parameters.base, folder, max_length=parameters.trainer.max_length)
        made = train_encoder(transformer, parameters.recipe, pairs, dev, seed=seed, checkpoints=CHECKPOINTS / key)
    save_encoder(made.model, target)
    write_json(target / RECORD, record)
    write_json(curve_path(suite, space), {**record, "best_step": made.best, "curve": list(made.curve)})
    shutil.rmtree(CHECKPOINTS / key)
    return record


def code_digests(places: Iterable[Path]) -> list[str]:
    """The sha256 of each Python source in the places, so that no training continues what other code began."""
    return [sha256_of(path) for place in places for path in sorted(place.rglob("*.py") if place.is_dir() else [place])]


def choose_corpus(suite: str, data: PairsSource) -> str:
    """The corpus that is trained on: `train`, or `otherwise` if the source lacks `train`."""
    missing = absence(corpus_path(suite, data.train, "items"), kind=_kind(suite, data.train)) is not None
    return data.otherwise if missing and data.otherwise is not None else data.train


def read_pairs(suite: str, corpus: str, data: PairsSource, *, draw: bool) -> LabelledPairs:
    """The labelled pairs of a corpus. Raises ParameterError for a corpus without pairs.

    draw  whether `data.pairs` of them are drawn
    """
    kind = _kind(suite, corpus)
    items = read_table(corpus_path(suite, corpus, "items"), kind=kind).to_pydict()
    if kind == "items.similarity":
        scores = np.array(items["score"], dtype=np.float64)
        labels = scores / data.scale if data.least is None else (scores >= data.least).astype(np.float64)
        rows = np.arange(len(labels))
    elif kind == "items.inference":
        given = np.array(items["label"])
        rows, labels = np.flatnonzero(np.isin(given, (ENTAILMENT, CONTRADICTION))), (given == ENTAILMENT) * 1.0
    else:
        raise ParameterError(
            "an encoder cannot be trained on a corpus of this task",
            where=f"{PARAMS_FILE}: trainings",
            expected="similarity or inference",
            got=f"{corpus}: {kind.removeprefix('items.')}",
        )
    texts = read_table(corpus_path(suite, corpus, "sentences"), kind="sentences").column("text").to_pylist()
    if draw and data.pairs is not None:
        rows = np.sort(np.random.default_rng(data.seed).permutation(rows)[: data.pairs])
    first, second = ([texts[items[column][row]] for row in rows] for column in ("row1", "row2"))
    return LabelledPairs(first, second, labels[rows].tolist())


def _kind(suite: str, corpus: str) -> str:
    """The kind of the items of a corpus, "items.<task>"."""
    return kind_of(corpus_path(suite, corpus, "items"))
