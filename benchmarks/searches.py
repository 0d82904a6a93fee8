"""What each search of params.yaml costs: preparation for each document, time for each query, bytes for each document.

    python -m benchmarks.searches --json FILE [--documents 10000] [--queries 200] [--repeats 3]

Random unit vectors of 384 dimensions, one thread, CPU seconds, medians over repeats with their range. Every search has
the first point of its grid. Cosine is timed right before each search in every repeat, and each ratio is to that time.
The preparation of the documents is timed apart. A bank has 1,000 queries, and a supervised search learns from 1,000
pairs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.encoders import processor
from pipeline.base.params import PARAMS_FILE, read_yaml
from pipeline.searches import Search, load_search
from sentfold.retrieval import cosine
from sentfold.retrieval.base.protocol import Source
from sentfold.retrieval.base.ranking import Singles, unit_rows

DIMENSION = 384
LEARNED = 1000  # queries of the bank, and training pairs
STORED = {"binary": DIMENSION // 8}  # bytes of a document; every other search stores float32


def seconds_of(task: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = task()
    return time.process_time() - start, result


def made_up(n: int, queries: int) -> tuple[Source, Singles]:
    rng = np.random.default_rng(0)
    x = unit_rows(rng.standard_normal((n + LEARNED + queries, DIMENSION), dtype=np.float32)).astype(np.float32)
    bank = x[n : n + LEARNED]
    return Source(x[:n], bank, (bank, x[:LEARNED]), workers=1), x[n + LEARNED :]


def measure(search: Search, source: Source, queries: Singles, repeats: int) -> dict[str, Any]:
    prepared, asked, ratios = [], [], []
    plain = cosine.prepare(source, cosine.Settings())
    search.module.prepare(source, search.points[0])(queries)  # compiles what is compiled
    for _ in range(repeats):
        fresh = replace(source)  # without the neighbours that an earlier repeat found
        seconds, scorer = seconds_of(lambda fresh=fresh: search.module.prepare(fresh, search.points[0]))
        prepared.append(seconds)
        by_cosine, _ = seconds_of(lambda: plain(queries))
        asked.append(seconds_of(lambda scorer=scorer: scorer(queries))[0])
        ratios.append(asked[-1] / by_cosine)
    return {
        "bytes_per_document": STORED.get(search.module.__name__.rpartition(".")[2], 4 * DIMENSION),
        "ms_per_query": spread([1000 * s / len(queries) for s in asked]),
        "prepare_us_per_document": spread([1e6 * s / len(source.documents) for s in prepared]),
        "ratio_to_cosine": spread(ratios),
        "settings": search.points[0].model_dump(),
    }


def spread(values: list[float]) -> list[float]:
    """Smallest, median and largest."""
    return [float(f"{value:.3g}") for value in (min(values), float(np.median(values)), max(values))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    source, queries = made_up(chosen.documents, chosen.queries)
    rows = {}
    with threadpool_limits(1):
        for name in read_yaml(PARAMS_FILE)["searches"]:
            rows[name] = measure(load_search(name), source, queries, chosen.repeats)
            print(name, rows[name], flush=True)
    sizes = {"dimension": DIMENSION, "documents": chosen.documents, "learned": LEARNED, "queries": chosen.queries}
    content = {"processor": processor(), "searches": rows, "sizes": sizes}
    chosen.json.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
