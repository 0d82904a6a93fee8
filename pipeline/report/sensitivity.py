"""A word encoder's scores against one hyper-parameter at a time, from the stage sensitivity, and their figure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeline.base.artifacts import sensitivity_path
from pipeline.base.suite import Suite
from sentfold.errors import ArtifactError
from sentfold.measures.registry import describe_protocol
from sentfold.report.drawing import INK, STYLE, WIDTH, head_figure, look_of, set_plain

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

    @property
    def variants(self) -> list[str]:
        """Names of the variants, in the order of the stage."""
        return list(dict.fromkeys(variant for _, variant, _ in self.curves))

    def widest(self, corpus: str, variant: str) -> tuple[str, float] | None:
        """The hyper-parameter that moves the score most, and by how much; None where nothing was scored."""
        spans = {
            parameter: max(curve.values()) - min(curve.values())
            for (place, name, parameter), curve in self.curves.items()
            if (place, name) == (corpus, variant)
        }
        return max(spans.items(), key=lambda item: item[1]) if spans else None


def load_sensitivities(suite: Suite) -> dict[str, Sensitivity]:
    """Those that the suite's own list names, by encoder; one that no stage has made yet is left out.

    Raises ArtifactError if a file is not what the stage writes.
    """
    found = {name: sensitivity_path(suite.suite, name) for name in suite.sensitivities}
    return {name: _load(name, path) for name, path in found.items() if path.exists()}


def _load(name: str, path: Path) -> Sensitivity:
    try:
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
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(
            "a sensitivity cannot be read",
            where=str(path),
            expected="the rows of one word encoder",
            got=repr(error),
            remedy="run `dvc repro`, which makes them",
        ) from None


def describe_sensitivity(found: Sensitivity) -> str:
    """What moves the score most, on which data, and what is absent from the figure."""
    parts = []
    for corpus, protocol in found.protocols.items():
        widest = {variant: found.widest(corpus, variant) for variant in found.variants}
        said = [f"{one[0]} by {one[1]:.2f} points ({variant})" for variant, one in widest.items() if one is not None]
        absent = [variant for variant, one in widest.items() if one is None]
        parts.append(f"{corpus} ({_describe_scoring(protocol)}): {', '.join(said)}")
        parts += [f"not drawn there: {', '.join(absent)}"] if absent else []
    missing = "; ".join(f"{corpus} ({reason})" for corpus, reason in found.absent.items())
    return (
        f"What moves the score most. {'; '.join(parts)}. Scores are of development data, and no parameter is chosen by "
        f"them.{f' Absent: {missing}.' if missing else ''}"
    )


def _describe_scoring(protocol: str) -> str:
    return "accuracy in cross-validation" if protocol.startswith("accuracy") else describe_protocol(protocol)


def draw_sensitivity(found: Sensitivity, title: str, subtitle: str) -> Figure:
    """A row of panels for each scored corpus, a panel for each hyper-parameter; a level of scores is one row's.

    A dotted line marks the value of the paper. Variants differ in colour, in marker and in dash.
    """
    with style.context(["default", STYLE]):
        columns, rows = len(found.published), len(found.protocols)
        figure = Figure(figsize=(WIDTH, 2.3 * rows + 1.3), layout="constrained")
        panels: Any = figure.subplots(rows, columns, squeeze=False, sharey="row", sharex="col")
        for line, (corpus, protocol) in zip(panels, found.protocols.items(), strict=True):
            for axes, parameter in zip(line, found.published, strict=True):
                _draw_panel(axes, found, corpus, parameter)
            line[0].set_ylabel(f"{corpus}\n{_axis(protocol)}", fontsize=9)
        for axes, parameter in zip(panels[-1], found.published, strict=True):
            axes.set_xlabel(WORDS.get(parameter, parameter))
        lines = {str(drawn.get_label()): drawn for axes in panels.flat for drawn in axes.get_lines()}
        figure.legend(
            lines.values(), lines.keys(), frameon=False, loc="outside lower left", ncols=len(lines), handlelength=3
        )
        head_figure(figure, title, subtitle)
    return figure


def _axis(protocol: str) -> str:
    return f"{protocol.partition('.')[0].replace('pearson', 'Pearson')}, ×100"


def _draw_panel(axes: Axes, found: Sensitivity, corpus: str, parameter: str) -> None:
    for i, variant in enumerate(found.variants):
        curve = found.curves.get((corpus, variant, parameter))
        if curve:
            look = look_of(i)
            axes.plot(
                list(curve), list(curve.values()), linestyle=look.dash, markersize=6, label=variant, **look.mark()
            )
    axes.axvline(found.published[parameter], color=INK, linewidth=1, linestyle=":", label="the paper's own value")
    set_plain(axes)
