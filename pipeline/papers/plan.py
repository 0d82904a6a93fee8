"""The plan of the seed papers' tables and figures: what each shows, read from YAML and checked."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from pipeline.base.params import read_yaml
from pipeline.papers.published import Figure, select
from sentfold.settings import Parameters, validate

PLAN_FILE = Path(__file__).with_name("seed_tables.yaml")

FIGURES_FILE = Path(__file__).with_name("seed_figures.yaml")
# The source whose figures are shown with the suite's own scores: the same models, data and protocol.
REFEREE = "mteb"

SpaceGroup = Literal["encoders", "trained", "derived", "words"]


class Column(Parameters):
    """One column: a corpus in one protocol; dataset and metric where published.csv calls them otherwise."""

    corpus: str
    protocol: str
    dataset: str = ""
    metric: str = ""
    unit: str = "x100"

    def holds(self, figure: Figure) -> bool:
        """Whether a printed figure belongs into this column, its protocol aside."""
        metric = self.metric or self.protocol.partition(".")[0]
        # A panel of averages over unlike kinds has no single protocol that names its metric.
        wanted = (self.dataset or self.corpus, figure.metric if self.protocol.endswith(".unlike protocols") else metric)
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

    measured  whether it has rows of the suite; why: if not, why not
    against      a protocol that each row is compared with on its own vectors, in place of another space
    differences  whether panels of differences to baselines and controls may follow it
    """

    title: str
    columns: list[Column] = Field(min_length=1)
    measured: bool = True
    why: str = ""
    against: str = ""
    differences: bool = True
    printed: Printed | None = None
    average: Average | None = None

    @model_validator(mode="after")
    def _has_rows(self) -> PanelPlan:
        if not self.measured and (self.printed is None or not self.why):
            raise ValueError("a panel without rows of the suite shows printed rows, and says why it has no other")
        return self


class TablePlan(Parameters):
    """One printed table: whose it is, what it is called there, and its panels.

    wanted    rows that the table needs; where the suite lacks one it is blank
    answers   printed model -> the suite's row of the same method over the same vectors, or of the same model
    baseline  what its rows are measured against, if not an encoder's own cosine or the mean of words
    """

    source: str
    table: str
    title: str
    about: str
    spaces: list[SpaceGroup]
    wanted: list[str] = []
    answers: dict[str, str] = {}
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
        """The rows that answer a panel's printed models.

        The first panel with rows of the suite also has those that answer models of panels without such rows.
        """
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


class SingleFigure(Parameters):
    """A corpus and the protocol of its scores."""

    corpus: str
    protocol: str


class NamedFigure(Parameters):
    """The file of a figure and its title."""

    name: str
    title: str


class SeedFigures(Parameters):
    """What the papers' figures and special tables are about, where a suite has it.

    measures       corpora of the table of similarities; geometry: of the table of geometry
    sweep          corpus that a sweep's figure always draws
    speed          what the figure of speed takes for quality
    timed_vectors  the word vectors that the benchmark of the encoders gives them
    sensitivities  word encoder -> the figure of its hyper-parameters
    """

    measures: list[str]
    geometry: list[str]
    sweep: str
    speed: SingleFigure
    timed_vectors: str
    sensitivities: dict[str, NamedFigure]


@cache
def load_figures(path: Path = FIGURES_FILE) -> SeedFigures:
    """The file of the papers' figures. Raises ParameterError naming the key that is wrong."""
    return validate(SeedFigures, read_yaml(path), where=str(path))
