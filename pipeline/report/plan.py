"""What stands in which table: the specification of the seed papers' tables, read and checked."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from pipeline.params import Parameters, read_yaml, validate
from pipeline.report.published import Figure, select

PLAN_FILE = Path(__file__).with_name("seed_tables.yaml")

SpaceGroup = Literal["encoders", "derived", "words"]


class Column(Parameters):
    """One column: a corpus in one protocol; dataset and metric where published.csv calls them otherwise."""

    corpus: str
    protocol: str
    dataset: str = ""
    metric: str = ""
    unit: Literal["x100", "nats"] = "x100"

    def holds(self, figure: Figure) -> bool:
        """Whether a printed figure belongs into this column, its protocol aside."""
        metric = self.metric or self.protocol.partition(".")[0]
        # A panel of averages over unlike kinds has no protocol of ours to name its metric.
        wanted = (self.dataset or self.corpus, figure.metric if self.protocol.endswith(".mixed") else metric)
        return (figure.dataset, figure.metric) == wanted


class Printed(Parameters):
    """Which figures of the table a panel shows: those that say exactly this of their protocol."""

    statement: str
    note: str | None = None

    def admits(self, figure: Figure) -> bool:
        """Whether the figure states this protocol."""
        return figure.statement == self.statement and self.note in (None, figure.note)


class Average(Parameters):
    """A last column, the mean of the others; `dataset`: what published.csv calls the printed one."""

    dataset: str = ""


class PanelPlan(Parameters):
    """Columns that share a line of rows.

    measured  whether our rows stand in it; why: if not, why not
    against   a protocol that each row is held against on its own vectors, in place of another space
    """

    title: str
    columns: list[Column] = Field(min_length=1)
    measured: bool = True
    why: str = ""
    against: str = ""
    printed: Printed | None = None
    average: Average | None = None

    @model_validator(mode="after")
    def _has_rows(self) -> PanelPlan:
        if not self.measured and (self.printed is None or not self.why):
            raise ValueError("a panel without rows of ours shows printed ones, and says why it has none of ours")
        return self


class Hero(Parameters):
    """The comparison that the table is about: a space, what it has to beat, and the control for that."""

    ours: str
    than: str
    control: str


class TablePlan(Parameters):
    """One printed table: whose it is, what it is called there, and its panels.

    wanted    rows that the table needs; where the suite lacks one it is blank
    answers   printed model -> the row of ours that is the same method over the same vectors, or the same model
    baseline  what its rows are measured against, if not an encoder's own cosine or the mean of words
    """

    source: str
    table: str
    title: str
    about: str
    spaces: list[SpaceGroup]
    wanted: list[str] = []
    answers: dict[str, str] = {}
    hero: Hero | None = None
    baseline: str | None = None
    panels: list[PanelPlan] = Field(min_length=1)

    def printed_in(self, panel: PanelPlan) -> tuple[Figure, ...]:
        """The printed figures that a panel shows, in the order of print."""
        if panel.printed is None:
            return ()
        admits, columns = panel.printed.admits, list(panel.columns)
        if panel.average is not None and panel.average.dataset:
            columns.append(average_column(panel))
        return select(
            self.source, self.table, keep=lambda figure: admits(figure) and any(c.holds(figure) for c in columns)
        )

    def answers_in(self, panel: PanelPlan) -> list[str]:
        """The rows that answer a panel's printed models; in the first panel with rows of ours also those of models
        that stand in panels without."""
        measured = [other for other in self.panels if other.measured]
        unanswered = [other for other in self.panels if not other.measured] if panel == measured[0] else []
        figures = [figure for other in (panel, *unanswered) for figure in self.printed_in(other)]
        return list(dict.fromkeys(self.answers[figure.model] for figure in figures if figure.model in self.answers))


def average_column(panel: PanelPlan) -> Column:
    """The column of a panel's average."""
    average, first = panel.average or Average(), panel.columns[0]
    return Column(corpus="average", protocol=first.protocol, dataset=average.dataset, metric=first.metric)


@cache
def load_plans(path: Path = PLAN_FILE) -> dict[str, TablePlan]:
    """Name of a table -> its plan, in the order of the file. Raises ParameterError naming the key that is wrong."""
    return {name: validate(TablePlan, content, where=f"{path}:{name}") for name, content in read_yaml(path).items()}
