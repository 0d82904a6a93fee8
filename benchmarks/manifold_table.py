"""The table of the manifold benchmark, from the files that the runs wrote; docs/performance.md has it.

python -m benchmarks.manifold_table [reports/benchmarks]
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

HEAD = (
    "| n | p | encoder | sentfold, s (neighbours + weights + eigensolve) | peer | peer, s | ratio (range) "
    "| sentfold, MB | peer, MB "
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


def read_runs(folder: Path) -> list[dict[str, Any]]:
    """The runs in a folder of results, in the order of the table."""
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("manifold-*.json")]
    return sorted(runs, key=lambda run: (run["p"], run["encoder"] != "wordllama", run["n"], run["peer"]))


def exponent(small: dict[str, Any], large: dict[str, Any]) -> float:
    """How CPU time grows with n between two runs."""
    return math.log(large["ours_cpu_s"] / small["ours_cpu_s"]) / math.log(large["n"] / small["n"])


def describe_growth(runs: list[dict[str, Any]]) -> str:
    """The growth of time from the smallest to the largest n, over WordLlama's vectors at p = 128."""
    plain = [run for run in runs if run["p"] == 128 and run["encoder"] == "wordllama"]
    small, large = plain[0], plain[-1]
    power = exponent(small, large)
    return f"From n = {small['n']:,} to {large['n']:,} time grows with n to the power {power:.2f} (wordllama, p = 128)."


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "reports/benchmarks")
    runs = read_runs(folder)
    print(HEAD)
    for run in runs:
        print(row(run))
    print(f"\n{describe_growth(runs)}")


if __name__ == "__main__":
    main()
