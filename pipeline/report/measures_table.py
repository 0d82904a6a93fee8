"""Table of similarities other than cosine, and the choice of the Lorentzian's curvature on development data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pipeline.papers.plan import load_figures
from pipeline.report.comparisons import Judged, judge_sides, no_smallest, smallest_difference
from pipeline.report.entries import HEADLINE, measured_entry
from pipeline.report.evidence import Evidence
from pipeline.report.made_of import listed
from pipeline.report.results import Results
from pipeline.report.selection_table import inflation_entry, oracle_entry
from pipeline.report.sentences import count_differences
from pipeline.report.sweeps import Sweep
from sentfold.compare.multiplicity import POWER
from sentfold.measures.base.pairs import BETAS
from sentfold.measures.registry import describe_protocol, find_measure
from sentfold.report.table import Entry, Group, Head, Line, Panel, Table

PROTOCOLS = tuple(f"spearman.all.lorentz-{beta:g}" for beta in BETAS)
# In words, and not the β of each cell: near ties flip between processors, and an audit that runs the report again
# elsewhere must find the same cells. The link of each cell names its β.
CHOSEN = "Spearman of Lorentzian similarity, all pairs, each row with its chosen β"
MEASURES = find_measure("similarity").short  # the similarities other than cosine
ABOUT = (
    "Spearman over all pairs by other similarities than cosine, marked where one differs from the cosine of the very "
    "same vectors beyond chance. On vectors of one length every one of them but |cosine| and −Manhattan ranks as "
    "cosine does, and the Lorentzian distance with any β, since it is then a growing function of the angle."
)


def measures_table(evidence: Evidence) -> Table | None:
    """Every space by every similarity, a panel for each of a few corpora, then the choice of the Lorentzian's β.

    None where nothing was scored so.
    """
    results = evidence.results
    similar = [c for c in results.corpora_of("similarity") if any(_scored(results, s, c) for s in results.suite.spaces)]
    corpora = [corpus for corpus in load_figures().measures if corpus in similar] or similar
    panels = [_panel(evidence, corpus) for corpus in corpora]
    panels += curvature_panels(evidence, corpora)
    return Table("measures", "Other similarities than cosine", ABOUT, tuple(panels)) if panels else None


def _scored(results: Results, space: str, corpus: str) -> bool:
    return any(results.score(space, corpus, f"spearman.all.{name}").value is not None for name in MEASURES)


def _panel(evidence: Evidence, corpus: str) -> Panel:
    results, made_of = evidence.results, evidence.made_of
    protocols = [f"spearman.all.{name}" for name in MEASURES]
    spaces = [space for space in results.suite.spaces if _scored(results, space, corpus)]
    sides = [((space, protocol), (space, HEADLINE), corpus) for space in spaces for protocol in protocols]
    family = judge_sides(results, sides)
    signs = {(judged.space, judged.protocol): judged.sign for judged in family}
    lines = [
        Line(space, made_of.get(space, ""), _entries(results, space, corpus, protocols, signs)) for space in spaces
    ]
    heads = [Head("cosine", corpus, HEADLINE)]
    heads += [Head(title, corpus, f"spearman.all.{name}") for name, title in MEASURES.items()]
    group = Group(evidence.measured_here, False, tuple(lines))
    said = "; ".join(dict.fromkeys(describe_protocol(head.protocol) for head in heads))
    return Panel(f"{corpus}: Spearman by similarity", said, tuple(heads), (group,), _shows(family), _notes(family))


def _entries(
    results: Results, space: str, corpus: str, protocols: Sequence[str], signs: Mapping[tuple[str, str], int]
) -> tuple[Entry, ...]:
    entries = [measured_entry(results, space, corpus, protocol) for protocol in (HEADLINE, *protocols)]
    marked = [
        replace(entry, sign=signs.get((space, protocol), 0))
        for entry, protocol in zip(entries[1:], protocols, strict=True)
    ]
    return (entries[0], *marked)


def _shows(family: Sequence[Judged]) -> tuple[str, ...]:
    """How often each similarity lies above cosine beyond chance, by how much at most, and how often below."""
    sentences = []
    for name, title in MEASURES.items():
        own = [judged for judged in family if judged.protocol == f"spearman.all.{name}"]
        above, below = ([judged for judged in own if judged.sign == sign] for sign in (1, -1))
        if not above and not below:
            sentences.append(f"{title}: not to be told from cosine in any of {len(own)} spaces.")
            continue
        best = max(above, key=lambda judged: judged.result.value, default=None)
        gain = "" if best is None else f", at most {best.result.value:+.2f} ({best.space})"
        sentences.append(f"{title}: of {len(own)} spaces above cosine in {len(above)}{gain}, below in {len(below)}.")
    return tuple(sentences)


def _notes(family: Sequence[Judged]) -> tuple[str, ...]:
    if not family:
        return (no_smallest("no space has both a cosine and another similarity scored on it"),)
    return (
        f"Multiple comparisons: the {len(family)} differences of this panel to the cosine of the same space are judged "
        "together (max-T over paired bootstrap resamples). A similarity that gives the very same ranking in every "
        "resample has a difference of exactly zero and takes no part.",
        _smallest(family),
    )


def _smallest(family: Sequence[Judged]) -> str:
    """By similarity, since |cosine| moves far more from resample to resample than a Lorentzian distance does."""
    sizes = []
    for name, title in MEASURES.items():
        own = [judged.result.detectable for judged in family if judged.protocol == f"spearman.all.{name}"]
        moving = [size for size in own if size > 0]
        sizes += [f"{title} {np.median(moving):.2g}"] if moving else []
    if not sizes:
        return no_smallest("every similarity ranks exactly as cosine does, in every space and every resample")
    return (
        f"Smallest difference to cosine that a space would show here with {POWER:.0%} power after adjustment, in "
        f"points, median over spaces: {', '.join(sizes)}."
    )


# --- the choice of β --------------------------------------------------------------------------------


def curvature_panels(evidence: Evidence, corpora: Sequence[str]) -> tuple[Panel, ...]:
    """Scores by β on the development corpus, and the choice with its scores on the test sets among `corpora`.

    () where the suite has no development corpus, where no space is scored on it, or where nothing is left to test on.
    """
    results = evidence.results
    development = results.suite.development
    tests = [corpus for corpus in corpora if corpus != development]
    if development is None or not tests:
        return ()
    grids = [curvature_grid(results, space, development, tests) for space in results.suite.spaces]
    if not any(chooses(grid) for grid in grids):
        return ()
    return _surface(evidence, grids), _choice(evidence, grids)


def curvature_grid(results: Results, space: str, development: str, tests: Sequence[str]) -> Sweep:
    """Every β of one space as the points of a grid: choice, oracle and inflation are then those of any sweep."""
    values = {
        corpus: tuple(results.score(space, corpus, protocol).value for protocol in PROTOCOLS)
        for corpus in (development, *tests)
    }
    points = tuple({"beta": beta} for beta in BETAS)
    grid = Sweep(
        space, development, CHOSEN, points, values[development], chosen={},
        tests={corpus: values[corpus] for corpus in tests}, rules={},
    )  # fmt: skip
    return replace(grid, chosen=points[grid.best])


def chooses(grid: Sweep) -> bool:
    """Whether there is any score on the development corpus to choose by."""
    return any(value is not None for value in grid.values)


def count_best(grid: Sweep) -> int:
    """How many β score the best on the development corpus, to the two digits that are printed."""
    return grid.values.count(grid.values[grid.best])


def _surface(evidence: Evidence, grids: Sequence[Sweep]) -> Panel:
    """What the choice is made from: every β on the development corpus, and cosine."""
    results, made_of, corpus = evidence.results, evidence.made_of, grids[0].corpus
    heads = [Head("cosine", corpus, HEADLINE)]
    heads += [Head(f"β = {beta:g}", corpus, protocol) for beta, protocol in zip(BETAS, PROTOCOLS, strict=True)]
    lines = tuple(
        Line(
            grid.space,
            made_of.get(grid.space, ""),
            tuple(measured_entry(results, grid.space, corpus, head.protocol) for head in heads),
        )
        for grid in grids
    )
    group = Group(evidence.measured_here, False, lines)
    notes = (no_smallest(f"{corpus} serves to choose β; cosine is compared with the choice in the next panel"),)
    return Panel(
        f"Lorentzian similarity by β on the development corpus {corpus}",
        "Spearman of Lorentzian similarity, all pairs, and of cosine", tuple(heads), (group,),
        _ties_shown(results, grids), notes,
    )  # fmt: skip


def _ties_shown(results: Results, grids: Sequence[Sweep]) -> tuple[str, ...]:
    """In how many spaces there is a choice at all."""
    known = [grid for grid in grids if chooses(grid)]
    alike = [grid for grid in known if count_best(grid) == len(BETAS)]
    same = [grid for grid in alike if has_one_length(results, grid)]
    several = sum(1 < count_best(grid) < len(BETAS) for grid in known)
    sentences = [
        f"Of {len(known)} spaces, one β alone is best on {grids[0].corpus} in {len(known) - several - len(alike)}; in "
        f"{several} some β tie for the best score, and the first of them is taken; in {len(alike)} all tie, to the two "
        "digits printed, and there is nothing to choose: the first β stands for all."
    ]
    if same:
        sentences.append(
            "All β tie of necessity where every vector has one length, for each then ranks as cosine does, but for "
            f"pairs so near in cosine that rounding decides: {listed([grid.space for grid in same])}."
        )
    return tuple(sentences)


def has_one_length(results: Results, grid: Sweep) -> bool:
    """Whether the vectors of a space on the development corpus are of one length, to the digits that are stored."""
    geometry = results.facts(grid.space, grid.corpus).get("geometry", {})
    return bool(geometry.get("length_sd") == 0)


def _choice(evidence: Evidence, grids: Sequence[Sweep]) -> Panel:
    """The chosen β of each space, and on each test set its score, the oracle's and the inflation."""
    results, made_of, corpus = evidence.results, evidence.made_of, grids[0].corpus
    known = [grid for grid in grids if chooses(grid)]
    family = _judge(results, known)
    signs = {(judged.space, judged.corpus): judged.sign for judged in family}
    heads = [Head("chosen β", corpus, "chosen β", "β"), Head(corpus, corpus, CHOSEN)]
    for test in grids[0].tests:
        heads += [Head(test, test, CHOSEN), Head(f"{test}, oracle", test, f"{CHOSEN}: oracle, chosen on {test} itself")]
        heads.append(Head(f"{test}, inflation", test, f"{CHOSEN}: oracle less selected"))
    lines = tuple(
        Line(grid.space, made_of.get(grid.space, ""), _choice_entries(results, grid, signs, len(heads)))
        for grid in grids
    )
    return Panel(
        f"β of the Lorentzian similarity, chosen on {corpus}", CHOSEN, tuple(heads),
        (Group(evidence.measured_here, False, lines),), _choice_shows(family, known), _choice_notes(family),
    )  # fmt: skip


def _judge(results: Results, grids: Sequence[Sweep]) -> tuple[Judged, ...]:
    """The chosen β of every space against the cosine of the same vectors, on all test sets together."""
    sides = [
        ((grid.space, PROTOCOLS[grid.best]), (grid.space, HEADLINE), corpus) for grid in grids for corpus in grid.tests
    ]
    # One column of the panel each, whatever β its rows have.
    return tuple(replace(judged, protocol=CHOSEN) for judged in judge_sides(results, sides))


def _choice_entries(
    results: Results, grid: Sweep, signs: Mapping[tuple[str, str], int], columns: int
) -> tuple[Entry, ...]:
    if not chooses(grid):
        return (Entry(reason=f"no β of {grid.space} is scored on {grid.corpus}, so none is chosen"),) * columns
    entries = [_chosen_entry(results, grid), _score(results, grid, grid.corpus)]
    for corpus in grid.tests:
        selected = replace(_score(results, grid, corpus), sign=signs.get((grid.space, corpus), 0))
        entries += [selected, *(entry(grid, corpus, grid.space) for entry in (oracle_entry, inflation_entry))]
    return tuple(entries)


def _score(results: Results, grid: Sweep, corpus: str) -> Entry:
    return measured_entry(results, grid.space, corpus, PROTOCOLS[grid.best])


def _chosen_entry(results: Results, grid: Sweep) -> Entry:
    """The chosen β; where all tie, words in its place, since nothing was chosen."""
    beta, best = BETAS[grid.best], count_best(grid)
    known = [(beta, value) for beta, value in zip(BETAS, grid.values, strict=True) if value is not None]
    said = f"Spearman of {grid.space} on {grid.corpus} by β: {', '.join(f'{b:g} gives {v:.2f}' for b, v in known)}"
    of = (f"{grid.space}/{grid.corpus}",)
    if best == len(BETAS):
        why = "vectors of one length" if has_one_length(results, grid) else f"all {best} tie"
        return Entry(f"any ({why})", about=f"{said}; nothing to choose, β = {beta:g} stands for all", of=of)
    if best > 1:
        return Entry(f"{beta:g} (first of {best} that tie)", float(beta), about=f"{said}; the first of the best", of=of)
    return Entry(f"{beta:g}", float(beta), about=f"{said}; the best", of=of)


def _choice_shows(family: Sequence[Judged], grids: Sequence[Sweep]) -> tuple[str, ...]:
    """Over how many spaces the choice differs from cosine, and the largest inflation."""
    sentences = (
        _against_cosine(family) if family else "",
        count_differences(family, "the cosine of the same vectors") if family else "",
        _largest_inflation(grids),
    )
    return tuple(filter(None, sentences))


def _against_cosine(family: Sequence[Judged]) -> str:
    """In how many spaces the choice differs from cosine beyond chance, and on which test sets, to which side."""
    spaces, corpora = (list(dict.fromkeys(names)) for names in zip(*((j.space, j.corpus) for j in family), strict=True))
    called = {judged.space for judged in family if judged.sign}
    if not called:
        return f"The chosen β is not to be told from cosine on any test set, in any of {len(spaces)} spaces."
    parts = []
    for sign, word in ((-1, "below"), (1, "above")):
        counts = {corpus: sum((j.corpus, j.sign) == (corpus, sign) for j in family) for corpus in corpora}
        named = [f"on {corpus} in {count}" for corpus, count in counts.items() if count]
        parts.append(f"{word} it {listed(named or ['on none'])}")
    return (
        f"The chosen β differs from cosine beyond chance on at least one test set in {len(called)} of {len(spaces)} "
        f"spaces: {'; '.join(parts)}."
    )


def _largest_inflation(grids: Sequence[Sweep]) -> str:
    """The largest inflation with the two β it lies between, and how often there is none."""
    found = [
        (gain, grid, corpus) for grid in grids for corpus in grid.tests if (gain := grid.inflation(corpus)) is not None
    ]
    if not found:
        return ""
    gain, grid, corpus = max(found, key=lambda case: case[0])
    best = grid.best_on(corpus)
    if gain <= 0 or best is None:
        return "Choosing β on the test sets themselves would have added nothing in any space."
    nothing = sum(case[0] == 0 for case in found)
    return (
        f"Largest inflation: choosing β on {corpus} itself would have added {gain:.2f} points to {grid.space} "
        f"(β = {BETAS[best]:g} in place of {BETAS[grid.best]:g}). In {nothing} of {len(found)} scores it would have "
        "added nothing."
    )


def _choice_notes(family: Sequence[Judged]) -> tuple[str, ...]:
    notes = [smallest_difference(family, "cosine")]
    if family:
        notes.insert(
            0,
            f"Multiple comparisons: the {len(family)} differences of the chosen β to the cosine of the same space, on "
            "all test sets of this panel, are judged together (max-T over paired bootstrap resamples): ▲ lies above "
            "cosine beyond chance, ▼ below. A β that ranks exactly as cosine in every resample has a difference of "
            "exactly zero and takes no part. The panels by corpus judge other families, so a mark may differ there.",
        )
    return (*notes, "An oracle is the largest of several scores on one test set, so it has no interval and no mark.")
