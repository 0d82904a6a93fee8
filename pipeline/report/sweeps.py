"""The sweeps of a suite: scores of a grid on development data and on the test sets, and their figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from pipeline.base.suite import Suite
from pipeline.report.results import reading
from sentfold.report.drawing import CurvePanel, draw_curves

# What a sweep scores classification by: no regression, whose nested choices would cost a day over a whole grid.
CLASS_PROTOCOL = "accuracy.3nn-euclidean"
WORDS = {"neighbors": "neighbours k", "components": "dimension p"}


@dataclass(frozen=True)
class Sweep:
    """One grid over one encoder.

    space     the space that its choice becomes
    corpus    the development corpus; protocol: what it was scored by
    points    settings of each point of the grid
    values    score of each point on the development corpus, x100; None where it does not fit
    chosen    the settings chosen on it
    tests     test corpus of the same task -> scores of the points, in the same order; classes: the same of
              classification
    rules     rule without labels -> the score, on the development corpus, of the point that it chooses
    picked    the same rules -> the settings of that point
    leads     corpus -> setting -> its value -> the share of resamples in which the best point has that value
    """

    space: str
    corpus: str
    protocol: str
    points: tuple[dict[str, Any], ...]
    values: tuple[float | None, ...]
    chosen: dict[str, Any]
    tests: dict[str, tuple[float | None, ...]]
    rules: dict[str, float]
    classes: dict[str, tuple[float | None, ...]] = field(default_factory=dict)
    picked: dict[str, dict[str, Any]] = field(default_factory=dict)
    leads: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)

    @property
    def best(self) -> int:
        """The place of the first best point on the development corpus."""
        return max(range(len(self.values)), key=lambda place: _or_lowest(self.values[place]))

    def best_on(self, corpus: str) -> int | None:
        """The place of the first best point on a test corpus; None where none fits."""
        values = self.values_on(corpus)
        known = [place for place, value in enumerate(values) if value is not None]
        return max(known, key=lambda place: (_or_lowest(values[place]), -place)) if known else None

    def inflation(self, corpus: str) -> float | None:
        """What choosing on a test corpus adds to its score; None where the choice does not fit it."""
        values, best = self.values_on(corpus), self.best_on(corpus)
        chosen, highest = values[self.points.index(self.chosen)], None if best is None else values[best]
        return None if highest is None or chosen is None else round(highest - chosen, 2)

    def values_on(self, corpus: str) -> tuple[float | None, ...]:
        """Scores of the points on any corpus; all None on one that was not swept."""
        blank: tuple[float | None, ...] = (None,) * len(self.points)
        return self.values if corpus == self.corpus else (self.tests | self.classes).get(corpus, blank)

    def profile(self, setting: str, values: tuple[float | None, ...]) -> dict[Any, float]:
        """Value of a setting -> the best score that any point with it has: what tuning the others would give."""
        found: dict[Any, float] = {}
        for point, score in zip(self.points, values, strict=True):
            if score is not None and setting in point:
                found[point[setting]] = max(score, found.get(point[setting], score))
        return found


def _or_lowest(value: float | None) -> float:
    return float("-inf") if value is None else value


def _surfaces(oracle: dict[str, Any], protocol: str) -> dict[str, tuple[float | None, ...]]:
    found = {corpus: one for corpus, one in oracle["corpora"].items() if one["protocol"].startswith(protocol)}
    return {corpus: tuple(one["surface"]) for corpus, one in found.items()}


def load_sweeps(suite: Suite) -> dict[str, Sweep]:
    """Sweeps of the suite's spaces whose parameters are chosen by one, by space; unmade ones are left out.

    Raises ArtifactError if a file is not what a sweep writes.
    """
    found = {space: Path("reports") / suite.suite / "sweeps" / space for space in suite.spaces}
    return {space: _load(space, folder) for space, folder in found.items() if (folder / "surface.json").exists()}


def _load(space: str, folder: Path) -> Sweep:
    with reading("a sweep", folder):
        surface, selected, oracle = (
            json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
            for name in ("surface", "selected", "oracle")
        )
        return Sweep(
            space=space,
            corpus=str(surface["corpus"]),
            protocol=str(surface["protocol"]),
            points=tuple(dict(point["parameters"]) for point in surface["points"]),
            values=tuple(point["value"] for point in surface["points"]),
            chosen=dict(selected["parameters"]),
            tests=_surfaces(oracle, str(surface["protocol"])),
            classes=_surfaces(oracle, CLASS_PROTOCOL),
            picked={rule: dict(found["parameters"]) for rule, found in surface.get("rules", {}).items()},
            leads={
                corpus: dict(one.get("leads", {}))
                for corpus, one in {**oracle["corpora"], str(surface["corpus"]): surface}.items()
            },
            rules={rule: float(found["value"]) for rule, found in sorted(surface.get("rules", {}).items())},
        )


def draw_sweep(
    sweep: Sweep,
    setting: str,
    *,
    corpora: Sequence[str],
    baselines: Mapping[str, float],
    control: Sweep | None,
    title: str,
    subtitle: str,
) -> Figure:
    """The best score at each value of a setting, a panel for each corpus; a star marks the choice.

    The best over the other settings is taken on the panel's own corpus: on a test set it is an oracle, no result.

    corpora    those of the sweep that are drawn, the development corpus among them or not
    baselines  corpus -> score of the encoder's own vectors, drawn as a level line
    control    the sweep of a space that sees no neighbourhood: a curve where it has the setting too, else the level
               of its best point
    """
    panels = [
        _sweep_panel(sweep, setting, corpus, {"encoder": baselines.get(corpus)}, control=control) for corpus in corpora
    ]
    return draw_curves(panels, title, subtitle, across=3, doubling=True, level=False)


def _sweep_panel(
    sweep: Sweep, setting: str, corpus: str, levels: dict[str, float | None], *, control: Sweep | None
) -> CurvePanel:
    drawn = [one for one in (sweep, control) if one is not None]
    curves = {one.space: one.profile(setting, one.values_on(corpus)) for one in drawn}
    if control is not None and not any(setting in point for point in control.points):
        known = (value for value in control.values_on(corpus) if value is not None)
        levels[f"best of {control.space}"] = max(known, default=None)
    chosen = sweep.values_on(corpus)[sweep.points.index(sweep.chosen)]
    return CurvePanel(
        f"{corpus} ({_role(sweep, corpus)})",
        WORDS.get(setting, setting),
        {name: curve for name, curve in curves.items() if curve},
        {name: level for name, level in levels.items() if level is not None},
        stars={} if chosen is None else {"as selected": (sweep.chosen[setting], chosen)},
    )


def _role(sweep: Sweep, corpus: str) -> str:
    if corpus == sweep.corpus:
        return "development"
    return "test" if corpus in sweep.tests else "3-NN accuracy"
