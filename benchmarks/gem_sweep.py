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
from pipeline.evaluate.classification import predict_by_logistic
from pipeline.evaluate.parameters import EvaluateParameters
from pipeline.evaluate.similarities import cosines
from pipeline.evaluate.similarity import score_similarity
from pipeline.params import load_parameters
from pipeline.report.figures import GRID, MUTED, STYLE, figure_bytes

BLOCKS = {"wl-gem": "words as they are", "wl-gem-unit": "words of length 1"}
CORPORA = {"stsb-dev": "Pearson, STSb dev, ×100", "subj": "accuracy, SUBJ, ×100", "mpqa": "accuracy, MPQA, ×100"}
SWEEPS = {
    "window": [1, 3, 5, 7, 9, 13],
    "candidates": [20, 30, 45, 60, 75],
    "removed": [0, 5, 10, 17, 25, 35, 45],
    "power": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
}
HEADLINE = "pearson.all.cosine"


def score(suite: str, corpus: str, block: str, changed: dict[str, Any]) -> float:
    """×100, of the encoder of a block with some settings changed."""
    parameters = load_parameters(WordEncoderParameters, f"word_encoders.{block}")
    settings = parameters.method_settings(block).model_copy(update=changed)
    texts: list[str] = read_table(corpus_path(suite, corpus, "sentences"), kind="sentences")["text"].to_pylist()
    encoder = find_method("gem").build(load_lexicon(suite, parameters), settings)
    vectors = encoder.fit(texts).encode(texts).vectors
    if corpus == "stsb-dev":
        items = read_table(corpus_path(suite, corpus, "items"), kind="items.similarity").to_pydict()
        cosine, _ = cosines(vectors, np.column_stack([items["row1"], items["row2"]]))
        human = np.asarray(items["score"], dtype=np.float64)
        return 100 * float(score_similarity({"cosine": cosine}, human, [""] * len(human))[HEADLINE] or 0)
    items = read_table(corpus_path(suite, corpus, "items"), kind="items.classification").to_pydict()
    labels = np.unique(items["label"], return_inverse=True)[1].astype(np.int64)
    x = vectors[np.asarray(items["row"])]
    x = x / np.float32(np.median(np.linalg.norm(x, axis=1)))
    rules = load_parameters(EvaluateParameters, "evaluate")
    said = predict_by_logistic(
        x, labels, items["split"], folds=rules.folds, inner_folds=rules.inner_folds, strengths=rules.strengths,
        seed=rules.seed,
    )  # fmt: skip
    return 100 * float((said.predicted == labels[said.items]).mean())


def sweep(suite: str) -> Iterator[dict[str, Any]]:
    """One row per corpus, block, hyper-parameter and value."""
    for corpus in CORPORA:
        task = "similarity" if corpus == "stsb-dev" else "classification"
        if absence(corpus_path(suite, corpus, "items"), kind=f"items.{task}") is not None:
            continue
        for block in BLOCKS if corpus == "stsb-dev" else ["wl-gem-unit"]:
            for name, values in SWEEPS.items():
                for value in values:
                    found = round(score(suite, corpus, block, {name: value}), 2)
                    yield {"block": block, "corpus": corpus, "parameter": name, "score": found, "value": value}


def draw(rows: list[dict[str, Any]]) -> Figure:
    """A row of panels per corpus, a panel per hyper-parameter; the published default is a dotted line."""
    corpora = [corpus for corpus in CORPORA if any(row["corpus"] == corpus for row in rows)]
    defaults = {"window": 7, "candidates": 45, "removed": 17, "power": 3}
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(9.6, 0.6 + 2.5 * len(corpora)), layout="constrained")
        panels: Any = figure.subplots(len(corpora), len(SWEEPS), sharey="row", squeeze=False)
        for line, corpus in zip(panels, corpora, strict=True):
            for axes, name in zip(line, SWEEPS, strict=True):
                for (block, label), look, colour in zip(
                    BLOCKS.items(), ("s--", "o-"), ("#0e9f8f", "#7c2d12"), strict=True
                ):
                    own = [
                        row for row in rows if (row["block"], row["corpus"], row["parameter"]) == (block, corpus, name)
                    ]
                    if own:
                        places, scores = [row["value"] for row in own], [row["score"] for row in own]
                        axes.plot(places, scores, look, color=colour, markersize=4, linewidth=1.4, label=label)
                axes.axvline(defaults[name], color=MUTED, linestyle=":", linewidth=1)
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
