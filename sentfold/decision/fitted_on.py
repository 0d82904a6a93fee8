"""The data that an exported model was fitted on: its numbers on these data say little about others."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sentfold.data.tables import DataError
from sentfold.decision.families import FAMILIES
from sentfold.files import sha256_of, write_json

FITTED_ON = "fitted_on.json"


def write_fitted_on(model: Path, record: dict[str, Any]) -> None:
    """Write the hashes of a decision's data into the folder of a model. record: the decision's verdict.json."""
    inputs, space = record.get("inputs", {}), record.get("space", {})
    encoder = inputs.get("encoder")
    data = {name: str(sha256) for name, sha256 in inputs.items() if name.partition("/")[0] not in ("encoder", encoder)}
    name = str(space.get("name", "")) if isinstance(space, dict) else ""
    learned = any(family.supervised and name.startswith(family.name) for family in FAMILIES)
    write_json(model / FITTED_ON, {"data": data, "from_labels": learned})


def fitted_notes(encoder: str, files: Iterable[Path]) -> list[str]:
    """A note where a model was fitted on all of these files of data. Raises DataError if it learned from their labels.

    Only a folder of `sentfold export` says what it was fitted on.
    """
    try:
        record = json.loads((Path(encoder) / FITTED_ON).read_bytes())
        known, learned = {*record["data"].values()}, bool(record["from_labels"])
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return []
    found = [*files]
    if not found or not {sha256_of(file) for file in found} <= known:
        return []
    if learned:
        raise DataError(
            "the model has learned from these data, so its numbers here would be far better than on others",
            where=", ".join(map(str, found)), expected=f"data that {encoder} has not seen",
            got=f"files whose hashes are in {Path(encoder) / FITTED_ON}",
            remedy="decide on a part of your data, export that, and give the other part here",
        )  # fmt: skip
    return [f"{encoder} was fitted on these texts, so its numbers on others can be a little worse"]
