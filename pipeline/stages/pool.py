"""Stage `pool`: vectors of one corpus pooled from the layers of one transformer, all poolings from one forward pass."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pydantic import Field, field_validator

from pipeline.base.artifacts import (
    absence,
    corpus_path,
    fixed_lists,
    read_record,
    read_table,
    write_absence,
    write_table,
)
from pipeline.base.params import PARAMS_FILE, load_parameters
from pipeline.pooled import KIND, pooled_path
from sentfold.encoders.model_folder import ModelSource, model_digests
from sentfold.errors import located
from sentfold.poolings.hidden_states import load_layers, locate_layers, pool_texts, transformer_folder
from sentfold.poolings.pooling import POOLINGS, Pooling, find_pooling
from sentfold.settings import Parameters, Slug


class PooledSpace(Parameters):
    """One space pooled from the layers. layer_start and window are of sbert-wk; no other pooling reads them."""

    pooling: str
    layer_start: int = Field(default=4, ge=0)
    window: int = Field(default=2, ge=1)

    @field_validator("pooling")
    @classmethod
    def _known(cls, pooling: str) -> str:
        if pooling not in POOLINGS:
            raise ValueError(f"there is no pooling '{pooling}': it is one of {', '.join(POOLINGS)}")
        return pooling

    def build(self) -> Pooling:
        """The pooling as a function of hidden states."""
        return find_pooling(self.pooling, layer_start=self.layer_start, window=self.window)

    def record(self) -> dict[str, Any]:
        """What decides the pooling, JSON-able."""
        return self.model_dump(exclude=set() if self.pooling == "sbert-wk" else {"layer_start", "window"})


class PoolParameters(Parameters):
    """A block of `poolings:`: an encoder's layers and the spaces that are pooled from them.

    max_length  tokens that are read of a text, [CLS] and [SEP] included
    batch_size  largest number of sentences per forward pass; all sentences of a batch have the same number of tokens
    spaces      the end of a space's name -> its pooling
    """

    max_length: int = Field(ge=3)
    batch_size: int = Field(ge=1, le=4096)
    spaces: dict[Slug, PooledSpace]


def pool(suite: str, corpus: str, encoder: str, names: tuple[str, ...]) -> int:
    """Pool one corpus by the poolings `names` of one encoder and write the vectors. Returns the number of sentences."""
    parameters = load_parameters(PoolParameters, f"poolings.{encoder}")
    model_source = load_parameters(ModelSource, f"encoders.{encoder}")
    source, target = corpus_path(suite, corpus, "sentences"), pooled_path(suite, encoder, corpus)
    reason = absence(source, kind="sentences")
    if reason is not None:
        write_absence(target, reason, kind=KIND, inputs=[source])
        return 0
    sentences = read_table(source, kind="sentences").column("text").to_pylist()
    folder = locate_layers(encoder, model_source)
    with located(f"{PARAMS_FILE}: poolings.{encoder}"):
        made = pool_texts(
            load_layers(encoder, folder, max_length=parameters.max_length),
            sentences,
            {name: parameters.spaces[name].build() for name in names},
            batch_size=parameters.batch_size,
            label=f"{encoder} {corpus}",
        )
    blank, cut = made[names[0]].fallbacks.values()
    write_table(
        target,
        pa.table({name: fixed_lists(encoded.vectors) for name, encoded in made.items()}),
        kind=KIND,
        parameters={
            "batch_size": parameters.batch_size,
            "encoder": model_source.model_dump(),
            "max_length": parameters.max_length,
            "spaces": {name: parameters.spaces[name].record() for name in names},
        },
        inputs=[source],
        notes={
            "blank": blank,
            "model": model_digests(transformer_folder(encoder, folder)),
            "sentences": len(sentences),
            "task": read_record(source, kind="sentences")["notes"]["task"],
            "truncated": cut,
        },
    )
    return len(sentences)
