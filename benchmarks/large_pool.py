"""Seconds and peak memory of searches over a large pool of documents, which are read from a Parquet file.

    python -m benchmarks.large_pool --json FILE [--documents 500000] [--queries 100] [--workers 2]

Random unit vectors of 384 dimensions. The file is written and read in parts. Feedback, CSLS and diffusion have the
defaults of their parameters; CSLS and diffusion share one exact graph of nearest neighbours, which is most of the cost.
CPU seconds, on `workers` threads. The neighbours of 100 documents are compared with those of a full sort.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

from benchmarks.encoders import processor
from benchmarks.searches import DIMENSION, seconds_of
from sentfold.retrieval.base.protocol import Source, find_search
from sentfold.retrieval.base.ranking import Scorer, Singles, first_places, unit_rows

SEARCHES = ("feedback", "csls", "diffusion")
PART = 20_000  # rows of a row group
CHECKED = 100
TOGETHER = 10  # queries whose scores are held at once


def unit_vectors(rows: int, seed: int) -> Singles:
    return unit_rows(np.random.default_rng(seed).standard_normal((rows, DIMENSION), dtype=np.float32)).astype(
        np.float32
    )


def write(path: Path, n: int) -> None:
    schema = pa.schema({"vector": pa.list_(pa.float32(), DIMENSION)})
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
        for start in range(0, n, PART):
            values = pa.array(unit_vectors(min(PART, n - start), start + 1).ravel())
            file.write_table(pa.table([pa.FixedSizeListArray.from_arrays(values, DIMENSION)], schema=schema))


def read(path: Path) -> Singles:
    file = pq.ParquetFile(path)
    vectors, start = np.empty((file.metadata.num_rows, DIMENSION), dtype=np.float32), 0
    for batch in file.iter_batches(PART):
        values = batch.column(0).flatten().to_numpy()
        vectors[start : start + len(batch)] = values.reshape(-1, DIMENSION)
        start += len(batch)
    return vectors


def share_of_neighbors_found(source: Source, k: int) -> float:
    """The share of the k nearest of some documents, by a sort of all products in float64, that the graph has."""
    chosen = np.random.default_rng(0).choice(len(source.documents), CHECKED, replace=False)
    found = source.nearest(k).indices[chosen]
    equal = 0
    for row, near in zip(chosen, found, strict=True):
        products = source.documents @ source.documents[row].astype(np.float64)
        products[row] = -np.inf
        equal += len(np.intersect1d(np.argpartition(-products, k)[:k], near))
    return equal / found.size


def ask(scorer: Scorer, queries: Singles) -> None:
    for start in range(0, len(queries), TOGETHER):
        for scores in scorer(queries[start : start + TOGETHER]):
            first_places(scores, 10)


def peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=500_000)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    rows: dict[str, Any] = {}
    methods = {name: find_search(name) for name in SEARCHES}
    deepest = max(getattr(method.Settings(), "neighbors", 1) for method in methods.values())
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        write(Path(folder) / "documents.parquet", chosen.documents)
        reading, documents = seconds_of(lambda: read(Path(folder) / "documents.parquet"))
        source = Source(documents, workers=chosen.workers, deepest=deepest)
        wall = time.perf_counter()
        graph, _ = seconds_of(lambda: source.nearest(deepest))
        wall = time.perf_counter() - wall
        queries = unit_vectors(chosen.queries, 0)
        for name, method in methods.items():
            prepared, scorer = seconds_of(partial(method.prepare, source, method.Settings()))
            asked, _ = seconds_of(partial(ask, scorer, queries))
            rows[name] = {
                "ms_per_query": round(1000 * asked / len(queries), 1),
                "prepare_s": round(prepared, 1),
                "settings": method.Settings().model_dump(),
            }
            print(name, rows[name], flush=True)
        content = {
            "graph": {
                "cpu_s": round(graph),
                "neighbors": deepest,
                "share_found": share_of_neighbors_found(source, deepest),
                "wall_s": round(wall),
            },
            "peak_mb": peak_mb(),
            "processor": processor(),
            "read_s": round(reading, 1),
            "searches": rows,
            "sizes": {
                "dimension": DIMENSION,
                "documents": chosen.documents,
                "queries": chosen.queries,
                "workers": chosen.workers,
            },
        }
    chosen.json.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(json.dumps({key: content[key] for key in ("graph", "peak_mb", "read_s")}))


if __name__ == "__main__":
    main()
