"""fse's sentences per second on words, counts and sentences from a folder; run by benchmarks/encoders.py.

    PYTHON benchmarks/fse_peer.py FOLDER REPEATS

Needs only numpy, gensim and fse, and so can run in an environment of its own: fse 1.0 wants older libraries
than sentfold. Tokens in, one worker, CPU time, best of the repeats; training (which finds the directions)
and inference (which removes them) apart. Prints JSON.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from fse import SIF, Average, IndexedList, uSIF
from fse.models.average import FAST_VERSION
from gensim.models import KeyedVectors


def main() -> None:
    folder, repeats = Path(sys.argv[1]), int(sys.argv[2])
    words = folder.joinpath("words.txt").read_text(encoding="utf-8").split("\n")
    table = np.load(folder / "vectors.npy")
    counts = np.load(folder / "counts.npy")
    lines = folder.joinpath("sentences.txt").read_text(encoding="utf-8").split("\n")
    vectors = KeyedVectors(table.shape[1])
    vectors.add_vectors(words, table)
    for word, count in zip(words, counts.tolist(), strict=True):
        vectors.set_vecattr(word, "count", max(int(count), 1))
    tokens = [line.split() for line in lines]
    pairs = [(words, row) for row, words in enumerate(tokens)]
    found = {"compiled": FAST_VERSION > 0}
    for name, model in (("average", Average), ("sif", SIF), ("usif", uSIF)):
        training, inference = [], []
        for _ in range(repeats):
            made = model(vectors, workers=1)
            start = time.process_time()
            made.train(IndexedList(tokens))
            training.append(time.process_time() - start)
            start = time.process_time()
            made.infer(pairs)
            inference.append(time.process_time() - start)
        found[name] = {
            "per_second_infer": round(len(tokens) / min(inference)),
            "per_second_train": round(len(tokens) / min(training)),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
