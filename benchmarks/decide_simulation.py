"""How often `decide` recommends where nothing helps, and where something does: simulated data sets of pairs.

python -m benchmarks.decide_simulation [--sets 1000] [--gains 400]   writes reports/benchmarks/decide_simulation.json,
and its table into docs/your-own-data.md; --table writes the table alone, from the JSON. About 35 CPU minutes.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from functools import partial
from itertools import product
from multiprocessing import Pool
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from sentfold.numeric_profile import use_profile

use_profile()  # before numpy is imported, which is why imports follow code here

import numpy as np  # noqa: E402

from sentfold.decision.decide import Decision, decide  # noqa: E402
from sentfold.decision.families import (  # noqa: E402
    Family,
    Points,
    Rows,
    all_but_the_top,
    linear_adapter,
    mean_removal,
    principal_components,
)
from sentfold.decision.spaces import LinearSpace  # noqa: E402
from sentfold.files import write_json  # noqa: E402
from sentfold.manifold.base.linear import LinearMap  # noqa: E402

REPORT = Path(__file__).parents[1] / "reports" / "benchmarks" / "decide_simulation.json"
DIMENSION = 16
SIZES = (200, 1000)
NULLS = ("noise", "rotations", "hurt", "grouped")
STRENGTHS = {200: (1.8, 2.2, 4.0, 5.0), 1000: (0.95, 1.15, 1.6, 1.8)}  # of the noise in one direction
RATIOS = (1, 2)  # of the smallest detectable difference
PAGE = Path(__file__).parents[1] / "docs" / "your-own-data.md"
PLACE = re.compile(r"(?<=<!-- simulation -->\n).*?(?=<!-- end of the simulation -->)", re.DOTALL)
NAMES = {
    "noise": "scores say nothing",
    "rotations": "a candidate changes cosines and improves none",
    "hurt": "cosine is the truth, and every candidate hurts",
    "grouped": "scores say nothing, and each text is in four pairs",
}


def rotated(rows: Rows) -> Iterator[Points]:
    """A rotation with a little stretching: other cosines, and no better ones."""
    rng = np.random.default_rng(0)
    d = rows.x.shape[1]
    turned = np.linalg.qr(rng.normal(size=(d, d)))[0] * (1 + 0.05 * rng.normal(size=d))
    yield Points(LinearSpace(LinearMap(np.zeros(d), turned, np.empty(0))), {"": 0})


FAMILIES = (
    Family("mean removal", mean_removal),
    Family("all but the top", all_but_the_top),
    Family("principal components", principal_components),
    Family("linear adapter from labels", linear_adapter, supervised=True),
)


def make_pairs(m: int, seed: int, *, kind: str, strength: float = 0.0) -> Decision:
    """The decision on one data set of m pairs.

    kind  noise: scores say nothing. rotations: candidates that change nothing on average. hurt: cosine is the truth,
          so every candidate hurts. grouped: noise, and each text is in four pairs with one score but for noise.
          gain: a direction of noise, of a strength, which one family can remove
    """
    rng = np.random.default_rng([seed, m, len(kind)])
    texts = 2 * m if kind != "grouped" else m // 2
    x = rng.normal(size=(texts, DIMENSION))
    left, right = np.arange(m), np.arange(m, 2 * m)
    scores = rng.normal(size=m)
    if kind == "grouped":  # groups of 4 texts, 8 pairs each
        group = np.repeat(np.arange(m // 8), 8)
        places = np.array([rng.choice(4, size=2, replace=False) for _ in range(m)])
        left, right = 4 * group[:m] + places[: len(group), 0][:m], 4 * group[:m] + places[: len(group), 1][:m]
        scores = rng.normal(size=m // 8)[group] + 0.3 * scores
    elif kind != "noise":
        alike = rng.uniform(0, 1, m)
        x[right] = alike[:, None] * x[left] + np.sqrt(1 - alike**2)[:, None] * x[right]
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        scores = (unit[left] * unit[right]).sum(axis=1) + 0.3 * scores
        x[:, 0] += strength * rng.normal(size=texts)
    families = {"rotations": (*FAMILIES, Family("rotation", rotated)), "gain": FAMILIES[:3]}
    return decide(x, pairs=(left, right, scores), families=families.get(kind, FAMILIES), seed=seed)


def outcome(job: tuple[int, int, str, float]) -> tuple[bool, float, float]:
    """Whether a space is recommended, the difference of the automatic choice, and the smallest that could be shown."""
    m, seed, kind, strength = job
    decision = make_pairs(m, seed, kind=kind, strength=strength)
    automatic = decision.candidates[0]
    return decision.recommended, automatic.difference, automatic.detectable


def simulate(m: int, kind: str, strength: float, sets: int, workers: int) -> dict[str, float]:
    """Shares and means over data sets."""
    jobs = [(m, seed, kind, strength) for seed in range(sets)]
    with Pool(workers) as pool:
        found, difference, detectable = (np.array(part) for part in zip(*pool.map(outcome, jobs), strict=True))
    row: dict[str, float] = {
        "pairs": m,
        "strength": strength,
        "recommended": int(found.sum()),
        "sets": sets,
        "mean_difference": round(float(difference.mean()), 3),
        "mean_detectable": round(float(detectable[detectable > 0].mean()), 3) if (detectable > 0).any() else 0.0,
    }
    used = getrusage(RUSAGE_CHILDREN)
    print(kind, row, f"{used.ru_utime + used.ru_stime:.0f} CPU s until here", flush=True)
    return row


def share_at(rows: list[dict[str, float]], ratio: float) -> float:
    """The share found where the difference is `ratio` times the smallest detectable one, between strengths."""
    ratios = [row["mean_difference"] / row["mean_detectable"] for row in rows]
    shares = [row["recommended"] / row["sets"] for row in rows]
    return round(float(np.interp(ratio, ratios, shares)), 3)


def make_table(report: dict[str, Any]) -> str:
    """The report as the page shows it, in Markdown."""
    rows = []
    for m, kind in product(SIZES, NULLS):
        row = report["nulls"][f"{kind}, {m} pairs"]
        rows.append(f"| {NAMES[kind]} | {m:,} | {row['recommended']} of {row['sets']:,} |")
    for m, ratio in product(SIZES, RATIOS):
        share, sets = report["found"][f"{m} pairs, {ratio} x"], report["gains"][str(m)][0]["sets"]
        rows.append(f"| a true difference of {ratio} x the smallest detectable one | {m:,} | {share:.0%} of {sets:,} |")
    return "\n".join(["| simulated data | pairs | a change is recommended |", "|---|---|---|", *rows, ""])


def write_page(report: dict[str, Any]) -> None:
    """Put the table into the page."""
    table = make_table(report)
    PAGE.write_text(PLACE.sub(lambda _: table, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> None:
    """Simulate, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=1000, help="of each null")
    parser.add_argument("--gains", type=int, default=400, help="of each true difference")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--to", type=Path, default=REPORT)
    parser.add_argument("--table", action="store_true", help="write the table of an earlier run")
    arguments = parser.parse_args()
    if not arguments.table:
        run = partial(simulate, workers=arguments.workers)
        nulls = {f"{kind}, {m} pairs": run(m, kind, 0.0, arguments.sets) for m in SIZES for kind in NULLS}
        gains = {m: [run(m, "gain", strength, arguments.gains) for strength in STRENGTHS[m]] for m in SIZES}
        found = {f"{m} pairs, {ratio} x": share_at(gains[m], ratio) for m in SIZES for ratio in RATIOS}
        write_json(arguments.to, {"nulls": nulls, "gains": {str(m): rows for m, rows in gains.items()}, "found": found})
        used = getrusage(RUSAGE_CHILDREN)
        print(f"{(used.ru_utime + used.ru_stime) / 60:.1f} CPU minutes")
    report = json.loads(arguments.to.read_text())
    print(make_table(report))
    if arguments.to == REPORT:
        write_page(report)


if __name__ == "__main__":
    main()
