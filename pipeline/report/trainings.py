"""Trained encoders: a table of every seed, paired differences over seeds, and the curves of the trainings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from pipeline.base.suite import Suite
from pipeline.report.entries import HEADLINE, measured_entry
from pipeline.report.made_of import describe_head
from pipeline.report.results import Results, reading
from sentfold.measures.registry import describe_protocol, unit_of
from sentfold.report.drawing import CurvePanel, draw_curves
from sentfold.report.table import Entry, Group, Head, Line, Panel, Table

if TYPE_CHECKING:
    from pipeline.report.evidence import Evidence

F1 = ("mean-f1.cosine", "best-f1.cosine")
GEOMETRY = {"alignment": "alignment", "uniformity": "uniformity"}
ABOUT = (
    "Encoders that were trained here, and the untrained ones. Every seed is a row with the interval over the pairs of "
    "the test set; what the seed changes is in no such interval. The second panel compares trainings by their seeds: "
    "the same seed gives the same order of the pairs and the same first weights of the head."
)


@dataclass(frozen=True)
class TrainingRun:
    """One training with one seed.

    training, seed  the block of `trainings:` and the seed
    loss            the kind of the loss; head: what the head is, in words
    trained_on      corpus and number of pairs, in words; absent: why there is no model, or ""
    curves          "loss" and "spearman" -> step -> value
    """

    training: str
    seed: int
    loss: str = ""
    head: str = ""
    trained_on: str = ""
    absent: str = ""
    curves: Mapping[str, Mapping[int, float]] | None = None


def load_trainings(suite: Suite) -> dict[str, TrainingRun]:
    """Trained space -> its training; what has not run is left out. Raises ArtifactError for a damaged file."""
    found = {}
    for space, item in suite.stages.get("train", {}).items():
        # As curve_path of pipeline/trainings.py, on which the stage `report` does not depend.
        path = Path("reports") / suite.suite / "sweeps" / f"{space}-training" / "curve.json"
        if path.exists():
            with reading("a training", path):
                found[space] = _read(json.loads(path.read_text(encoding="utf-8")), item)
    return found


def _read(content: dict[str, Any], item: Mapping[str, Any]) -> TrainingRun:
    made = TrainingRun(str(item["training"]), int(item["seed"]))
    if "absent" in content:
        return TrainingRun(made.training, made.seed, absent=str(content["absent"]))
    recipe = content["parameters"]
    curves = {
        name: {int(entry["step"]): float(entry[name]) for entry in content["curve"] if name in entry}
        for name in ("loss", "spearman")
    }
    return TrainingRun(
        made.training,
        made.seed,
        loss=str(recipe["loss"]["kind"]),
        head=describe_head(recipe["head"]),
        trained_on=f"{content['pairs']} pairs of {content['trained_on']}",
        curves=curves,
    )


# --- the table --------------------------------------------------------------------------------------


def training_table(evidence: Evidence) -> Table | None:
    """Every trained encoder of the suite; None for a suite without one."""
    runs = evidence.trainings
    if not runs:
        return None
    results = evidence.results
    similar = results.corpora_of("similarity")
    columns = [(corpus, HEADLINE) for corpus in similar]
    columns += [(corpus, protocol) for corpus in results.corpora_of("inference") for protocol in F1]
    panels = (_seeds(evidence, columns, similar[:1]), *(_differences(evidence, corpus) for corpus in similar[:1]))
    return Table("trainings", "Trained encoders", ABOUT, tuple(panel for panel in panels if panel is not None))


def _seeds(evidence: Evidence, columns: Sequence[tuple[str, str]], geometry: Sequence[str]) -> Panel:
    results, runs = evidence.results, evidence.trainings
    heads = [Head(_title(corpus, protocol), corpus, protocol, unit_of(protocol)) for corpus, protocol in columns]
    heads += [Head(f"{name}, {corpus}", corpus, name, "") for corpus in geometry for name in GEOMETRY]
    own = [space for space in results.suite.spaces if results.suite.encoder_of(space) == space]

    def line(space: str) -> Line:
        scored = [measured_entry(results, space, *column) for column in columns]
        shown = [_geometry(results, space, corpus, name) for corpus in geometry for name in GEOMETRY]
        return Line(space, evidence.made_of.get(space, ""), (*scored, *shown))

    groups = (
        Group("Not trained here", False, tuple(line(space) for space in own if space not in runs)),
        Group(evidence.measured_here, False, tuple(line(space) for space in runs if space in own)),
    )
    return Panel("Every seed", "as the columns say", tuple(heads), tuple(group for group in groups if group.lines))


def _title(corpus: str, protocol: str) -> str:
    return f"{corpus}, {describe_protocol(protocol).partition(' over')[0]}" if protocol in F1 else corpus


def _geometry(results: Results, space: str, corpus: str, name: str) -> Entry:
    value = results.facts(space, corpus).get("geometry", {}).get(name)
    if value is None:
        return Entry(reason=f"no {name} was measured")
    return Entry(f"{value:.3f}", float(value), about=f"{name} of {space} on {corpus}", of=(f"{space}/{corpus}",))


def _differences(evidence: Evidence, corpus: str) -> Panel | None:
    """Differences of trainings over their common seeds; None where no two trainings have two seeds in common."""
    lines, seeds = [], sorted({run.seed for run in evidence.trainings.values()})
    for training, control in compared_trainings(evidence.trainings):
        line = _difference_line(evidence, training, control, corpus, seeds)
        lines += [line] if line is not None else []
    if not lines:
        return None
    heads = [Head(f"seed {seed}", corpus, f"{HEADLINE}, difference", "x100") for seed in seeds]
    heads += [Head("mean", corpus, "mean difference, with the 95% interval of Student's t over seeds", "x100")]
    heads += [Head("t", corpus, "paired t", ""), Head("p", corpus, "two-sided p of the paired t", "")]
    group = Group(evidence.measured_here, False, tuple(lines))
    title = f"{describe_protocol(HEADLINE)} on {corpus}: a training less its control, over seeds"
    protocol = f"paired t over seeds; {len(seeds)} seeds have {len(seeds) - 1} degrees of freedom"
    return Panel(title, protocol, tuple(heads), (group,))


def compared_trainings(runs: Mapping[str, TrainingRun]) -> Iterator[tuple[str, str]]:
    """Pairs of a training and its control.

    Every training has the first of all as a control. A Lorentzian loss also has the one on cosines, and max pooling
    has mean pooling after the same convolution.
    """
    kinds = {run.training: (run.loss, run.head) for run in runs.values() if not run.absent}
    first = next(iter(kinds), "")
    for training, (loss, head) in kinds.items():
        if training != first:
            yield training, first
        on_cosines = {"lorentz-regression": "cosine-regression", "lorentz-contrastive": "contrastive"}.get(loss)
        for control, kind in kinds.items():
            other_pooling = (loss, head.replace("max pooling", "mean pooling"))
            if kind in ((on_cosines, head), other_pooling) and control not in (first, training):
                yield training, control


def _difference_line(evidence: Evidence, training: str, control: str, corpus: str, seeds: Sequence[int]) -> Line | None:
    scores = {(run.training, run.seed): evidence.results.score(space, corpus, HEADLINE).value
              for space, run in evidence.trainings.items()}  # fmt: skip
    sides = [(scores.get((training, seed)), scores.get((control, seed))) for seed in seeds]
    found = [None if one is None or two is None else one - two for one, two in sides]
    known = np.array([value for value in found if value is not None])
    if len(known) < 2:
        return None
    mean, low, high, t, p = paired_t(known)
    spaces = [s for s, run in evidence.trainings.items() if run.training in (training, control)]
    of = tuple(f"{space}/{corpus}" for space in spaces)
    about = f"{HEADLINE} on {corpus} of {training} less that of {control}, by seed"
    blank = Entry(reason="one of the two was not trained with this seed")
    entries = [blank if value is None else Entry(f"{value:+.2f}", float(value), about=about, of=of) for value in found]
    entries.append(Entry(f"{mean:+.2f}", mean, low, high, about=f"{about}: mean over seeds", of=of, digits=2))
    flat = Entry(reason="all seeds have one difference")
    entries += [flat if not np.isfinite(v) else Entry(f"{v:.3f}", v, about=about, of=of) for v in (t, p)]
    return Line(f"{training} − {control}", "", tuple(entries))


def paired_t(differences: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float, float, float, float]:
    """Mean, 95% interval, t and two-sided p of n >= 2 paired differences, by Student's t with n - 1 degrees of freedom.

    t and p are NaN where all differences are equal.
    """
    n, mean = len(differences), float(differences.mean())
    error = float(differences.std(ddof=1) / np.sqrt(n))
    reach = float(stats.t.ppf(0.975, n - 1)) * error
    t = mean / error if error > 0 else float("nan")
    return mean, mean - reach, mean + reach, t, float(2 * stats.t.sf(abs(t), n - 1))


# --- the figure -------------------------------------------------------------------------------------


def draw_trainings(runs: Mapping[str, TrainingRun], title: str, subtitle: str) -> Figure | None:
    """A panel of losses and one of development scores for each training, a curve for each seed; None without curves."""
    panels = []
    for training in dict.fromkeys(run.training for run in runs.values() if run.curves):
        own = {f"seed {run.seed}": run.curves for run in runs.values() if run.training == training and run.curves}
        for name, said in (("loss", "loss"), ("spearman", "Spearman, development pairs")):
            curves = {seed: found[name] for seed, found in own.items() if found.get(name)}
            panels.append(CurvePanel(f"{training}: {said}", "step", curves))
    return draw_curves(panels, title, subtitle, across=2, doubling=False, level=False) if panels else None
