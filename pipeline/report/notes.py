"""Notes under tables: how differences were judged together, and the smallest one that could have been found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.report.families import Judged
from pipeline.report.multiple import POWER
from pipeline.report.protocols import protocol_words
from pipeline.report.results import Results

BASELINE, CONTROL = "baseline", "control"


def multiple_comparisons(results: Results, family: Sequence[Judged], other: str = BASELINE) -> str:
    """How the differences of a table were judged together; "" where there are none, or a single one.

    other  what its rows are held against: baseline or control
    """
    if len(family) < 2:
        return ""
    return (
        f"Multiple comparisons: the {len(family)} differences of these rows to their {other}s are judged together "
        f"by the largest studentised deviation (max-T) over {results.resamples} paired bootstrap resamples, at "
        f"{results.confidence:.0%} for all of them at once: ▲ lies above its {other} beyond chance, ▼ below. "
        f"Brackets beside single {'scores' if other == BASELINE else 'differences'} are not adjusted."
    )


def smallest_difference(family: Sequence[Judged], other: str = BASELINE) -> str:
    """The smallest difference that each column of a table can show, or why none can be stated.

    Adjusted for all differences of the family at once; the median over rows, since every row has a spread of its own.
    """
    if not family:
        return no_smallest(f"no row here is scored beside its {other}")
    columns = list(dict.fromkeys((judged.corpus, judged.protocol) for judged in family))
    sizes = []
    for corpus, protocol in columns:
        own = [judged.result.detectable for judged in family if (judged.corpus, judged.protocol) == (corpus, protocol)]
        moving = [size for size in own if size > 0]
        if moving:
            sizes.append(f"{column_name(corpus, protocol, columns)} {_size(protocol, float(np.median(moving)))}")
    if not sizes:
        return no_smallest(f"every row scores exactly as its {other} in every resample")
    return (
        f"Smallest difference to its {other} that a row would show here with {POWER:.0%} power after "
        f"adjustment, in points, median over rows: {', '.join(sizes)}."
    )


def no_smallest(reason: str) -> str:
    """The line under a table that judges no difference: why it states no smallest one."""
    return f"No smallest detectable difference is stated: {reason}."


def column_name(corpus: str, protocol: str, columns: Sequence[tuple[str, str]]) -> str:
    """The corpus, with its metric where it stands in several columns, or its protocol where they share the metric."""
    beside = [other for name, other in columns if name == corpus]
    metric = protocol.partition(".")[0]
    if len(beside) < 2:
        return corpus
    alone = sum(other.partition(".")[0] == metric for other in beside) == 1
    return f"{corpus} ({metric if alone else protocol_words(protocol)})"


def _size(protocol: str, size: float) -> str:
    # Mutual information is printed in nats; its replicates stand on the x100 scale like all others.
    return f"{size / 100:.3f} nats" if protocol.startswith("mi.") else f"{size:.1f}"
