"""Verdicts of a finished report, for the terminal."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.errors import ArtifactError, ParameterError

SHOWN = ("where", "made_on", "tested_on", "because", "control", "remark", "caveat", "to_test", "command")


def show_claims(suite: str, name: str = "") -> str:
    """One claim with everything its verdict rests on, or all claims in a line each.

    Raises ArtifactError if the suite has no report, ParameterError if the report has no such claim.
    """
    path = Path("reports") / suite / "claims.json"
    try:
        claims = json.loads(path.read_text(encoding="utf-8"))["claims"]
    except (OSError, ValueError, KeyError) as error:
        raise ArtifactError(
            f"suite '{suite}' has no verdicts on claims yet",
            where=str(path),
            got=str(error),
            remedy=f"run `sentfold repro --suite {suite}`",
        ) from None
    if not name:
        return "\n".join(f"{claim['verdict']:<17}  {key:<22}  {claim['claim']}" for key, claim in claims.items())
    if name not in claims:
        raise ParameterError(
            f"there is no claim '{name}'", where=str(path), expected=f"one of: {', '.join(claims)}", got=name
        )
    claim = claims[name]
    lines = [f"{claim['claim']}", f"  {'verdict':<9}  {claim['verdict']}"]
    return "\n".join([*lines, *(f"  {key:<9}  {claim[key]}" for key in SHOWN if claim[key])])
