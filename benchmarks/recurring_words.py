"""How much wider the intervals on word pairs are when words are drawn instead of pairs.

    python -m benchmarks.recurring_words [--suite quick] [--resamples 2000] [--json FILE]

`simlex` and `wordsim` are resampled by pairs, though their words recur. For each space made from an encoder's this
prints its difference to the encoder in Spearman of cosine with the interval by pairs, which takes recurring words
for new ones and is too short, and the interval by words, where a pair weighs the product of its words' draws, which
adds the pairs' own noise three times and is too long. The right interval is between the two.
Needs the artifacts of `sentfold run`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.base.artifacts import corpus_path, read_table, read_vectors, space_path
from pipeline.base.suite import Suite, load_suite
from sentfold.compare.bootstrap import (
    Unit,
    corpus_seed,
    draw_weights,
    make_design,
    percentile_interval,
    sort_once,
    weighted_spearman,
)
from sentfold.measures.base.pairs import pair_similarities

CORPORA = ("simlex", "wordsim")
UNITS: dict[str, Unit] = {"by pairs": "items", "by words": "texts"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="quick")
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    suite = load_suite(arguments.suite)
    corpora = [corpus for corpus in CORPORA if corpus in suite.corpora]
    found = [row for corpus in corpora for row in differences_on(suite, corpus, arguments.resamples)]
    print(f"{'corpus':8} {'space':22} {'difference':>10}  {'by pairs':>16}  {'by words':>16}")
    for row in found:
        shown = [f"[{low:+.2f}, {high:+.2f}]" for low, high in (row["by pairs"], row["by words"])]
        print(f"{row['corpus']:8} {row['space']:22} {row['difference']:+10.2f}  {shown[0]:>16}  {shown[1]:>16}")
    if arguments.json:
        content = {"resamples": arguments.resamples, "suite": suite.suite, "differences": found}
        arguments.json.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def differences_on(suite: Suite, corpus: str, resamples: int) -> list[dict[str, Any]]:
    """Each derived space's difference to its encoder on one corpus, in points, with both intervals."""
    items = read_table(corpus_path(suite.suite, corpus, "items"), kind="items.similarity")
    rows = np.stack([items.column(name).to_numpy().astype(np.int64) for name in ("row1", "row2")], axis=1)
    human = sort_once(items.column("score").to_numpy().astype(np.float64))
    spaces = [*suite.encoders, *suite.derived_spaces]
    vectors = [read_vectors(space_path(suite.suite, space, corpus)) for space in spaces]
    cosines = [sort_once(pair_similarities(own, rows)[0]["cosine"]) for own in vectors]
    values = dict(zip(spaces, 100 * weighted_spearman(cosines, human, np.ones((1, len(rows))))[:, 0], strict=True))
    drawn = {}
    for name, unit in UNITS.items():
        weights = draw_weights(
            make_design(unit, rows, [""] * len(rows)), resamples=resamples, seed=corpus_seed(0, corpus)
        )
        replicates = np.concatenate([weighted_spearman(cosines, human, chunk) for chunk in weights], axis=1)
        drawn[name] = dict(zip(spaces, 100 * replicates, strict=True))
    found = []
    for space in suite.derived_spaces:
        encoder = suite.encoder_of(space)
        row: dict[str, Any] = {"corpus": corpus, "space": space}
        row["difference"] = round(float(values[space] - values[encoder]), 2)
        for name, replicate in drawn.items():
            interval = percentile_interval(replicate[space] - replicate[encoder], confidence=0.95)
            row[name] = [round(bound, 2) for bound in interval or (np.nan, np.nan)]
        found.append(row)
    return found


if __name__ == "__main__":
    main()
