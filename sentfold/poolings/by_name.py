"""Vectors of one pooling of an encoder that a user names: a folder, a package, or a model of the hub."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sentfold.encoders.base.protocol import Encoded
from sentfold.encoders.model_folder import ModelSource, locate_model
from sentfold.errors import EncoderError
from sentfold.fold.texts import find_text_encoder
from sentfold.poolings.hidden_states import load_layers, pool_texts
from sentfold.poolings.pooling import find_pooling
from sentfold.settings import validate


def encode_by_pooling(texts: Sequence[str], *, encoder: str, pooling: str, max_length: int, **settings: int) -> Encoded:
    """Vectors of one pooling of an encoder. Raises EncoderError, UnansweredError and ParameterError.

    encoder     a folder with config.json (with or without modules.json); a package that holds a model; or
                ID@REVISION, a model of the hub and its full commit
    max_length  as load_layers takes it; pooling and the settings as find_pooling takes them
    """
    chosen = find_pooling(pooling, **settings)  # first: a wrong name is reported before the model is loaded
    model = load_layers(encoder, _locate_folder(encoder), max_length=max_length)
    return pool_texts(model, texts, {pooling: chosen})[pooling]


def _locate_folder(name: str) -> Path:
    """The folder of an encoder's model. Raises EncoderError."""
    if Path(name).is_dir():
        return Path(name)
    if "@" in name:
        hub, _, revision = name.rpartition("@")
        return locate_model(name, validate(ModelSource, {"hub": hub, "revision": revision}, where="--encoder"))
    found = find_text_encoder(name)
    if found.kind != "transformer":
        raise EncoderError(
            f"encoder '{name}' has no layers",
            where="--encoder",
            expected="a transformer",
            got=found.kind,
            remedy="give the folder of a transformer, or leave --pooling out",
        )
    return locate_model(name, ModelSource(package=found.package, sha256=found.sha256))
