"""The papers' claims as data: what each says, what it was said about, and the rule that decides it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import model_validator

from pipeline.base.params import read_yaml
from sentfold.settings import Parameters, validate

CLAIMS_FILE = Path(__file__).with_name("claims.yaml")

Source = Literal["sbert-lp", "lase", "s3e", "gem", "hyperboloid"]
Rule = Literal[
    "beats", "matches", "repairs", "prints", "near", "faster", "within", "gathers", "best-between", "misleads",
    "printed", "whole", "shown", "absent",
]  # fmt: skip

# What each rule cannot do without.
NEEDS: dict[str, tuple[str, ...]] = {
    "beats": ("ours", "than", "protocol", "corpora"),
    "matches": ("ours", "than", "protocol", "corpora", "margin"),
    "repairs": ("ours",),
    "prints": ("ours", "corpora"),
    "near": ("ours", "corpora", "margin"),
    "faster": ("method", "than"),
    "within": ("method", "margin"),
    "gathers": ("ours", "than"),
    "best-between": ("ours", "setting", "between"),
    "misleads": ("ours", "setting", "margin"),
    "printed": ("printed",),
    "whole": ("printed",),
    "shown": ("ours", "than", "protocol", "corpora", "reason"),
    "absent": ("reason", "command"),
}


class PrintedClaim(Parameters):
    """A comparison inside one printed table.

    by      points that the model has to be above each of `than`, at least
    enough  data sets on which it has to; all of them if 0
    items   number of test items, for the rule `whole`
    alike   why its rows may be compared, though what is known of their aggregation is not the same
    """

    table: str
    model: str
    than: list[str] = []
    datasets: list[str]
    by: float = 0.0
    enough: int = 0
    items: int = 0
    alike: str = ""


class Claim(Parameters):
    """One claim.

    control        a comparison without what the claim praises
    beside         other spaces to see it against; they decide nothing
    than_protocol  the protocol of what it is set against, if another than its own
    starts         standard deviation of the scores of `ours` over random starts of which the suite makes one, in points
    remark         what a reader has to know of the comparison, in a sentence or two
    """

    source: Source
    where: str
    says: str
    made_on: str
    rule: Rule
    ours: str = ""
    than: list[str] = []
    control: str = ""
    beside: list[str] = []
    protocol: str = ""
    than_protocol: str = ""
    corpora: list[str] = []
    margin: float = 0.0
    starts: float = 0.0
    method: str = ""
    setting: str = ""
    between: list[int] = []
    printed: PrintedClaim | None = None
    reason: str = ""
    command: str = ""
    remark: str = ""

    @model_validator(mode="after")
    def _has_what_its_rule_needs(self) -> Claim:
        missing = [name for name in NEEDS[self.rule] if not getattr(self, name)]
        if missing:
            raise ValueError(f"the rule '{self.rule}' needs {', '.join(missing)}")
        return self


@cache
def load_claims(path: Path = CLAIMS_FILE) -> dict[str, Claim]:
    """Name of a claim -> the claim, in the order of the file. Raises ParameterError naming what is wrong."""
    return {name: validate(Claim, content, where=f"{path}:{name}") for name, content in read_yaml(path).items()}
