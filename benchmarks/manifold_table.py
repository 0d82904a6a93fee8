"""The README's table of the manifold benchmark, from the files that the runs wrote.

python -m benchmarks.manifold_table [reports/benchmarks]
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

HEAD = (
    "| n | p | encoder | ours, s (kNN + weights + eigensolve) | peer | peer, s | ratio (range) | ours, MB | peer, MB "
    "| residual / λ_p | angle |\n|---:|---:|---|---:|---|---:|---:|---:|---:|---:|---:|"
)


def row(run: dict[str, Any]) -> str:
    """One run as a line of Markdown."""
    parts = " + ".join(f"{run[f'{part}_cpu_s']:.2f}" for part in ("knn", "weights", "eigensolve"))
    cells = [f"{run['n']:,}", str(run["p"]), run["encoder"], f"{run['ours_cpu_s']:.2f} ({parts})"]
    if run["peer"] == "none":
        cells += ["not run", "", "", f"{run['ours_peak_mb']:.0f}", ""]
    else:
        low, high = run["ratio_spread"]
        cells += [
            run["peer"],
            f"{run['peer_cpu_s']:.1f}",
            f"{run['ratio']:.1f} ({low:.1f}–{high:.1f})",
            f"{run['ours_peak_mb']:.0f}",
            f"{run['peer_peak_mb']:.0f}",
        ]
    angle = f"{run['max_angle_deg']:.3f}°" if "max_angle_deg" in run else ""
    cells += [f"{run['max_residual'] / run['lambda_p']:.1e}", angle]
    return f"| {' | '.join(cells)} |"


def exponent(small: dict[str, Any], large: dict[str, Any]) -> float:
    """How CPU time grows with n between two runs."""
    return math.log(large["ours_cpu_s"] / small["ours_cpu_s"]) / math.log(large["n"] / small["n"])


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "reports/benchmarks")
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("manifold-*.json")]
    runs.sort(key=lambda run: (run["p"], run["encoder"] != "wordllama", run["n"], run["peer"] != "sklearn-auto"))
    print(HEAD)
    for run in runs:
        print(row(run))
    plain = [run for run in runs if run["p"] == 128 and run["encoder"] == "wordllama"]
    if len(plain) > 1:
        print(f"\nexponent from n = {plain[0]['n']:,} to {plain[-1]['n']:,}: {exponent(plain[0], plain[-1]):.2f}")


if __name__ == "__main__":
    main()
