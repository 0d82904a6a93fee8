"""Parameters of the stage `report`."""

from __future__ import annotations

from pydantic import Field

from pipeline.params import Parameters, Slug
from pipeline.selection.sensitivity_parameters import SensitivityParameters


class PublishedModel(Parameters):
    """What published.csv calls a model: its source and its name there."""

    source: str
    model: str


class ReportParameters(Parameters):
    """What stands beside our numbers.

    published    encoder -> the model in published.csv whose printed figures stand beside it
    referees     corpus of single examples -> the encoder that the paper printed their cosines for
    sensitivity  word encoder -> its hyper-parameters that the stage `sensitivity` varies
    """

    published: dict[Slug, PublishedModel] = Field(default_factory=dict)
    referees: dict[Slug, Slug] = Field(default_factory=dict)
    sensitivity: dict[Slug, SensitivityParameters] = Field(default_factory=dict)
