"""Stage `embed_trained`: the vectors of one corpus by one encoder that the stage `train` trained."""

from __future__ import annotations

from pipeline.base.artifacts import (
    absence,
    corpus_path,
    read_json,
    read_record,
    read_table,
    space_path,
    write_absence,
    write_vectors,
)
from pipeline.trainings import RECORD, model_path
from sentfold.encoders.model_folder import model_digests
from sentfold.encoders.transformer import encode_sentences, load_model

TRAINED = {"base": dict, "parameters": dict, "pairs": int, "seed": int, "trained_on": str}
BATCH = 64  # largest number of sentences per batch, all of the same number of tokens; changes no vector but by rounding


def embed_trained(suite: str, corpus: str, space: str) -> int:
    """Embed one corpus with one trained encoder and write the vectors. Returns the number of sentences.

    Raises ArtifactError for a wrong artifact, and for a record of the training that the stage `train` does not write.
    """
    folder, source = model_path(suite, space), corpus_path(suite, corpus, "sentences")
    record = read_json(folder / RECORD, "the record of a training")
    if "absent" not in record:
        read_json(folder / RECORD, "the record of a training", **TRAINED)
    target, reason = space_path(suite, space, corpus), absence(source, kind="sentences") or record.get("absent")
    if reason is not None:
        write_absence(target, str(reason), kind="vectors", inputs=[source])
        return 0
    sentences = read_table(source, kind="sentences").column("text").to_pylist()
    encoding = encode_sentences(load_model(space, folder), sentences, batch_size=BATCH, label=f"{space} {corpus}")
    write_vectors(
        target,
        encoding.vectors,
        parameters={**record, "batch_size": BATCH},
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
