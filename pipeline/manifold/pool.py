"""The pool of sentences that a transductive step is fitted on."""

from __future__ import annotations

from pathlib import Path

from pipeline.artifacts import read_record

# What an error in the middle of a stage leaves behind.
DISCARDED = "what the stage wrote for earlier corpora is unrecorded, and made again by the next run"


def no_pool(source: Path) -> str | None:
    """Why a corpus can have no neighbourhoods at all, or None: examples are a handful of sentences.

    Any other corpus that is too small for k or p is an error, never a silent blank.
    """
    notes = read_record(source, kind="vectors")["notes"]
    return f"{notes['sentences']} example sentences have no neighbourhoods" if notes["task"] == "example" else None
