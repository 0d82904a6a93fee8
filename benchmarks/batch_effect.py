"""How much a sentence's vector depends on the sentences embedded with it.

    python -m benchmarks.batch_effect [--sentences 400]

Embeds sentences of the lee corpus once in planned batches and once each alone, and prints the largest
difference of any coordinate and of any cosine. Padding plays no part: a batch holds one token length.
"""

from __future__ import annotations

import argparse

import numpy as np

from pipeline.base.params import load_parameters
from pipeline.corpora.catalogue import find_corpus
from pipeline.corpora.package import read_split
from pipeline.stages.download import number_sentences
from sentfold.encoders.model_folder import ModelSource, locate_model
from sentfold.encoders.transformer import encode_sentences, load_model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=400)
    count = parser.parse_args().sentences
    lee = find_corpus("lee")
    reading = read_split("lee", lee.dataset, "all")
    sentences = number_sentences([reading.frame["sentence1"].to_list()], list(reading.further))[0][:count]
    model = load_model("minilm", locate_model("minilm", load_parameters(ModelSource, "encoders.minilm")))
    together = encode_sentences(model, sentences, batch_size=64).vectors
    alone = np.vstack([encode_sentences(model, [sentence], batch_size=64).vectors for sentence in sentences])
    cosine = np.abs(together.astype(float) @ together.T - alone.astype(float) @ alone.T).max()
    coordinate = np.abs(together - alone).max()
    print(f"{len(sentences)} sentences: largest difference of a coordinate {coordinate:.1e}, of a cosine {cosine:.1e}")


if __name__ == "__main__":
    main()
