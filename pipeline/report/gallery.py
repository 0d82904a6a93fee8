"""Every figure of a report, with its title and what to see in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from pipeline.papers.plan import load_figures
from pipeline.report.comparisons import BASELINE
from pipeline.report.entries import HEADLINE, difference_entry
from pipeline.report.evidence import Evidence
from pipeline.report.page import Picture
from pipeline.report.results import Results
from pipeline.report.sensitivity import draw_sensitivity
from pipeline.report.speed import SPEED_CAPTION, draw_speed, speed_points
from pipeline.report.sweeps import CLASS_PROTOCOL, WORDS, Sweep, draw_sweep
from pipeline.report.trainings import draw_trainings
from sentfold.measures.registry import describe_protocol
from sentfold.report.drawing import draw_forest, figure_bytes
from sentfold.report.table import explain_caveats
from sentfold.retrieval.base.measures import MEASURES
from sentfold.retrieval.base.protocol import find_search

LIMIT = 5.0  # points; a figure of differences is not stretched for one that is larger
SHOWN = 5  # test sets of a sweep that are drawn, in the suite's order


def draw_gallery(evidence: Evidence) -> list[Picture]:
    """The figures that this suite's artifacts can fill, the one that says most first."""
    return [
        *_differences(evidence),
        *_retrieval(evidence),
        *_sweeps(evidence),
        *_sensitivities(evidence),
        *_trainings(evidence),
        *_speed(evidence),
    ]


def _named(name: str, title: str, caption: str, figure: Figure) -> Picture:
    return Picture(name, title, caption, figure_bytes(figure, "svg"))


@dataclass(frozen=True)
class Heading:
    """What a figure is called.

    name   of its file; title: above it
    first  the first sentence of its caption; seen: what is right of the line, below the title
    """

    name: str
    title: str
    first: str
    seen: str


def _differences(evidence: Evidence) -> Iterator[Picture]:
    """Every derived space against its baseline, on every similarity corpus that has a score; nothing without one."""
    results = evidence.results
    others = _baselines_of(results)
    title = f"What each space does to the cosine of {others}"
    first = f"Right of the line: better than the cosine of {others}."
    seen = f"difference in {describe_protocol(HEADLINE)}; right of the line: better"
    heading = Heading("differences", title, first, seen)
    rows = {space: space for space in _compared(results)}
    yield from _forest(results, rows, results.corpora_of("similarity"), HEADLINE, heading)


def _retrieval(evidence: Evidence) -> Iterator[Picture]:
    """Every search against cosine in the same space, on every pool, a figure per encoder; nothing without searches."""
    results = evidence.searches
    if results is None:
        return
    encoders: dict[str, dict[str, str]] = {}
    for key, label in label_searches(evidence).items():
        cosine = results.suite.encoder_of(key)
        encoders.setdefault(str(results.suite.stages["search"][cosine]["space"]), {})[key] = label
    for place, (encoder, rows) in enumerate(encoders.items()):
        heading = Heading(
            f"retrieval-{encoder}" if place else "retrieval",
            f"Does a cheap change help {evidence.made_of.get(encoder, encoder)} to find documents?",
            "Each panel is a pool of documents, each row one change of the vectors or of the search. Right of the "
            "line: it ranks the relevant documents higher than the cosine of the unchanged vectors does.",
            f"difference in {MEASURES[0]}, a panel for each pool of documents; right of the line: relevant documents "
            "rank higher than by the cosine of the unchanged vectors",
        )
        yield from _forest(results, rows, results.suite.corpora, MEASURES[0], heading)


def label_searches(evidence: Evidence) -> dict[str, str]:
    """What a figure calls each search that is compared with another: the method in words, and what its name adds.

    A cosine in a derived space is called what made the space; two spaces of one method have their names too.
    """
    results = evidence.searches
    if results is None:
        return {}
    searches, titles = results.suite.stages["search"], dict[str, str]()
    for key in _compared(results):
        item = searches[key]
        made = evidence.made_of.get(item["space"], item["space"]).partition(";")[0].partition(",")[0]
        added = item["search"].replace("_", "-").removeprefix(item["method"].replace("_", "-")).strip("-")
        title = find_search(item["method"]).TITLE + (f", {added}" if added and added != item["search"] else "")
        titles[key] = made if item["search"] == "cosine" else title
    pairs = Counter((searches[key]["against"], title) for key, title in titles.items())
    return {
        key: title if pairs[searches[key]["against"], title] == 1 else f"{title} ({searches[key]['space']})"
        for key, title in titles.items()
    }


def _compared(results: Results) -> list[str]:
    return [space for space in results.suite.derived_spaces if space in results.baselines]


def _baselines_of(results: Results) -> str:
    return ", ".join(dict.fromkeys(results.baselines[space] for space in _compared(results)))


def _forest(
    results: Results, rows: Mapping[str, str], corpora: Sequence[str], protocol: str, heading: Heading
) -> Iterator[Picture]:
    """Differences of spaces to their baselines, a panel per corpus with a score. rows: space -> its label."""
    panels = {
        corpus: [difference_entry(results, (s, results.baselines[s]), corpus, protocol, role=BASELINE) for s in rows]
        for corpus in corpora
    }
    shown = {corpus: entries for corpus, entries in panels.items() if any(not entry.blank for entry in entries)}
    if not shown:
        return
    words = f"{heading.seen}; bars: {results.confidence:.0%} paired bootstrap intervals"
    caveats = explain_caveats(caveat for entries in shown.values() for entry in entries for caveat in entry.caveats)
    caption = " ".join([heading.first, f"Arrows: differences beyond {LIMIT:g} points.", *caveats])
    axis = f"points on the ×100 scale; an arrow and its number: beyond {LIMIT:g} points"
    marked = {
        f"{corpus} †" if any("†" in entry.marks for entry in entries) else corpus: entries
        for corpus, entries in shown.items()
    }
    figure = draw_forest(list(rows.values()), marked, axis, heading.title, words, limit=LIMIT)
    yield _named(heading.name, heading.title, caption, figure)


def _sweeps(evidence: Evidence) -> Iterator[Picture]:
    """SBERT-LP's figures 2 and 4 (similarity), 3 and 5 (classification): the first sweep that varies neighbours."""
    sweeps, suite = evidence.sweeps, evidence.results.suite
    similar_ones = [one for one in sweeps.values() if one.protocol.startswith("spearman")]
    sweep = next((one for one in similar_ones if {"neighbors", "components"} <= set(one.points[0])), None)
    if sweep is None:
        return
    encoder = suite.encoder_of(sweep.space)
    own = [one for one in similar_ones if suite.encoder_of(one.space) == encoder]
    control = next((one for one in own if set(one.points[0]) == {"components"}), None)
    similar = [sweep.corpus, *swept_panels(suite.corpora, sweep.tests, SHOWN)]
    classified = swept_panels(suite.corpora, sweep.classes, SHOWN + 1)
    kinds = (("", similar, sweep.protocol, ("2", "4")), ("-classes", classified, CLASS_PROTOCOL, ("3", "5")))
    for suffix, corpora, protocol, numbers in kinds:
        for setting, number in zip(("neighbors", "components"), numbers, strict=True):
            if corpora:
                title = f"Scores by {WORDS[setting]}, as SBERT-LP's figure {number}"
                yield _sweep(evidence, sweep, control, setting, corpora, protocol, title, suffix)


def swept_panels(order: Sequence[str], swept: Collection[str], room: int) -> list[str]:
    """At most `room` of the swept corpora, in the suite's order, which the files of a sweep do not keep.

    order  corpora of the suite; a swept one that it does not name is left out
    """
    found = [corpus for corpus in order if corpus in swept]
    always = load_figures().sweep
    if always in found[room:]:
        return [*found[: room - 1], always]
    return found[:room]


def _sweep(
    evidence: Evidence, sweep: Sweep, control: Sweep | None, setting: str, corpora: list[str], protocol: str,
    title: str, suffix: str,
) -> Picture:  # fmt: skip
    encoder = evidence.results.suite.encoder_of(sweep.space)
    scores = {corpus: evidence.results.score(encoder, corpus, protocol).value for corpus in corpora}
    baselines = {corpus: value for corpus, value in scores.items() if value is not None}
    over = "p" if setting == "neighbors" else "k"
    over = over if suffix else f"{over} and the other settings"
    figure = draw_sweep(
        sweep, setting, corpora=corpora, baselines=baselines, control=control, title=title,
        subtitle=f"{describe_protocol(protocol)}, ×100; at each value the maximum over {over} on the drawn set itself, "
        f"an oracle{'' if suffix else ' on test sets'}",
    )  # fmt: skip
    caption = (
        f"The star was chosen on {sweep.corpus} alone. On every other set a curve is an oracle, no result: at each "
        f"value the maximum over {over}, by the scores of the drawn set itself; so is the level of a control."
        f"{' Regularisation and scaling are those of the star.' if suffix else ''}"
    )
    return _named(f"sweep-{setting}{suffix}", title, caption, figure)


def _speed(evidence: Evidence) -> Iterator[Picture]:
    corpus, protocol = load_figures().speed.corpus, load_figures().speed.protocol
    points = speed_points(evidence, corpus, protocol)
    if points:
        where = str(evidence.benchmark["processor"])
        title = "Speed against quality"
        words = f"{corpus}, {describe_protocol(protocol)}, ×100, against speed on {where}; fitting excluded"
        figure = draw_speed(points, f"{describe_protocol(protocol)}, ×100", title, words)
        yield _named("speed-quality", title, SPEED_CAPTION, figure)


def _trainings(evidence: Evidence) -> Iterator[Picture]:
    """The losses and the development scores of every training; nothing without one."""
    title, words = "Losses and development scores of the trainings", "a curve for each seed"
    figure = draw_trainings(evidence.trainings, title, words)
    if figure is not None:
        caption = "The step with the best development score is kept. No score of these figures is one of a test set."
        yield _named("trainings", title, caption, figure)


def _sensitivities(evidence: Evidence) -> Iterator[Picture]:
    """Figure 2 of GEM's paper, and the like of other word encoders."""
    for encoder, found in evidence.sensitivities.items():
        if found.curves:
            named = load_figures().sensitivities.get(encoder)
            name, title = f"sensitivity-{encoder}", f"{encoder} by its hyper-parameters"
            if named is not None:
                name, title = named.name, named.title
            absent = f"; absent: {', '.join(found.absent)}" if found.absent else ""
            words = f"one varied, the others as the paper has them; words of {found.vectors}{absent}"
            caption = "Dotted: the paper's own value. Scores are of development data, and choose no parameter."
            yield _named(name, title, caption, draw_sensitivity(found, title, words))
