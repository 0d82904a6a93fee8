"""GEM's score against its four hyper-parameters, one at a time: the sensitivity that its paper's figure 2 shows.

    python -m benchmarks.gem_sweep [--suite paper-mirror] [--out reports/benchmarks]

Reads the words of a suite that was run. Scores the development part of STSb (Pearson of cosines over all pairs, ×100)
and SUBJ (ten-fold accuracy of nested logistic regression), never another test set; the paper's third set, MPQA, joins
where the suite has it. Nothing in params.yaml is chosen by it. Writes gem-sweep.json, .svg and .png, prints the table.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything loads a BLAS

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from pipeline.artifacts import absence, corpus_path, read_table
from pipeline.encoders.encode import WordEncoderParameters, load_lexicon
from pipeline.encoders.protocol import find_method
from pipeline.evaluate.case import Case, task_of
from pipeline.evaluate.classification import predict_by_logistic
from pipeline.evaluate.parameters import EvaluateParameters
from pipeline.evaluate.similarities import cosines
from pipeline.evaluate.similarity import score_similarity
from pipeline.params import load_parameters
from pipeline.report.figures import GRID, MUTED, STYLE, figure_bytes

# Block of word_encoders -> its name in the figure, its look. Classification, which is slow, takes the last alone.
BLOCKS = {
    "wl-gem": ("words as they are", "s--", "#0e9f8f"),
    "wl-gem-unit": ("words of length 1", "o-", "#7c2d12"),
}
CORPORA = {"stsb-dev": "Pearson, STSb dev, ×100", "subj": "accuracy, SUBJ, ×100", "mpqa": "accuracy, MPQA, ×100"}
SWEEPS = {
    "window": [1, 3, 5, 7, 9, 13],
    "candidates": [20, 30, 45, 60, 75],
    "removed": [0, 5, 10, 17, 25, 35, 45],
    "power": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
}
PUBLISHED = {"window": 7, "candidates": 45, "removed": 17, "power": 3}
HEADLINE = "pearson.all.cosine"


def score(suite: str, corpus: str, block: str, changed: dict[str, Any]) -> float:
    """Of the encoder of a block with some settings changed, ×100: Pearson of cosines, or accuracy.

    Classification sees the vectors as `evaluate` does, scaled to a median length of 1.
    """
    parameters = load_parameters(WordEncoderParameters, f"word_encoders.{block}")
    settings = parameters.method_settings(block).model_copy(update=changed)
    texts: list[str] = read_table(corpus_path(suite, corpus, "sentences"), kind="sentences")["text"].to_pylist()
    encoder = find_method("gem").build(load_lexicon(suite, parameters), settings)
    vectors = encoder.fit(texts).encode(texts).vectors
    task = task_of(corpus_path(suite, corpus, "items"))
    items = read_table(corpus_path(suite, corpus, "items"), kind=f"items.{task}").to_pydict()
    case = Case(corpus, task, items, {}, vectors)
    if task == "similarity":
        cosine, _ = cosines(vectors, case.pairs)
        human = np.asarray(items["score"], dtype=np.float64)
        return 100 * float(score_similarity({"cosine": cosine}, human, [""] * len(human))[HEADLINE] or 0)
    rules = load_parameters(EvaluateParameters, "evaluate")
    said = predict_by_logistic(
        case.scaled[np.asarray(items["row"])], case.labels, items["split"], folds=rules.folds,
        inner_folds=rules.inner_folds, strengths=rules.strengths, seed=rules.seed,
    )  # fmt: skip
    return 100 * float((said.predicted == case.labels[said.items]).mean())


def sweep(suite: str) -> Iterator[dict[str, Any]]:
    """One row per corpus, block, hyper-parameter and value."""
    for corpus in CORPORA:
        items = corpus_path(suite, corpus, "items")
        if not items.exists() or absence(items, kind=f"items.{task_of(items)}") is not None:
            continue
        for block in BLOCKS if task_of(items) == "similarity" else list(BLOCKS)[-1:]:
            for name, values in SWEEPS.items():
                for value in values:
                    found = round(score(suite, corpus, block, {name: value}), 2)
                    yield {"block": block, "corpus": corpus, "parameter": name, "score": found, "value": value}


def draw(rows: list[dict[str, Any]]) -> Figure:
    """A row of panels per corpus, a panel per hyper-parameter; the published default is a dotted line."""
    corpora = [corpus for corpus in CORPORA if any(row["corpus"] == corpus for row in rows)]
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(9.6, 0.6 + 2.5 * len(corpora)), layout="constrained")
        panels: Any = figure.subplots(len(corpora), len(SWEEPS), sharey="row", squeeze=False)
        for line, corpus in zip(panels, corpora, strict=True):
            for axes, name in zip(line, SWEEPS, strict=True):
                for block, (label, look, colour) in BLOCKS.items():
                    own = [
                        row for row in rows if (row["block"], row["corpus"], row["parameter"]) == (block, corpus, name)
                    ]
                    if own:
                        places, scores = [row["value"] for row in own], [row["score"] for row in own]
                        axes.plot(places, scores, look, color=colour, markersize=4, linewidth=1.4, label=label)
                axes.axvline(PUBLISHED[name], color=MUTED, linestyle=":", linewidth=1)
                axes.set_xlabel(name)
                axes.grid(color=GRID, linewidth=0.8)
                for side in ("top", "right"):
                    axes.spines[side].set_visible(False)
            line[0].set_ylabel(CORPORA[corpus], fontsize=8.5)
        figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
        figure.suptitle(
            "GEM against its hyper-parameters; WordLlama's words, dotted: the published default",
            x=0.01, ha="left", fontsize=11, fontweight="bold",
        )  # fmt: skip
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="paper-mirror")
    parser.add_argument("--out", type=Path, default=Path("reports/benchmarks"))
    arguments = parser.parse_args()
    rows = []
    with threadpool_limits(1):
        for row in sweep(arguments.suite):
            rows.append(row)
            print(
                f"{row['corpus']:10} {row['block']:12} {row['parameter']:10} {row['value']:5g} {row['score']:6.2f}",
                flush=True,
            )
    arguments.out.mkdir(parents=True, exist_ok=True)
    content = {"protocol": HEADLINE, "rows": rows, "suite": arguments.suite}
    text = json.dumps(content, indent=1, sort_keys=True) + "\n"
    (arguments.out / "gem-sweep.json").write_text(text, encoding="utf-8")
    for kind in ("svg", "png"):
        (arguments.out / f"gem-sweep.{kind}").write_bytes(figure_bytes(draw(rows), kind))


if __name__ == "__main__":
    main()
