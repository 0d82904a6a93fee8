"""How much wider the intervals on word pairs are when words are drawn instead of pairs.

    python -m benchmarks.recurring_words [--suite quick] [--resamples 2000] [--json FILE]

`simlex` and `wordsim` are resampled by pairs, though their words recur. For each space made from an encoder's this
prints its difference to the encoder in Spearman of cosine with the interval by pairs, which takes recurring words
for new ones and is too short, and the interval by words, where a pair weighs the product of its words' draws, which
adds the pairs' own noise three times and is too long. The truth lies between. Needs the artifacts of `sentfold repro`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from pipeline.artifacts import corpus_path, read_table, read_vectors, space_path
from pipeline.evaluate.bootstrap import (
    corpus_seed,
    draw_weights,
    make_design,
    percentile_interval,
    sort_once,
    weighted_spearman,
)
from pipeline.evaluate.similarities import pair_similarities
from pipeline.suite import load_suite

CORPORA = ("simlex", "wordsim")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="quick")
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = []
    suite = load_suite(arguments.suite)
    print(f"{'corpus':8} {'space':22} {'difference':>10}  {'by pairs':>16}  {'by words':>16}")
    for corpus in (corpus for corpus in CORPORA if corpus in suite.corpora):
        items = read_table(corpus_path(suite.suite, corpus, "items"), kind="items.similarity")
        rows = np.stack([items.column(name).to_numpy().astype(np.int64) for name in ("row1", "row2")], axis=1)
        human = sort_once(items.column("score").to_numpy().astype(np.float64))
        spaces = [*suite.encoders, *suite.derived_spaces]
        cosines = [
            sort_once(pair_similarities(read_vectors(space_path(suite.suite, space, corpus)), rows)[0]["cosine"])
            for space in spaces
        ]
        ones = np.ones((1, len(rows)))
        values = dict(zip(spaces, 100 * weighted_spearman(cosines, human, ones)[:, 0], strict=True))
        drawn = {}
        for unit in ("items", "texts"):
            design = make_design(unit, rows, [""] * len(rows))
            weights = draw_weights(design, resamples=arguments.resamples, seed=corpus_seed(0, corpus))
            replicates = np.concatenate([weighted_spearman(cosines, human, chunk) for chunk in weights], axis=1)
            drawn[unit] = dict(zip(spaces, 100 * replicates, strict=True))
        for space in suite.derived_spaces:
            encoder = suite.encoder_of(space)
            intervals = [percentile_interval(drawn[u][space] - drawn[u][encoder], confidence=0.95) for u in drawn]
            shown = ["" if i is None else f"[{i[0]:+.2f}, {i[1]:+.2f}]" for i in intervals]
            difference = values[space] - values[encoder]
            print(f"{corpus:8} {space:22} {difference:+10.2f}  {shown[0]:>16}  {shown[1]:>16}")
            pairs, words = (None if i is None else [round(bound, 2) for bound in i] for i in intervals)
            found.append(
                {
                    "by pairs": pairs,
                    "by words": words,
                    "corpus": corpus,
                    "difference": round(difference, 2),
                    "space": space,
                }
            )
    if arguments.json:
        content = {"resamples": arguments.resamples, "suite": suite.suite, "differences": found}
        arguments.json.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
