"""The papers' claims as data: what each says, what the paper said it of, and what would test it here."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from pipeline.base.params import read_yaml
from sentfold.settings import Parameters, validate

CLAIMS_FILE = Path(__file__).with_name("claims.yaml")

Source = Literal["sbert-lp", "lase", "s3e", "gem", "hyperboloid", "later"]
Kind = Literal["higher", "best-setting", "rules", "cosines", "faster", "identity"]

# What each kind of test cannot do without.
NEEDS: dict[Kind, tuple[str, ...]] = {
    "higher": ("space", "against", "protocol", "corpora"),
    "best-setting": ("space", "setting", "between", "corpora"),
    "rules": ("space", "setting", "corpora"),
    "cosines": ("space", "corpora"),
    "faster": ("space", "against"),
    "identity": ("identity",),
}


class PrintedComparison(Parameters):
    """A comparison inside one printed table: the model is better than each other model on each data set.

    metrics  of a data set that has several
    by       the gain that the paper states, or its two bounds; empty if it states none
    holds_on how many of the data sets the paper says it of; all of them if 0
    """

    table: str
    model: str
    better_than: list[str] = Field(min_length=1)
    datasets: list[str] = Field(min_length=1)
    metrics: list[str] = []
    by: list[float] = Field([], max_length=2)
    holds_on: int = 0


class PrintedAverages(Parameters):
    """A column of a printed table, named by `average`, that is the mean of the other figures of each row."""

    table: str
    average: str


class ClaimTest(Parameters):
    """A test of a claim by this suite's numbers.

    kind              higher: a better score than each of `against`, on each corpus
                      best-setting: the best value of a setting of a sweep is `between` two values
                      rules: rules without labels choose another value of a setting than the best
                      cosines: the printed cosines of single pairs, to the last digit
                      faster: less CPU time for a sentence than each of `against`, in one run of the benchmark
                      identity: two sides of an equation, by its name in identities.py
    average           whether the claim is about the mean over the corpora, and not about each of them
    own_conditions    whether these are the paper's own vectors, protocol and settings
    control           the same comparison without what the claim praises
    shown_with        other spaces that it is shown with; they decide nothing
    shown_by          another protocol that it is shown by; it decides nothing
    starts            standard deviation of the score of `space` over random starts of which the suite makes one
    """

    kind: Kind = "higher"
    average: bool = False
    own_conditions: bool = False
    space: str = ""
    against: list[str] = []
    protocol: str = ""
    corpora: list[str] = []
    control: str = ""
    shown_with: list[str] = []
    shown_by: str = ""
    starts: float = Field(0.0, ge=0)
    setting: str = ""
    between: list[int] = Field([], max_length=2)
    identity: str = ""

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> ClaimTest:
        missing = [name for name in NEEDS[self.kind] if not getattr(self, name)]
        if missing:
            raise ValueError(f"a test of the kind '{self.kind}' needs {', '.join(missing)}")
        return self


class Claim(Parameters):
    """One claim.

    made_on  the encoder or vectors, the protocol and the settings that the paper says it of
    print    comparisons and averages of printed figures that it follows from; they all have to hold
    test     what tests it here; missing: what is missing for that, where nothing can
    remark   what a reader has to know of the comparison
    """

    source: Source
    where: str
    says: str
    made_on: str
    print: list[PrintedComparison | PrintedAverages] = []
    test: ClaimTest | None = None
    missing: str = ""
    remark: str = ""

    @model_validator(mode="after")
    def _is_tested_or_says_what_is_missing(self) -> Claim:
        if (self.test is None) == (not self.missing):
            raise ValueError("a claim has either a `test` or what is `missing` for one")
        return self


@cache
def load_claims(path: Path = CLAIMS_FILE) -> dict[str, Claim]:
    """Name of a claim -> the claim, in the order of the file. Raises ParameterError naming what is wrong."""
    return {name: validate(Claim, content, where=f"{path}:{name}") for name, content in read_yaml(path).items()}
