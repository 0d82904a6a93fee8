"""Stage `embed`: the vectors of one corpus by one sentence transformer."""

from __future__ import annotations

from pydantic import Field

from pipeline.base.artifacts import (
    absence,
    corpus_path,
    read_record,
    read_table,
    space_path,
    write_absence,
    write_vectors,
)
from pipeline.base.params import load_parameters
from sentfold.encoders.model_folder import ModelSource, locate_model, model_digests
from sentfold.encoders.transformer import encode_sentences, load_model
from sentfold.settings import Parameters


class EmbedParameters(Parameters):
    """Settings of all transformers.

    batch_size   largest number of sentences per batch; all sentences of a batch have the same number of tokens
    """

    batch_size: int = Field(ge=1, le=4096)


def embed(suite: str, corpus: str, encoder: str) -> int:
    """Embed one corpus with one encoder and write the vectors. Returns the number of sentences."""
    model_source = load_parameters(ModelSource, f"encoders.{encoder}")
    plan = load_parameters(EmbedParameters, "embed")
    source, target = corpus_path(suite, corpus, "sentences"), space_path(suite, encoder, corpus)
    reason = absence(source, kind="sentences")
    if reason is not None:
        write_absence(target, reason, kind="vectors", inputs=[source])
        return 0
    sentences = read_table(source, kind="sentences").column("text").to_pylist()
    folder = locate_model(encoder, model_source)
    model = load_model(encoder, folder)
    encoding = encode_sentences(model, sentences, batch_size=plan.batch_size, label=f"{encoder} {corpus}")
    write_vectors(
        target,
        encoding.vectors,
        parameters={"encoder": model_source.model_dump(), **plan.model_dump()},
        inputs=[source],
        notes={
            "batches": encoding.batches,
            "blank": encoding.blank,
            "dimension": encoding.vectors.shape[1],
            "model": model_digests(folder),
            "sentences": len(sentences),
            "task": read_record(source, kind="sentences")["notes"]["task"],
            "truncated": encoding.truncated,
        },
    )
    return len(sentences)
