"""The sensitivities of a suite as its report reads them: scores against one hyper-parameter at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import ArtifactError
from pipeline.report.tables import protocol_title
from pipeline.selection.sensitivity_parameters import sensitivities_of, surface_path
from pipeline.suite import Suite

Number = int | float
Key = tuple[str, str, str]


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
    found = {name: surface_path(suite.suite, name) for name in sensitivities_of(suite)}
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
    """What the figure shows, on which data, and what is absent from it."""
    parts = []
    for corpus in found.protocols:
        for variant in found.variants:
            widest = found.widest(corpus, variant)
            if widest is not None:
                parameter, span = widest
                curve = found.curves[corpus, variant, parameter]
                low, high = min(curve, key=lambda value: curve[value]), max(curve, key=lambda value: curve[value])
                ends = f"{curve[low]:.2f} at {low:g}, {curve[high]:.2f} at {high:g}"
                parts.append(f"{corpus}, {variant}: {parameter} by {span:.2f} points ({ends})")
    data = ", ".join(f"{corpus} by {_judged(protocol)}" for corpus, protocol in found.protocols.items())
    missing = "; ".join(f"{corpus} ({reason})" for corpus, reason in found.absent.items())
    return (
        f"What moves the score most: {'; '.join(parts)}. Scored: {data}; no test set is looked at, and nothing in "
        f"params.yaml is chosen by it.{_without_curves(found)}{f' Absent: {missing}.' if missing else ''}"
    )


def _without_curves(found: Sensitivity) -> str:
    """Which variant has no curve on which corpus, and why; "" where each has its own."""
    lacking: dict[str, list[str]] = {}
    for corpus in found.protocols:
        for variant in found.variants:
            if found.widest(corpus, variant) is None:
                lacking.setdefault(variant, []).append(corpus)
    return "".join(
        f" Without a curve on {', '.join(corpora)}: {variant}. Regressions take most of the time, so they are fitted "
        f"on the variants alone that report.sensitivity.{found.encoder}.fitted names in params.yaml."
        for variant, corpora in lacking.items()
    )


def _judged(protocol: str) -> str:
    if protocol.startswith("accuracy"):
        return "accuracy in cross-validation, ×100"
    return f"{protocol_title(protocol)}, ×100, on development data"
