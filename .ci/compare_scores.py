"""Hold the scores of a run against the committed ones: within a bound, not to the digit.

    python .ci/compare_scores.py BOUND

On another kind of processor vectors differ by about 2e-7, and one neighbour in a near tie may flip, which
moves a manifold's score by some hundredths. Exits 1 if any score moved by more than BOUND (x100 scale).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def values(content: Any, path: str = "") -> dict[str, float]:
    """Every number called `value` in a scores file, by its place."""
    if not isinstance(content, dict):
        return {}
    found = {f"{path}/{key}": child for key, child in content.items() if key == "value" and child is not None}
    for key, child in content.items():
        found |= values(child, f"{path}/{key}")
    return found


def main() -> int:
    bound, worst = float(sys.argv[1]), 0.0
    for path in sorted(Path("reports").glob("*/scores/*.json")):
        committed = values(json.loads(subprocess.check_output(["git", "show", f"HEAD:{path}"])))
        now = values(json.loads(path.read_text(encoding="utf-8")))
        if committed.keys() != now.keys():
            print(f"{path}: other scores than the committed ones")
            return 1
        for place, value in now.items():
            moved = abs(value - committed[place])
            worst = max(worst, moved)
            if moved > bound:
                print(f"{path}{place}: {value} is not within {bound} of the committed {committed[place]}")
    print(f"largest difference to a committed score: {worst:.2f} (x100 scale, bound {bound})")
    return int(worst > bound)


if __name__ == "__main__":
    sys.exit(main())
