"""The hidden states of a Hugging Face encoder, and vectors pooled from them. Needs `sentfold[text]`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from sentfold.encoders.base.protocol import Encoded
from sentfold.encoders.model_folder import ModelSource, check_digests, locate_model
from sentfold.encoders.model_safety import refuse_lower_case, refuse_prompt, refuse_unsafe

# torch has to run on one thread wherever vectors are made, and the folder of encoders must not change.
from sentfold.encoders.transformer import (
    SAFE_WEIGHTS,
    _one_thread,
    check_finite,
    lack,
    missing_weights,
    most_positions,
    most_words,
    plan_batches,
    token_lengths,
)
from sentfold.errors import EncoderError, ParameterError, first_line
from sentfold.poolings.pooling import HiddenStates, Pooling

MODULES = "modules.json"  # which a folder of sentence-transformers has


@dataclass(frozen=True)
class LayeredModel:
    """A loaded transformer whose layers can be read, on the CPU in float32.

    model       of the library transformers
    tokenizer   which puts [CLS] before a text and [SEP] behind it
    max_length  a text is cut to this number of tokens, [CLS] and [SEP] included
    has_pooler  whether the folder has the weights of the model's own pooled output
    """

    model: Any
    tokenizer: Any
    max_length: int
    has_pooler: bool

    def read(self, texts: Sequence[str]) -> HiddenStates:
        """The hidden states of texts that have the same number of tokens."""
        import torch

        tokens = self.tokenizer(list(texts), truncation=True, max_length=self.max_length, return_tensors="pt")
        with torch.inference_mode():
            made = self.model(**tokens, output_hidden_states=True)
        pooled = made.pooler_output if self.has_pooler else None
        return HiddenStates(torch.stack(made.hidden_states), pooled)


def load_layers(name: str, folder: Path, *, max_length: int = 128) -> LayeredModel:
    """Load an encoder: safetensors only, no code from the folder.

    name        of the encoder, for error messages
    folder      with config.json, or with modules.json, as sentence-transformers saves a model
    max_length  3 or more, at most the number of positions that the model has
    Raises EncoderError, and ParameterError for max_length.
    """
    folder = transformer_folder(name, folder)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging
    except ModuleNotFoundError as error:
        raise EncoderError(
            f"encoder '{name}' needs a library that is not installed", where="the Python environment",
            got=f"no module '{error.name}'", remedy="pip install '.[text]' in a clone of sentfold",
        ) from None  # fmt: skip
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
    safe: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **safe)
        model = AutoModel.from_pretrained(folder, **SAFE_WEIGHTS, **safe)
    except Exception as error:  # noqa: BLE001  # a damaged folder makes torch, transformers or json raise anything
        raise _refusal(name, folder, f"{type(error).__name__}: {first_line(error)}") from None
    if got := lack(model, tokenizer):
        raise _refusal(name, folder, got)
    if not isinstance(tokenizer.model_max_length, int | float):
        raise _refusal(name, folder, f"a model_max_length of {tokenizer.model_max_length!r}")
    if model.config.is_encoder_decoder or len(tokenizer("")["input_ids"]) != 2:
        raise _refusal(name, folder, "a model or a tokenizer of another kind")
    stated = getattr(model.config, "max_position_embeddings", None)
    stated = stated if isinstance(stated, int) and stated > 0 else np.inf  # XLNet has -1: no limit
    most = min(most_positions(model), stated, tokenizer.model_max_length)
    if not 3 <= max_length <= most:
        raise ParameterError("the model cannot read texts of this length", where="max_length",
                             expected=f"3 to {most} tokens", got=str(max_length))  # fmt: skip
    has_pooler = getattr(model, "pooler", None) is not None and not missing_weights(model)
    return LayeredModel(model.float().eval(), tokenizer, max_length, has_pooler)


def pool_texts(
    model: LayeredModel,
    texts: Sequence[str],
    poolings: Mapping[str, Pooling],
    *,
    batch_size: int = 32,
    label: str = "",
) -> dict[str, Encoded]:
    """Vectors of each pooling, (n, d) float32 in the order of the texts, by one forward pass per batch.

    poolings    a name of the caller's -> what find_pooling returns
    batch_size  texts per forward pass; all texts of a batch have the same number of tokens, so there is no padding
    label       text before the progress bar
    A vector depends on the other texts only through the blocks that a library splits a matrix product into. A blank
    text has the vector of [CLS] and [SEP] alone. Blank and cut texts are counted. The hidden states of one batch are
    in memory at a time: (L + 1) * batch_size * tokens * d float32. Raises what the poolings raise, and
    EncoderError if a vector is not finite.
    """
    clean = [text.encode("utf-8", errors="surrogatepass").decode("utf-8", errors="replace") for text in texts]
    lengths = token_lengths(model, clean, words=most_words(model.model))
    width = int(model.model.config.hidden_size)
    vectors = {name: np.zeros((len(clean), width), dtype=np.float32) for name in poolings}
    batches = plan_batches(clean, np.minimum(lengths, model.max_length), batch_size=batch_size)
    with _one_thread(), tqdm(total=len(clean), desc=label, unit=" sentences", disable=None, mininterval=0.5) as bar:
        for rows in batches:
            states = model.read([clean[row] for row in rows])
            for name, pooling in poolings.items():
                vectors[name][rows] = pooling(states).numpy()
            bar.update(len(rows))
    for made in vectors.values():
        check_finite(made)
    counted = {
        "blank": sum(not text.strip() for text in clean),
        f"cut at {model.max_length} tokens": int((lengths > model.max_length).sum()),
    }
    return {name: Encoded(made, counted) for name, made in vectors.items()}


def locate_layers(name: str, source: ModelSource) -> Path:
    """The folder of an encoder, which may lack modules.json. The files are checked as locate_model checks them.

    Raises EncoderError, or UnansweredError if the hub does not answer.
    """
    if source.folder is None or (Path(source.folder) / MODULES).is_file():
        return locate_model(name, source)
    if not (Path(source.folder) / "config.json").is_file():
        raise _refusal(name, Path(source.folder), "no config.json")
    check_digests(name, Path(source.folder), source.sha256)
    return Path(source.folder)


def transformer_folder(name: str, folder: Path) -> Path:
    """The transformer's own folder: of a sentence transformer, that of its first module. Raises EncoderError."""
    refuse_unsafe(name, folder)
    refuse_prompt(name, folder)
    if (folder / MODULES).is_file():
        folder /= str(json.loads((folder / MODULES).read_text(encoding="utf-8"))[0].get("path", ""))
    if not (folder / "config.json").is_file():
        raise _refusal(name, folder, "no config.json")
    refuse_lower_case(name, folder)
    return folder


def _refusal(name: str, folder: Path, got: str) -> EncoderError:
    return EncoderError(
        f"the layers of encoder '{name}' cannot be read",
        where=str(folder),
        expected="a transformer encoder with config.json, safetensors weights, and a tokenizer with [CLS] and [SEP]",
        got=got,
        remedy="save the model again with save_pretrained, or give the folder of another model",
    )
