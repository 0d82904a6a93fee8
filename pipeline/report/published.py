"""Figures that papers printed, with their protocol; shown only beside that very model and protocol."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# The ways in which published.csv says that a figure is of cosines over all pairs. A row that says neither
# is of another or an unknown protocol.
ALL_PAIRS = ("cosine, all pairs", "row as in the SBERT paper: all pairs")

PUBLISHED_FILE = Path(__file__).with_name("published.csv")


@dataclass(frozen=True)
class Figure:
    """One printed figure. value is on the x100 scale; shown keeps the digits that were printed."""

    source: str
    table: str
    model: str
    dataset: str
    metric: str
    protocol: str
    value: float
    shown: str


@cache
def load_published(path: Path = PUBLISHED_FILE) -> tuple[Figure, ...]:
    """Every figure that is a number, brought to the x100 scale."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    figures = []
    for row in rows:
        try:
            value = float(row["value"])
        except ValueError:
            continue  # a blank or a dash in the printed table
        hundredfold = row["metric"].endswith("_x100")
        figures.append(
            Figure(
                source=row["source"],
                table=row["table"],
                model=row["model"],
                dataset=row["dataset"],
                metric=row["metric"].removesuffix("_x100"),
                protocol="; ".join(part for part in (row["protocol"], row["note"]) if part),
                value=value if hundredfold else 100 * value,
                shown=f"{value if hundredfold else 100 * value:.2f}",
            )
        )
    return tuple(figures)


def find_published(source: str, model: str, corpus: str, protocol: str) -> Figure | None:
    """The figure printed for this model, corpus and protocol, or None.

    protocol  as in pipeline.evaluate.similarity, e.g. "spearman.all.cosine"; a printed figure counts
              only if its own protocol says cosine over all pairs, the one that can be told for sure
    """
    metric, aggregation, similarity = protocol.split(".")
    if (aggregation, similarity) != ("all", "cosine"):
        return None
    for figure in load_published():
        named = (figure.source, figure.model, figure.dataset, figure.metric) == (source, model, corpus, metric)
        if named and any(statement in figure.protocol for statement in ALL_PAIRS):
            return figure
    return None
