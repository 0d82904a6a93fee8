"""The parameters of word vectors: one block of `word_vectors:` in params.yaml."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from pipeline.params import Parameters, Slug

# What stands for a word of the vocabulary that a source does not hold: nothing (the word is out of
# vocabulary), the mean of the words that it does hold (S3E and LASE as released), or zeros.
Missing = Literal["drop", "mean", "zero"]
Scale = Literal["none", "unit", "mean"]


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class WordVectorParameters(Parameters):
    """Where the vectors of words come from, and what is done to them before anyone uses them.

    package    an installed package laid out like WordLlama; `sha256` pins its files
    file       a location of pipeline/words/locations.yaml
    concat     other blocks, their vectors side by side in this order
    of         one other block
    missing    what a word gets that the source lacks; in a concatenation, that a part lacks
    pvn        number of leading components whose variance is levelled to that of the next one; 0 = none
    scale      unit: every word of length 1; mean: all divided by their mean length
    """

    package: str | None = None
    sha256: dict[str, str] = {}
    file: str | None = None
    concat: Annotated[tuple[Slug, ...], BeforeValidator(_tuple)] | None = None
    of: Slug | None = None
    missing: Missing = "drop"
    pvn: int = Field(default=0, ge=0, le=1000)
    scale: Scale = "none"

    @model_validator(mode="after")
    def _one_place(self) -> WordVectorParameters:
        if sum(place is not None for place in (self.package, self.file, self.concat, self.of)) != 1:
            raise ValueError("give exactly one of: package, file, concat, of")
        if self.concat is not None and len(self.concat) < 2:
            raise ValueError("a concatenation has two parts or more")
        return self

    def parts(self) -> tuple[str, ...]:
        """The other blocks that this one is made of."""
        return (self.of,) if self.of is not None else self.concat or ()
