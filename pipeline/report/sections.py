"""The report and the terminal summary of a suite, put together from its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.artifacts import absence, corpus_path, read_record, space_path
from pipeline.report.lase import cluster_section
from pipeline.report.results import Results
from pipeline.report.small_tables import SINGLE
from pipeline.report.smallest import smallest_to_baselines, smallest_to_controls, smallest_to_encoders
from pipeline.report.tables import (
    HEADLINE,
    SIMILARITY_PROTOCOLS,
    Blanks,
    Published,
    control_rows,
    difference_rows,
    interval_rows,
    markdown_table,
    plain_table,
    protocol_title,
    published_rows,
    score_rows,
    tuned_control_rows,
)
from pipeline.report.word_controls import word_control_section
from pipeline.suite import Suite

Table = tuple[list[str], list[list[str]]]


@dataclass(frozen=True)
class Plan:
    """Which corpora stand in which table, and what stands beside them."""

    similar: list[str]
    classified: list[str]
    published: Published
    referees: dict[str, str]


def write_summary(results: Results, plan: Plan) -> str:
    """The result tables for a terminal."""
    blanks = Blanks()
    columns = ["space", *plan.similar]
    rows = score_rows(results, plan.similar, HEADLINE, blanks, bold=False)
    rows += [[cell.strip("*") for cell in row] for row in _published(results, plan, HEADLINE)]
    parts = [
        f"Suite {results.suite.suite}: {protocol_title(HEADLINE)}, ×100\n",
        plain_table(columns, rows),
        f"Difference to the encoder's own cosine, with its {results.confidence:.0%} interval\n",
        plain_table(columns, difference_rows(results, plan.similar, HEADLINE, blanks)),
    ]
    if plan.classified:
        parts += ["Accuracy, ×100\n", plain_table(*_accuracy_table(results, plan.classified, blanks))]
    for title, table in _referee_tables(results, plan):
        parts += [f"{title}\n", plain_table(*table)]
    legend = blanks.legend().replace("  \n", "\n")
    return "\n".join([*parts, *([legend] if legend else [])])


def write_markdown(results: Results, plan: Plan) -> str:
    """The whole report."""
    blanks, columns = Blanks(), ["space", *plan.similar]
    methods, judged = methods_of(results.suite), [(corpus, HEADLINE) for corpus in plan.similar]
    scores = score_rows(results, plan.similar, HEADLINE, blanks, bold=True) + _published(results, plan, HEADLINE)
    parts = [
        _introduction(results),
        "![Difference of each space to its encoder's cosine](figures/differences.svg)\n",
        f"## {protocol_title(HEADLINE)}, ×100\n",
        markdown_table(columns, scores),
        "Bold: best of its column, its paired interval against every other row of ours excludes 0, and the corpus has "
        "at least 30 effective units to resample.\n",
        smallest_to_baselines(results, judged),
        "### Difference to the encoder's own cosine\n",
        markdown_table(columns, difference_rows(results, plan.similar, HEADLINE, blanks)),
        smallest_to_encoders(results, judged),
        "### Difference of each space by neighbourhoods to its control, PCA of the same dimension\n",
        markdown_table(["spaces", *plan.similar], control_rows(results, plan.similar, HEADLINE, blanks, methods)),
        smallest_to_controls(results, judged, methods),
        *_tuned_controls(results, plan.similar, blanks, methods),
        "### Interval of each score\n",
        markdown_table(columns, interval_rows(results, plan.similar, HEADLINE, blanks)),
        blanks.legend(),
        *_classification_section(results, plan.classified),
    ]
    for title, table in _referee_tables(results, plan):
        parts += [f"## {title}\n", markdown_table(*table), f"{SINGLE}\n"]
    parts += [
        *_protocol_sections(results, plan),
        word_control_section(results, plan.similar, HEADLINE),
        cluster_section(results.suite),
        _corpora_section(results),
        _fallbacks_section(results.suite),
        _solves_section(results.suite),
    ]
    return "\n".join(part for part in parts if part)


def _introduction(results: Results) -> str:
    suite = results.suite
    return (
        f"Encoders: {', '.join(suite.encoders)}. Spaces: {', '.join(suite.spaces)}. "
        f"Source of the corpora: `{suite.source}`.\n"
        f"Brackets are {results.confidence:.0%} percentile intervals of a bootstrap that resamples what recurs (the "
        "table of corpora names the unit); intervals of differences are paired, both spaces on the same resamples. "
        "They are not adjusted for the number of cells. Hyper-parameters are those of `params.yaml`, fixed beforehand"
        f"{_selected(suite)}. A corpus is the pool that every transductive step (neighbour graph, principal "
        "components) was fitted on. Scores are ×100.\n"
    )


def _selected(suite: Suite) -> str:
    """What the introduction says of spaces whose parameters were chosen."""
    if not suite.selections or suite.development is None:
        return ""
    return (
        f", but for spaces named `-selected`: theirs were chosen on `{suite.development}` alone, and what choosing on "
        "each test set would have bought stands apart as oracle ([table](tables/selection.md))"
    )


def _published(results: Results, plan: Plan, protocol: str) -> list[list[str]]:
    return published_rows(results, plan.similar, protocol, plan.published)


def _tuned_controls(results: Results, similar: list[str], blanks: Blanks, methods: Mapping[str, str]) -> list[str]:
    """Spaces whose parameters were chosen against PCA whose dimension was chosen on the same data."""
    rows = tuned_control_rows(results, similar, HEADLINE, blanks, methods)
    if not rows:
        return []
    return [
        "### Difference of each tuned space by neighbourhoods to its tuned control, PCA tuned on the same data\n",
        markdown_table(["spaces", *similar], rows),
        smallest_to_controls(results, [(corpus, HEADLINE) for corpus in similar], methods, tuned=True),
        f"All were tuned on `{results.suite.development}`, each to a dimension of its own; where both chose the same, "
        "the tuned control is the control of that dimension too.\n",
    ]


def _accuracy_columns(results: Results, classified: list[str]) -> list[tuple[str, str]]:
    """Corpus and protocol of every accuracy that no item of its own fitting set was scored in."""
    encoder = results.suite.encoders[0]
    return [
        (corpus, protocol)
        for corpus in classified
        for protocol in results.facts(encoder, corpus).get("scores", [""])
        if not protocol.endswith("training-set")
    ]


def _accuracy_table(results: Results, classified: list[str], blanks: Blanks) -> Table:
    columns = _accuracy_columns(results, classified)
    header = ["space", *(f"{corpus} {protocol.removeprefix('accuracy.')}" for corpus, protocol in columns)]
    rows = [
        [space, *(_accuracy_cell(results, space, corpus, protocol, blanks) for corpus, protocol in columns)]
        for space in results.suite.spaces
    ]
    return header, rows


def _accuracy_cell(results: Results, space: str, corpus: str, protocol: str, blanks: Blanks) -> str:
    cell = results.cell(space, corpus, protocol)
    if cell.value is None:
        return blanks.mark(cell.reason)
    encoder = results.suite.encoder_of(space)
    if space == encoder:
        return f"{cell.value:.2f}"
    against = results.difference(space, encoder, corpus, protocol)
    return f"{cell.value:.2f} ({against.value:+.2f} [{against.low:+.2f}, {against.high:+.2f}])"


def _classification_section(results: Results, classified: list[str]) -> list[str]:
    if not classified:
        return []
    blanks = Blanks()
    schemes = [
        f"{corpus}: {facts['n']} scored items, {facts['scheme']}, majority class {facts['majority']:.2f}, "
        f"{facts['scored_texts_also_fitted']} scored texts also among those fitted on"
        for corpus in classified
        if "scheme" in (facts := results.facts(results.suite.encoders[0], corpus))
    ]
    return [
        "## Accuracy, ×100\n",
        markdown_table(*_accuracy_table(results, classified, blanks)),
        "In parentheses the difference to the encoder's own vectors. No item is scored by a classifier fitted on it, "
        "but the spaces themselves were fitted on all items, without their labels. "
        f"{'; '.join(schemes)}. 3-NN scored on its own training set stands in "
        "[another table](tables/classification.md), and differences to controls [below](#differences-to-controls).\n",
        smallest_to_encoders(results, _accuracy_columns(results, classified)),
        blanks.legend(),
    ]


def _referee_tables(results: Results, plan: Plan) -> list[tuple[str, Table]]:
    """Single pairs beside what a paper printed: one column per way of writing them."""
    tables = []
    for corpus, encoder in plan.referees.items():
        if corpus not in results.suite.corpora or encoder not in results.suite.encoders:
            continue
        pairs: list[dict[str, Any]] = results.facts(encoder, corpus).get("pairs", [])
        variants = list(dict.fromkeys(pair["variant"] for pair in pairs))
        each = {variant: [pair for pair in pairs if pair["variant"] == variant] for variant in variants}
        rows = [
            [f"pair {number}", *(f"{pair['cosine']:.3f}" for pair in same), f"{same[0]['published']:.3f}"]
            for number, same in enumerate(zip(*each.values(), strict=True), 1)
        ]
        title = f"Referee row `{corpus}`: cosine of {encoder} beside the printed one"
        tables.append((title, (["pair", *variants, "published"], rows)))
    return tables


def _protocol_sections(results: Results, plan: Plan) -> list[str]:
    """The protocols that are not the headline, each in a table of its own."""
    parts = ["## Every other protocol, ×100\n"]
    for protocol in SIMILARITY_PROTOCOLS:
        if protocol == HEADLINE:
            continue
        blanks = Blanks()
        rows = score_rows(results, plan.similar, protocol, blanks, bold=False, intervals=True)
        rows += _published(results, plan, protocol)
        table = markdown_table(["space", *plan.similar], rows)
        judged = [(corpus, protocol) for corpus in plan.similar]
        parts += [f"### {protocol_title(protocol)}\n", table, smallest_to_baselines(results, judged), blanks.legend()]
    return parts


def _corpora_section(results: Results) -> str:
    suite, rows = results.suite, []
    for corpus in suite.corpora:
        notes = read_record(corpus_path(suite.suite, corpus, "sentences"), kind="sentences")["notes"]
        if "absent" in notes:
            rows.append([corpus, "–", "–", "–", "–", notes["absent"]])
            continue
        splits = ", ".join(f"{name} {count}" for name, count in notes["splits"].items())
        facts = results.facts(suite.encoders[0], corpus)
        drawn = facts.get("drawn", {})
        unit = f"{drawn['units']} {drawn['unit']} ({drawn['effective_units']:.0f} effective)" if drawn else "–"
        task = notes["task"] + (f" ({facts['blank']})" if "blank" in facts else "")
        sentences = str(_vector_notes(suite, suite.encoders[0], corpus).get("sentences", "–"))
        rows.append([corpus, task, splits, sentences, unit, f"{notes['source']}; {notes['text']}"])
    header = ["corpus", "task", "items by split", "distinct sentences", "resampled by", "source and text"]
    return "## Corpora\n\n" + markdown_table(header, rows)


def _fallbacks_section(suite: Suite) -> str:
    """Where an encoder over word vectors had to fall back on a rule of last resort, and how often."""
    rows = []
    for space in suite.word_encoders:
        for corpus in suite.corpora:
            notes = _vector_notes(suite, space, corpus)
            happened = [f"{number} {what}" for what, number in notes.get("fallbacks", {}).items() if number]
            if happened:
                rows.append([space, corpus, str(notes["sentences"]), "; ".join(happened)])
    if not suite.word_encoders:
        return ""
    if not rows:
        return "## Fallbacks of the word encoders\n\nNone: every sentence had a word with a vector.\n"
    header = ["space", "corpus", "sentences", "of them (words where it says tokens)"]
    return "## Fallbacks of the word encoders\n\n" + markdown_table(header, rows)


def _solves_section(suite: Suite) -> str:
    rows = []
    for space in suite.spaces:
        for corpus in suite.corpora:
            notes = _vector_notes(suite, space, corpus)
            if "nullity" in notes:
                values = notes["eigenvalues"]
                embedded = notes.get("landmarks", notes["sentences"])
                sizes = [str(embedded), str(len(values)), str(notes["nullity"])]
                rows.append([space, corpus, *sizes, f"{values[0]:.2e}", f"{values[-1]:.2e}"])
    if not rows:
        return ""
    header = ["space", "corpus", "n embedded", "p", "null vectors skipped", "first eigenvalue", "last eigenvalue"]
    tail = (
        "Every residual lies under the tolerance of `params.yaml`; residuals and eigenvalues stand in each artifact "
        "and in lineage.json.\n"
    )
    return "## Certificates of the eigensolves\n\n" + markdown_table(header, rows) + "\n" + tail


def methods_of(suite: Suite) -> dict[str, str]:
    """Space -> the method that made it; '' for an encoder's own."""
    return {space: _method_of(suite, space) for space in suite.spaces}


def _method_of(suite: Suite, space: str) -> str:
    """The method that made a space, as its artifacts name it; '' for an encoder's own."""
    records = (read_record(space_path(suite.suite, space, corpus), kind="vectors") for corpus in suite.corpora)
    return next((str(record["parameters"]["method"]) for record in records if "method" in record["parameters"]), "")


def _vector_notes(suite: Suite, space: str, corpus: str) -> dict[str, Any]:
    path = space_path(suite.suite, space, corpus)
    if absence(path, kind="vectors") is not None:
        return {}
    notes: dict[str, Any] = read_record(path, kind="vectors")["notes"]
    return notes
