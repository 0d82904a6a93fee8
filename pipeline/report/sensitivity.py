"""A word encoder's scores against one hyper-parameter at a time, from the stage sensitivity, and their figure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from pipeline.base.artifacts import sensitivity_path
from pipeline.base.suite import Suite
from pipeline.report.results import reading
from sentfold.report.drawing import CurvePanel, draw_curves

Number = int | float
Key = tuple[str, str, str]
WORDS = {
    "window": "window m",
    "candidates": "candidate directions K",
    "removed": "directions removed h",
    "power": "power t",
}


@dataclass(frozen=True)
class Sensitivity:
    """Scores of one word encoder.

    encoder    a block of word_encoders; vectors: the block of word_vectors that it reads
    published  hyper-parameter -> the paper's own value, in the order of drawing
    protocols  corpus -> what it was scored by; absent: corpus -> why it was not
    curves     (corpus, variant, hyper-parameter) -> value -> score, x100
    """

    encoder: str
    vectors: str
    published: Mapping[str, Number]
    protocols: Mapping[str, str]
    absent: Mapping[str, str]
    curves: Mapping[Key, Mapping[Number, float]]

    def variants_of(self, corpus: str, parameter: str) -> list[str]:
        """The variants that have scores by this parameter on a corpus, in the order of the stage."""
        return [variant for place, variant, name in self.curves if (place, name) == (corpus, parameter)]


def load_sensitivities(suite: Suite) -> dict[str, Sensitivity]:
    """Those that the suite's own list names, by encoder; one that no stage has made yet is left out.

    Raises ArtifactError if a file is not what the stage writes.
    """
    found = {name: sensitivity_path(suite.suite, name) for name in suite.sensitivities}
    return {name: _load(name, path) for name, path in found.items() if path.exists()}


def _load(name: str, path: Path) -> Sensitivity:
    with reading("a sensitivity", path):
        content = json.loads(path.read_text(encoding="utf-8"))
        curves: dict[Key, dict[Number, float]] = {}
        for row in content["rows"]:
            if row["score"] is not None:
                key = (str(row["corpus"]), str(row["variant"]), str(row["parameter"]))
                curves.setdefault(key, {})[row["value"]] = float(row["score"])
        corpora = content["corpora"]
        scored = dict.fromkeys(corpus for corpus, _, _ in curves)
        return Sensitivity(
            encoder=name,
            published={parameter: content["published"][parameter] for _, _, parameter in curves},
            vectors=str(content["vectors"]),
            protocols={corpus: str(corpora[corpus]["protocol"]) for corpus in scored},
            absent={corpus: str(one["absent"]) for corpus, one in sorted(corpora.items()) if "absent" in one},
            curves=curves,
        )


def draw_sensitivity(found: Sensitivity, title: str, subtitle: str) -> Figure:
    """A row of panels for each scored corpus, a panel for each hyper-parameter; the scores of a row share a scale.

    A dotted line marks the value of the paper.
    """
    panels = [
        CurvePanel(
            f"{corpus}: {protocol.partition('.')[0]} ×100",
            WORDS.get(parameter, parameter),
            {name: found.curves[corpus, name, parameter] for name in found.variants_of(corpus, parameter)},
            rules={"the paper's own value": value},
        )
        for corpus, protocol in found.protocols.items()
        for parameter, value in found.published.items()
    ]
    return draw_curves(panels, title, subtitle, across=len(found.published), doubling=False, level=True)
