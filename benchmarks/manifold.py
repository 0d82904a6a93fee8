"""Time, memory and agreement of the locality-preserving embedding beside its peers, in one run.

    python benchmarks/manifold.py --n 5000 --p 128 --k 30 --peer sklearn-auto --json FILE
        [--encoder wordllama|minilm] [--repeats 3] [--peer-repeats 3] [--tolerance 1e-3] [--workers 1]

Peers: sklearn-auto and sklearn-arpack (LocallyLinearEmbedding), tapkee (its PyPI package has to be
installed), none. Every repeat is a process of its own with one BLAS thread: it loads the vectors, warms
up on 1,500 of them, then embeds them all, from vectors to eigenvectors. CPU seconds and peak memory are
what that last step added; ours_process_mb is the peak of the whole process, vectors and libraries included.
The largest angle is between the two spaces; scikit-learn's `auto` is
LAPACK's dense solver from p = 9 on. Needs SENTFOLD_MIRROR.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import subspace_angles
from threadpoolctl import threadpool_limits

if __name__ == "__main__" and not __package__:  # started by its path: the project's root is not on the path then
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.inputs import vectors

Array = npt.NDArray[Any]
PEERS = ("sklearn-auto", "sklearn-arpack", "tapkee", "none")
REGULARIZATION = 1e-3
WARM_UP = 1500
RATES = ("weights_gflops", "products_gb_s")


# --- one embedding, in a process of its own -----------------------------------------------------------


def embed_ours(x: Array, arguments: argparse.Namespace) -> tuple[Array, dict[str, Any]]:
    from sentfold.manifold.solver.eigensolver import bottom_eigenvectors, weight_matrix
    from sentfold.manifold.weights.weights import solve_weights
    from sentfold.neighbors.neighbors import nearest_neighbors

    marks = [time.process_time()]

    def marked(result: Any) -> Any:
        marks.append(time.process_time())
        return result

    n, k, workers = len(x), arguments.k, arguments.workers
    neighbors = marked(nearest_neighbors(x, k, workers=workers).indices)
    values = marked(solve_weights(x, neighbors, regularization=REGULARIZATION, workers=workers).values)
    pairs = marked(
        bottom_eigenvectors(
            weight_matrix(neighbors, values), arguments.p, seed=0, tolerance=arguments.tolerance, workers=workers
        )
    )
    knn, weights, eigen = np.diff(marks)
    return pairs.vectors, {
        "knn_cpu_s": knn,
        "weights_cpu_s": weights,
        "eigensolve_cpu_s": eigen,
        "knn_effective_gflops": 2 * n * n * x.shape[1] / knn / 1e9,
        "weights_gflops": n * k * (k + 1) * x.shape[1] / weights / 1e9,  # one triangle of each Gram matrix
        "products_gb_s": pairs.products * 2 * n * (k + 1) * 4 / eigen / 1e9,
        "max_residual": float(pairs.residuals.max()),
        "lambda_p": float(pairs.values[-1]),
        "lambda_max": pairs.largest,
        "products": pairs.products,
        "degree": pairs.degree,
        "basis": pairs.basis,
        "precision": pairs.precision,
    }


def embed_sklearn(x: Array, arguments: argparse.Namespace) -> tuple[Array, dict[str, Any]]:
    from sklearn.manifold import LocallyLinearEmbedding

    solver = arguments.worker.removeprefix("sklearn-")
    model = LocallyLinearEmbedding(
        n_neighbors=arguments.k,
        n_components=arguments.p,
        reg=REGULARIZATION,
        eigen_solver=solver,
        n_jobs=1,
        random_state=0,
    )
    return model.fit_transform(x), {}


def embed_tapkee(x: Array, arguments: argparse.Namespace) -> tuple[Array, dict[str, Any]]:
    import tapkee

    data = np.asfortranarray(x.T, dtype=np.float64)
    return tapkee.embed(data, method="lle", num_neighbors=arguments.k, target_dimension=arguments.p), {}


def work(arguments: argparse.Namespace) -> None:
    """Warm up, embed, write the space, print one line of JSON."""
    embed: Callable[[Array, argparse.Namespace], tuple[Array, dict[str, Any]]] = (
        embed_ours if arguments.worker == "ours" else embed_tapkee if arguments.worker == "tapkee" else embed_sklearn
    )
    x = np.load(arguments.input)
    few = argparse.Namespace(**{**vars(arguments), "p": 10, "k": 12})
    embed(x[:WARM_UP], few)
    before = reset_peak()
    cpu, wall = time.process_time(), time.perf_counter()
    y, facts = embed(x, arguments)
    facts |= {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall, "peak_mb": peak() - before}
    facts["process_mb"] = peak()
    np.save(arguments.output, y)
    print(json.dumps(facts))


def reset_peak() -> float:
    """Forget the process's peak memory; what it holds now, in MB."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return peak()


def peak() -> float:
    """Peak resident memory of this process since the last reset, in MB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def measure_machine() -> dict[str, float]:
    """What one core of this machine can do: products of two matrices, and copying into memory it has."""
    big = np.ones(64 * 2**20, np.float32)
    copy = np.ones_like(big)
    copies = []
    with threadpool_limits(1):
        for _ in range(5):
            start = time.process_time()
            np.copyto(copy, big)
            copies.append(2 * big.nbytes / (time.process_time() - start) / 1e9)
        rates = {name: product_rate(kind) for name, kind in (("sgemm", np.float32), ("dgemm", np.float64))}
    return {f"{name}_gflops": rate for name, rate in rates.items()} | {"copy_gb_s": max(copies)}


def product_rate(kind: npt.DTypeLike) -> float:
    """GFLOP/s of a product of matrices that fit the caches, the best of five."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((2048, 256)).astype(kind) for _ in range(2))
    out, rates = np.empty((2048, 2048), kind), []
    for _ in range(5):
        start = time.process_time()
        for _ in range(8):
            np.dot(a, b.T, out=out)  # of a matrix with itself BLAS would compute one half
        rates.append(8 * 2 * out.size * 256 / (time.process_time() - start) / 1e9)
    return max(rates)


# --- all of them, side by side ------------------------------------------------------------------------


def run_worker(kind: str, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    options = [f"--{name}={getattr(arguments, name)}" for name in ("n", "p", "k", "tolerance", "workers")]
    command = [sys.executable, "-m", "benchmarks.manifold", f"--worker={kind}", *options]
    command += [f"--input={folder / 'x.npy'}", f"--output={folder / kind}.npy"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{kind} failed:\n{done.stderr[-2000:]}")
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


def summarize(runs: list[dict[str, Any]], key: str) -> tuple[float, list[float]]:
    values = [run[key] for run in runs]
    return statistics.median(values), [min(values), max(values)]


def compare(arguments: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "x.npy", vectors(arguments.n, arguments.encoder))
        ours, theirs = [], []
        for repeat in range(max(arguments.repeats, arguments.peer_repeats)):  # alternating: noise hits both
            if repeat < arguments.repeats:
                ours.append(run_worker("ours", folder, arguments))
            if repeat < arguments.peer_repeats and arguments.peer != "none":
                theirs.append(run_worker(arguments.peer, folder, arguments))
        result: dict[str, Any] = {
            "n": arguments.n,
            "p": arguments.p,
            "k": arguments.k,
            "encoder": arguments.encoder,
            "peer": arguments.peer,
            "tolerance": arguments.tolerance,
            "workers": arguments.workers,
            "repeats": len(ours),
            "peer_repeats": len(theirs),
        }
        for key in ("cpu_s", "wall_s", "peak_mb", "process_mb"):
            result[f"ours_{key}"], result[f"ours_{key}_spread"] = summarize(ours, key)
        for key in ("knn_cpu_s", "weights_cpu_s", "eigensolve_cpu_s", "knn_effective_gflops", *RATES):
            result[key], _ = summarize(ours, key)
        for key in ("max_residual", "lambda_p", "lambda_max", "products", "degree", "basis", "precision"):
            result[key] = ours[-1][key]
        if theirs:
            for key in ("cpu_s", "wall_s", "peak_mb"):
                result[f"peer_{key}"], result[f"peer_{key}_spread"] = summarize(theirs, key)
            result["ratio"] = result["peer_cpu_s"] / result["ours_cpu_s"]
            result["ratio_spread"] = [
                result["peer_cpu_s_spread"][0] / result["ours_cpu_s_spread"][1],
                result["peer_cpu_s_spread"][1] / result["ours_cpu_s_spread"][0],
            ]
            result["memory_ratio"] = result["peer_peak_mb"] / max(result["ours_peak_mb"], 1e-9)
            spaces = (np.load(folder / f"{kind}.npy") for kind in ("ours", arguments.peer))
            result["max_angle_deg"] = float(np.degrees(subspace_angles(*spaces).max()))
        return result | measure_machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, required=True)
    parser.add_argument("--p", type=int, default=128)
    parser.add_argument("--k", type=int, default=30)
    parser.add_argument("--peer", choices=PEERS, default="none")
    parser.add_argument("--encoder", choices=("wordllama", "minilm"), default="wordllama")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peer-repeats", type=int, default=3)
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=Path)
    for hidden in ("worker", "input", "output"):
        parser.add_argument(f"--{hidden}", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments)
        return
    text = json.dumps(compare(arguments), indent=1)
    print(text)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
