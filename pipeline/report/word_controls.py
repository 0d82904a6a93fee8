"""Encoders over word vectors against what each has to beat: its control partition, and the plain average."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.encoders.encode import WordEncoderParameters
from pipeline.params import load_parameters
from pipeline.report.notes import BASELINE, CONTROL
from pipeline.report.results import Cell, Results
from pipeline.report.smallest import smallest_of_pairs
from pipeline.report.tables import Blanks, markdown_table, protocol_title
from pipeline.suite import Suite


def word_control_section(results: Results, corpora: Sequence[str], protocol: str) -> str:
    """The tables of differences with their paired intervals; "" for a suite without word encoders to compare."""
    parts, blanks = [], Blanks()
    for title, other, pairs in (
        (
            "Clusters of words against partitions that know no meaning, sizes alike",
            CONTROL,
            control_pairs(results.suite),
        ),
        (
            "Every encoder over word vectors against the plain average of its words",
            BASELINE,
            average_pairs(results.suite),
        ),
    ):
        rows = [
            [
                f"{ours} − {theirs}",
                *(_show(results.difference(ours, theirs, corpus, protocol), blanks) for corpus in corpora),
            ]
            for ours, theirs in pairs
        ]
        if rows:
            parts += [f"### {title}\n", markdown_table(["spaces", *corpora], rows)]
            parts.append(smallest_of_pairs(results, pairs, [(corpus, protocol) for corpus in corpora], other))
    if not parts:
        return ""
    head = f"## Encoders over word vectors: differences in {protocol_title(protocol)}, ×100\n"
    return "\n".join([head, *parts, blanks.legend()])


def control_pairs(suite: Suite) -> list[tuple[str, str]]:
    """(space, control): the same block of parameters but for the partition of the words."""
    blocks = {name: _parameters(name) for name in suite.word_encoders}
    pairs = []
    for control, block in blocks.items():
        if block.clusters is None or block.clusters.control is None:
            continue
        plain = block.model_copy(update={"clusters": block.clusters.model_copy(update={"control": None})})
        pairs += [(name, control) for name, other in blocks.items() if other == plain]
    return pairs


def average_pairs(suite: Suite) -> list[tuple[str, str]]:
    """(space, average) for every other word encoder that is no control, if the suite has an average."""
    blocks = {name: _parameters(name) for name in suite.word_encoders}
    average = next((name for name, block in blocks.items() if block.method == "average"), None)
    if average is None:
        return []
    return [
        (name, average)
        for name, block in blocks.items()
        if name != average and (block.clusters is None or block.clusters.control is None)
    ]


def _parameters(name: str) -> WordEncoderParameters:
    return load_parameters(WordEncoderParameters, f"word_encoders.{name}")


def _show(cell: Cell, blanks: Blanks) -> str:
    if cell.value is None:
        return blanks.mark(cell.reason)
    return f"{cell.value:+.2f}" + ("" if cell.low is None else f" [{cell.low:+.2f}, {cell.high:+.2f}]")
