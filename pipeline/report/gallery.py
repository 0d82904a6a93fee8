"""Every figure of a report, with its title and what to see in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from matplotlib.figure import Figure

from pipeline.report.encoder_figures import (
    CLUSTERERS_CAPTION,
    clusterer_dots,
    draw_dots,
    draw_rates,
    draw_speed,
    quality_caption,
    rates_caption,
    speed_points,
)
from pipeline.report.figures import draw_differences, figure_bytes
from pipeline.report.lase import draw_clusters
from pipeline.report.map_figure import draw_maps, map_spaces
from pipeline.report.page import Picture
from pipeline.report.sensitivity import describe_sensitivity, load_sensitivities
from pipeline.report.sensitivity_figure import draw_sensitivity
from pipeline.report.spectrum_figure import draw_spectra, largest_step, read_spectra
from pipeline.report.sweep_figure import WORDS, describe_oracles, draw_sweep
from pipeline.report.sweeps import Sweep
from pipeline.report.tables import HEADLINE, protocol_title
from pipeline.report.verdicts import Evidence

LP, ENCODER, CHOSEN, CONTROL = "minilm-lp", "minilm", "minilm-lp-selected", "minilm-pca-selected"
QUALITY = ("stsb", "pearson.all.cosine")
SHOWN = 5  # test sets of a sweep that are drawn, in the suite's order
ALWAYS = "stsb"  # drawn wherever it was swept: SBERT-LP's figures 2 to 5 are about it
# Word encoder -> file and title of the figure of its sensitivity.
SENSITIVITIES = {"wl-gem": ("gem-2", "GEM against its hyper-parameters, as its figure 2")}
LASE = ("sts13", "pearson.mean.cosine")  # corpus and protocol of LASE's figure 5.1

Drawn = tuple[Picture, Figure]


def draw_gallery(evidence: Evidence) -> list[Drawn]:
    """The figures that this suite's artifacts can fill, the one that says most first."""
    return [
        *_differences(evidence),
        *_sweeps(evidence),
        *_spectrum(evidence),
        *_maps(evidence),
        *_clusterers(evidence),
        *_words(evidence),
        *_sensitivities(evidence),
        *_speed(evidence),
    ]


def _named(name: str, title: str, caption: str, figure: Figure) -> Drawn:
    return Picture(name, title, caption, figure_bytes(figure, "svg")), figure


def _differences(evidence: Evidence) -> Iterator[Drawn]:
    results = evidence.results
    corpora = results.corpora_of("similarity")
    title = "What each space does to the encoder's own cosine"
    words = (
        f"difference in {protocol_title(HEADLINE)}; right of the line: better; bars: {results.confidence:.0%} paired "
        "bootstrap intervals"
    )
    caption = "Right of the line: better than the cosine of the encoder that the space was made from."
    yield _named("differences", title, caption, draw_differences(results, corpora, HEADLINE, title, words))


def _sweeps(evidence: Evidence) -> Iterator[Drawn]:
    """SBERT-LP's figures 2 and 4 (similarity), 3 and 5 (classification)."""
    sweep, control = evidence.sweeps.get(CHOSEN), evidence.sweeps.get(CONTROL)
    if sweep is None:
        return
    order = evidence.results.suite.corpora
    similar = [sweep.corpus, *swept_panels(order, sweep.tests, SHOWN)]
    classified = swept_panels(order, sweep.classes, SHOWN + 1)
    kinds = (
        ("", similar, sweep.protocol, protocol_title(sweep.protocol), ("2", "4")),
        ("-classes", classified, "accuracy.3nn-euclidean", "accuracy of Euclidean 3-NN", ("3", "5")),
    )
    for suffix, corpora, protocol, words, numbers in kinds:
        for setting, number in zip(("neighbors", "components"), numbers, strict=True):
            if corpora:
                yield _sweep(evidence, sweep, control, setting, corpora, protocol, words, number, suffix)


def swept_panels(order: Sequence[str], swept: Collection[str], room: int) -> list[str]:
    """At most `room` of the swept corpora, in the suite's order, which the files of a sweep do not keep.

    order  corpora of the suite; a swept one that it does not name is left out
    """
    found = [corpus for corpus in order if corpus in swept]
    if ALWAYS in found[room:]:
        return [*found[: room - 1], ALWAYS]
    return found[:room]


def _sweep(
    evidence: Evidence, sweep: Sweep, control: Sweep | None, setting: str, corpora: list[str], protocol: str,
    words: str, number: str, suffix: str,
) -> Drawn:  # fmt: skip
    cells = {corpus: evidence.results.cell(ENCODER, corpus, protocol).value for corpus in corpora}
    baselines = {corpus: value for corpus, value in cells.items() if value is not None}
    title = f"Scores by {WORDS[setting]}, as SBERT-LP's figure {number}"
    over = "p" if setting == "neighbors" else "k"
    over = over if suffix else f"{over} and the other settings"
    figure = draw_sweep(
        sweep, setting, corpora=corpora, baselines=baselines, control=control, title=title,
        subtitle=f"{words}, ×100; LP: at each value the maximum over {over} on the drawn set itself, an oracle"
        f"{'' if suffix else ' on test sets'}",
    )  # fmt: skip
    caption = describe_oracles(sweep, control, setting, over, classes=bool(suffix))
    return _named(f"sweep-{setting}{suffix}", title, caption, figure)


def _spectrum(evidence: Evidence) -> Iterator[Drawn]:
    spectra = read_spectra(evidence.results.suite, LP)
    if spectra:
        title = f"Eigenvalues of {LP} and the residuals of their solve"
        words = (
            "M = (I − W)ᵀ(I − W) of each corpus, its null space left out; small values: coordinates that neighbours "
            "rebuild well"
        )
        corpus, rank, factor = largest_step(spectra, after=10)
        caption = (
            "A gap would mark the dimension of a manifold. Beyond the tenth, the largest step from one eigenvalue to "
            f"the next is a factor of {factor:.2f} ({corpus}, after rank {rank}). Dashed: the least power of ten above "
            "every residual |Mv − λv| of the corpus; the residuals themselves, which differ by processor, stand in "
            "lineage.json."
        )
        yield _named("spectrum", title, caption, draw_spectra(spectra, title, words))


def _maps(evidence: Evidence) -> Iterator[Drawn]:
    maps = map_spaces(evidence.results.suite, (ENCODER, LP))
    if maps:
        title = f"Maps of {maps[0].corpus} by its classes"
        words = f"Isomap of {len(maps[0].labels)} sentences on 12 neighbours; axes have no meaning of their own"
        caption = (
            "Trustworthiness falls from 1 with every drawn neighbour that is none in the space, by how far off it is. "
            "Isomap is linear algebra over shortest paths: a small change of the space changes its picture little."
        )
        yield _named("map", title, caption, draw_maps(maps, title, words))


def _clusterers(evidence: Evidence) -> Iterator[Drawn]:
    corpus, protocol = LASE
    results = evidence.results
    dots = clusterer_dots(results, corpus, protocol)
    if len(dots) > 1:
        title = "LASE by clusterer, as its figure 5.1"
        words = (
            f"{corpus}; WordLlama's vectors alone, of the figure's four concatenations none; bars: "
            f"{results.confidence:.0%} bootstrap intervals; hollow: partitions that know no meaning"
        )
        yield _named(
            "lase-5.1", title, CLUSTERERS_CAPTION, draw_dots(dots, f"{protocol_title(protocol)}, ×100", title, words)
        )


def _speed(evidence: Evidence) -> Iterator[Drawn]:
    corpus, protocol = QUALITY
    points = speed_points(evidence.results, evidence.benchmark, corpus, protocol)
    if points and evidence.benchmark is not None:
        where = str(evidence.benchmark["processor"])
        title = "Speed against quality"
        caption = quality_caption(evidence.results.suite.encoders)
        words = f"{corpus}, {protocol_title(protocol)}, ×100, against speed on {where}; fitting excluded"
        figure = draw_speed(points, f"{protocol_title(protocol)}, ×100", title, words)
        yield _named("speed-quality", title, caption, figure)
        title = "Speed, as LASE's figure 5.2"
        words = f"on {where}; fitting excluded; a step to the right is a factor, for the axis has no zero"
        yield _named("lase-5.2", title, rates_caption(where), draw_rates(points, title, words))


def _words(evidence: Evidence) -> Iterator[Drawn]:
    """Figures 4.1, 4.2 and 4.5 of the LASE thesis, for the clusterings of this suite."""
    shown = {
        "lase-similarity": ("As LASE's figure 4.1: similarity of four sentences", "Dark: similar. The thesis's pairs."),
        "lase-values": ("As LASE's figure 4.5: values of two sentences", "Each clustering's own covariance entries."),
        "lase-clusters": (
            "As LASE's figure 4.2: words in their clusters",
            "Frequency by rank, cluster by cluster.",
        ),
    }
    for name, figure in draw_clusters(evidence.results.suite).items():
        title, caption = shown[name]
        yield _named(name, title, caption, figure)


def _sensitivities(evidence: Evidence) -> Iterator[Drawn]:
    """Figure 2 of GEM's paper, and the like of other word encoders."""
    for encoder, found in load_sensitivities(evidence.results.suite).items():
        if found.curves:
            name, title = SENSITIVITIES.get(encoder, (f"sensitivity-{encoder}", f"{encoder} by its hyper-parameters"))
            absent = f"; absent: {', '.join(found.absent)}" if found.absent else ""
            words = f"one varied, the others as the paper has them; words of {found.vectors}{absent}"
            caption = f"Dotted: the paper's own value. {describe_sensitivity(found)}"
            yield _named(name, title, caption, draw_sensitivity(found, title, words))
