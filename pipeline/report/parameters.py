"""Parameters of the stage `report`."""

from __future__ import annotations

from pydantic import Field

from sentfold.settings import Parameters, Slug


class PublishedModel(Parameters):
    """What published.csv calls a model: its source and its name there."""

    source: str
    model: str


class ReportParameters(Parameters):
    """What the report compares scores with.

    published       encoder -> the model in published.csv whose printed figures are shown with it
    referees        corpus of single examples -> the encoder that the paper printed their cosines for
    word_baselines  encoders over word vectors; the first that a suite has is the baseline of its other word encoders
    """

    published: dict[Slug, PublishedModel] = Field(default_factory=dict)
    referees: dict[Slug, Slug] = Field(default_factory=dict)
    word_baselines: list[Slug] = Field(default_factory=list)
