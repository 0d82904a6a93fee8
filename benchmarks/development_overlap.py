"""Whether a suite would choose other parameters without the development pairs that its test corpora have, too.

    python -m benchmarks.development_overlap [--suite paper-mirror] [--corpora sts12 sts13 sts15 stsb sickr]

Reads the corpora, the encoder's vectors of the development corpus and their neighbours, which a run of the suite leaves
in data/. Prints how many pairs of the development corpus each test corpus has (case, punctuation and blanks aside), and
of each grid the choice with all pairs, and without those that are shared.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from pipeline.base.artifacts import corpus_path, read_table
from pipeline.base.suite import load_suite
from pipeline.manifolds import load_grid, load_solver
from pipeline.stages.sweep import Sweep
from sentfold.compare.bootstrap import make_design
from sentfold.decision.inputs import kin_of
from sentfold.selection.surface import best_place, score_surface


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="paper-mirror")
    parser.add_argument("--corpora", nargs="+", default=["sts12", "sts13", "sts15", "stsb", "sickr"])
    options = parser.parse_args()
    suite = load_suite(options.suite)
    assert suite.development is not None, "the suite has no development corpus"
    shared = find_shared(suite.suite, suite.development, options.corpora)
    print(f"of {len(shared):,} pairs of {suite.development}, {shared.sum():,} are shared")
    for item in suite.stages["sweep"].values():
        swept = Sweep(suite, item["encoder"], item["maker"], load_grid(item["maker"]), load_solver())
        material, case = swept.material(suite.development), swept.case(suite.development, "similarity")
        assert not isinstance(material, str) and not isinstance(case, str), "the development corpus is no similarity"
        for name, kept in (("all pairs", np.ones_like(shared)), ("not shared", ~shared)):
            subsets = [subset for subset, is_kept in zip(case.items["subset"], kept, strict=True) if is_kept]
            design = make_design(case.notes["resample"], case.pairs[kept], subsets)
            some = replace(material, pairs=material.pairs[kept], human=material.human[kept], design=design)
            with threadpool_limits(1):
                values = score_surface(swept.grid, some, rules=False, draws=None).values
            best = best_place(values)
            print(f"{item['encoder']}-{item['maker']}, {name}: {swept.grid.points[best]} ({values[best]})", flush=True)


def find_shared(suite: str, development: str, corpora: list[str]) -> np.ndarray:
    """(n,) whether one of the corpora has a pair of the development corpus."""
    pairs = {corpus: read_pairs(suite, corpus) for corpus in [development, *corpora]}
    texts = list(dict.fromkeys(text for rows in pairs.values() for pair in rows for text in pair))
    form = dict(zip(texts, kin_of(np.arange(len(texts)), texts).tolist(), strict=True))
    forms = {corpus: [frozenset(form[text] for text in pair) for pair in rows] for corpus, rows in pairs.items()}
    shared = np.zeros(len(forms[development]), dtype=np.bool_)
    for corpus in corpora:
        there = set(forms[corpus])
        found = np.array([pair in there for pair in forms[development]])
        print(f"{corpus} has {found.sum():,} pairs of {development}")
        shared |= found
    return shared


def read_pairs(suite: str, corpus: str) -> list[tuple[str, str]]:
    texts = read_table(corpus_path(suite, corpus, "sentences"), kind="sentences")["text"].to_pylist()
    items = read_table(corpus_path(suite, corpus, "items"), kind="items.similarity")
    rows = zip(items["row1"].to_pylist(), items["row2"].to_pylist(), strict=True)
    return [(texts[left], texts[right]) for left, right in rows]


if __name__ == "__main__":
    main()
