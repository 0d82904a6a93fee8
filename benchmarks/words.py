"""What it costs to cut sentences, read word vectors and cluster words, on one thread.

    python -m benchmarks.words [--words 50000] [--dimension 300] [--json FILE] [--only kmeans spectral ...]

Made-up words: heavy-tailed groups with a common low-dimensional part, as word vectors have. Prints CPU
seconds and the peak of memory. The blurred affinity takes minutes at 50,000 words and must be asked for.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from sentfold.clusterers import blurred, kmeans, spectral
from sentfold.files import Vectors
from sentfold.words.files import read_file
from sentfold.words.tokenizers import TOKENIZERS, tokenize

CLUSTERS = 50
SENTENCE = "The old harbour's kettles aren't new, but nine loaves rise near the door."


def make_words(count: int, dimension: int) -> tuple[Vectors, np.ndarray]:
    """Vectors (count, dimension) float32 and weights of made-up words."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((400, dimension))
    shared = 0.5 * rng.standard_normal((count, 20)) @ rng.standard_normal((20, dimension))
    vectors = centres[rng.zipf(1.5, count) % 400] + shared + rng.standard_normal((count, dimension))
    return vectors.astype(np.float32), rng.uniform(0.01, 1, count)


def read_made_up_file(dimension: int, *, records: int = 100_000, wanted: int = 10_000) -> None:
    """Write a text file of word vectors and read a tenth of it."""
    line = " ".join(f"{value:.5f}" for value in np.random.default_rng(0).standard_normal(dimension))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made-up.vec"
        with path.open("w") as stream:
            stream.writelines(f"word{row} {line}\n" for row in range(records))
        start = time.process_time()
        read_file(path, {f"word{row}" for row in range(0, records, records // wanted)}, dimension=dimension)
        print(f"  of which reading {time.process_time() - start:.1f} s, {path.stat().st_size / 1e6:.0f} MB")


def jobs(count: int, dimension: int) -> dict[str, Callable[[], object]]:
    """Name -> what is timed."""
    x, weights = make_words(count, dimension)
    ten = spectral.Settings(neighbors=10, distance="euclidean", rows="degree", restarts=10)
    one = blurred.Settings(sigma=1.0, threshold=0.95, shrink=0.01, spare=5, stop=0.01, restarts=1)
    once = kmeans.Settings(restarts=1, iterations=300, tolerance=1e-4)
    texts = [SENTENCE] * 100_000
    return {
        **{f"tokenize 100,000 sentences, {name}": lambda name=name: tokenize(texts, name) for name in TOKENIZERS},
        "file of 100,000 records": lambda: read_made_up_file(dimension),
        f"kmeans, {count} words": lambda: next(kmeans.cluster(x, weights, (CLUSTERS,), seed=0, settings=once)),
        f"spectral, {count} words": lambda: next(spectral.cluster(x, weights, (CLUSTERS,), seed=0, settings=ten)),
        f"blurred, {count} words": lambda: next(blurred.cluster(x, weights, (CLUSTERS,), seed=0, settings=one)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", type=int, default=50_000)
    parser.add_argument("--dimension", type=int, default=300)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="+", default=["tokenize", "file", "kmeans", "spectral"])
    arguments = parser.parse_args()
    seconds: dict[str, float] = {}
    with threadpool_limits(1):
        for name, job in jobs(arguments.words, arguments.dimension).items():
            if name.split()[0].rstrip(",") in arguments.only:
                start = time.process_time()
                job()
                seconds[name] = round(time.process_time() - start, 2)
                print(f"{name:<48} {seconds[name]:8.2f} s CPU")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"peak of memory {peak:.2f} GB")
    if arguments.json:
        arguments.json.write_text(json.dumps({"cpu_seconds": seconds, "peak_gb": round(peak, 2)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
