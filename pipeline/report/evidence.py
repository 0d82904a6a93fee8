"""Everything that tables, figures and verdicts rest on, as the stage report has read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.report.results import Results
from pipeline.report.sensitivity import Sensitivity
from pipeline.report.sweeps import Sweep
from pipeline.report.trainings import TrainingRun


@dataclass(frozen=True)
class Partition:
    """A clustering's smallest partition of the words.

    path   its file; vectors: the block of word vectors that were clustered
    size   number of clusters; place: word -> its cluster
    """

    path: Path
    vectors: str
    size: int
    place: dict[str, int]


@dataclass(frozen=True)
class Evidence:
    """What the stage report has read, and what follows from it.

    records         (space, corpus) -> the record of its vectors, with notes and parameters
    corpora         corpus -> the notes of its sentences
    parameters      space -> the parameters that its artifacts name
    made_of         space -> what it was made of, in words
    controls        (space, corpus) -> its control there; tuned_controls: the same of spaces with chosen parameters
    searches        scores of the searches, with searches in the place of spaces; None for a suite without them
    search_costs    what each search costs, by its benchmark: processor, searches, sizes
    sweeps          space -> its sweep, for the spaces that are chosen by one
    sensitivities   word encoder -> its scores against its hyper-parameters
    trainings       trained space -> its training
    partitions      clustering -> its smallest partition, or None
    benchmark       speeds of the encoders: the processor; method -> rates, and seconds of single repeats
    referees        corpus of single examples -> the encoder that a paper printed their cosines for
    published_by    sources of published.csv that printed figures of this suite's own encoders
    """

    results: Results
    records: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    corpora: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    made_of: Mapping[str, str] = field(default_factory=dict)
    controls: Mapping[tuple[str, str], str] = field(default_factory=dict)
    tuned_controls: Mapping[tuple[str, str], str] = field(default_factory=dict)
    searches: Results | None = None
    search_costs: Mapping[str, Any] = field(default_factory=lambda: {"processor": "", "searches": {}, "sizes": {}})
    sweeps: Mapping[str, Sweep] = field(default_factory=dict)
    sensitivities: Mapping[str, Sensitivity] = field(default_factory=dict)
    trainings: Mapping[str, TrainingRun] = field(default_factory=dict)
    partitions: Mapping[str, Partition | None] = field(default_factory=dict)
    benchmark: Mapping[str, Any] = field(default_factory=lambda: {"processor": "", "rates": {}, "seconds": {}})
    referees: Mapping[str, str] = field(default_factory=dict)
    published_by: frozenset[str] = frozenset()

    @property
    def measured_here(self) -> str:
        """The title of a group of rows of this suite."""
        return f"Measured here, suite {self.results.suite.suite}"

    def notes(self, space: str, corpus: str) -> Mapping[str, Any]:
        """The notes of a space's vectors on a corpus; empty where it has none."""
        notes: Mapping[str, Any] = self.records.get((space, corpus), {}).get("notes", {})
        return {} if "absent" in notes else notes
