"""Which hyper-parameters of a word encoder are varied one at a time, over which values, and where the scores lie."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from pipeline.errors import SuiteError
from pipeline.params import Parameters, Slug, read_yaml, validate
from pipeline.suite import Suite

AsTuple = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
Number = int | float


class SensitivityParameters(Parameters):
    """A block of `report.sensitivity:` in params.yaml; it has the name of the block of `word_encoders:` that it varies.

    corpora    similarity development data, or classification that is judged by cross-validation
    values     hyper-parameter -> the values tried, ascending
    published  hyper-parameter -> the paper's own value, one of those tried; all others keep it while one varies
    variants   name in the figure -> settings that it changes throughout
    fitted     the variants that regressions, which take most of the time, are fitted on
    """

    corpora: Annotated[tuple[Slug, ...], AsTuple] = Field(min_length=1)
    values: dict[str, Annotated[tuple[Number, ...], AsTuple]] = Field(min_length=1)
    published: dict[str, Number]
    variants: dict[str, dict[str, Any]] = Field(min_length=1)
    fitted: Annotated[tuple[str, ...], AsTuple]

    @model_validator(mode="after")
    def _parts_agree(self) -> SensitivityParameters:
        if set(self.published) != set(self.values):
            raise ValueError("`published` and `values` name the same hyper-parameters")
        for name, values in self.values.items():
            if list(values) != sorted(set(values)):
                raise ValueError(f"the values of '{name}' ascend, and none stands twice")
            if self.published[name] not in values:
                raise ValueError(f"the published {name}, {self.published[name]}, is one of the values tried")
        strange = [name for name in self.fitted if name not in self.variants]
        if strange:
            raise ValueError(f"`fitted` names variants, which '{strange[0]}' is not")
        return self


class Sensitivities(Parameters):
    """What a suite shows; `file` is the path of the file that says so. A file of its own, for no score rests on it."""

    file: str
    encoders: Annotated[tuple[Slug, ...], AsTuple]


class _SensitivitiesFile(Parameters):
    sensitivities: Sensitivities


def sensitivities_of(suite: Suite) -> tuple[str, ...]:
    """The word encoders whose hyper-parameters a suite varies; none if it has no file that names some.

    Raises ParameterError if the file is malformed, SuiteError if it does not name itself or what the suite makes.
    """
    path = Path(suite.file).with_name("sensitivities.yaml")
    if not path.exists():
        return ()
    found = validate(_SensitivitiesFile, read_yaml(path), where=str(path)).sensitivities
    strange = [name for name in found.encoders if name not in suite.word_encoders]
    if found.file != str(path) or strange:
        raise SuiteError(
            "the sensitivities of a suite do not fit it",
            where=str(path),
            expected=f"file: {path}, and encoders among: {', '.join(suite.word_encoders)}",
            got=f"file: {found.file}, encoders: {', '.join(found.encoders)}",
            remedy=f"correct {path}",
        )
    return found.encoders


def surface_path(suite: str, name: str) -> Path:
    """The scores of one encoder's hyper-parameters; beside the grids', so that the report reads one folder."""
    return Path("reports") / suite / "sweeps" / f"{name}-sensitivity" / "surface.json"
