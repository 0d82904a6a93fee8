"""Compare every artifact and every score of two checkouts, value by value.

    python .ci/compare_artifacts.py BEFORE AFTER SUITE

BEFORE, AFTER   roots of two checkouts whose suite SUITE has run
Compares each Parquet file column by column, without a tolerance, and each score file as JSON. Prints every
difference, and how many files have equal bytes too. Exits 1 if a value differs or an artifact of BEFORE is
missing in AFTER. An artifact that only AFTER has is named and is no failure.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


def compare_tables(before: Path, after: Path) -> list[str]:
    """What differs between two Parquet files: columns, values, or only the record."""
    one, other = pq.read_table(before), pq.read_table(after)
    if one.column_names != other.column_names or one.num_rows != other.num_rows:
        return ["other columns or rows"]
    return [f"column {name}" for name in one.column_names if not one.column(name).equals(other.column(name))]


def compare_scores(before: Path, after: Path) -> list[str]:
    """The keys of a score file whose values differ."""
    one, other = (flatten(json.loads(path.read_text(encoding="utf-8"))) for path in (before, after))
    return sorted(path for path in {**one, **other} if one.get(path) != other.get(path))


def flatten(content: Any, path: str = "") -> dict[str, Any]:
    """Every leaf of a JSON value by its path."""
    if not isinstance(content, dict):
        return {path: content}
    found: dict[str, Any] = {}
    for key, value in content.items():
        found |= flatten(value, f"{path}/{key}")
    return found


def main() -> int:
    before, after, suite = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    wrong = same = bytewise = 0
    for folder, pattern, compare in (
        (Path("data") / suite, "*.parquet", compare_tables),
        (Path("reports") / suite / "scores", "*.json", compare_scores),
    ):
        for path in sorted((before / folder).rglob(pattern)):
            name = path.relative_to(before)
            differences = compare(path, after / name) if (after / name).exists() else ["missing"]
            wrong, same = wrong + bool(differences), same + (not differences)
            bytewise += not differences and path.read_bytes() == (after / name).read_bytes()
            for difference in differences:
                print(f"{name}: {difference}")
        new = {path.relative_to(after) for path in (after / folder).rglob(pattern)}
        for name in sorted(new - {path.relative_to(before) for path in (before / folder).rglob(pattern)}):
            print(f"{name}: only in {after}")
    print(f"{same} files with equal values ({bytewise} with equal bytes), {wrong} that differ or are missing")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
