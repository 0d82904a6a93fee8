"""The scores files of a suite, and what a table must print of them."""

from __future__ import annotations

import json
from typing import Any

from pipeline.artifacts import scores_path
from pipeline.lineage.errors import LineageError
from pipeline.lineage.numbers import Number
from pipeline.lineage.trees import Tree


class Scores:
    """scores/<space>.json of one suite in one tree; each file is read once."""

    def __init__(self, tree: Tree, suite: str) -> None:
        self.tree = tree
        self.suite = suite
        self._files: dict[str, dict[str, Any] | None] = {}

    def path(self, space: str) -> str:
        """Where the scores of a space lie."""
        return scores_path(self.suite, space).as_posix()

    def facts(self, space: str, corpus: str) -> dict[str, Any] | None:
        """What is recorded of one space on one corpus, or None."""
        if space not in self._files:
            self._files[space] = self._read(space)
        corpora = (self._files[space] or {}).get("corpora")
        facts = corpora.get(corpus) if isinstance(corpora, dict) else None
        return facts if isinstance(facts, dict) else None

    def score(self, space: str, corpus: str, protocol: str) -> dict[str, Any] | None:
        """value, low and high of one score on the x100 scale, or None."""
        scores = (self.facts(space, corpus) or {}).get("scores")
        score = scores.get(protocol) if isinstance(scores, dict) else None
        return score if isinstance(score, dict) else None

    def printed(self, space: str, corpus: str, protocol: str, field: str, *, unit: str = "x100") -> str | None:
        """A score as tables print it: two digits; nats, stored times 100, with four and bounds with three."""
        number = (self.score(space, corpus, protocol) or {}).get(field)
        if not isinstance(number, int | float):
            return None
        if unit == "nats":
            return f"{number / 100:.4f}" if field == "value" else f"{number / 100:.3f}"
        return f"{number:.2f}"

    def printed_difference(self, space: str, other: str, corpus: str, protocol: str) -> str | None:
        """The difference of two scores as scores.csv prints it."""
        scores = [self.score(name, corpus, protocol) for name in (space, other)]
        values = [None if score is None else score.get("value") for score in scores]
        if not all(isinstance(value, int | float) for value in values):
            return None
        ours, theirs = (float(value) for value in values if value is not None)
        return f"{round(ours - theirs, 2):.2f}"

    def text_of(self, number: Number) -> str | None:
        """What a table must print for a score, or for a difference of two; None if there is no such score."""
        if number.origin == "difference":
            return self.printed_difference(number.space, number.other, number.corpus, number.protocol)
        return self.printed(number.space, number.corpus, number.protocol, number.field, unit=number.unit)

    def _read(self, space: str) -> dict[str, Any] | None:
        try:
            content = json.loads(self.tree.read(self.path(space)) or b"null")
        except (ValueError, LineageError):
            return None
        return content if isinstance(content, dict) else None
