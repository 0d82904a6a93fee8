"""Typed, range-checked, frozen settings: the base class of all parameters, and their errors."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from sentfold.errors import ParameterError

SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def check_slug(name: str) -> str:
    """Return `name` if it is a slug (a-z, 0-9, single hyphens), else raise ValueError.

    Names become folders, stage names and table columns. DVC accepts `a/b` or `a b` in a stage name and then fails
    far from the cause, so such names are refused here.
    """
    if not SLUG.fullmatch(name):
        raise ValueError(f"{name!r} is not a name: use a-z, 0-9 and single hyphens, e.g. 'stsb-dev'")
    return name


Slug = Annotated[str, AfterValidator(check_slug)]


class Parameters(BaseModel):
    """Base of every parameter model: frozen, with strict types, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


Model = TypeVar("Model", bound=BaseModel)


def refuse_unknown(content: dict[str, Any], known: tuple[str, ...], *, where: str) -> None:
    """Raise ParameterError for the first key of `content` that is not in `known`."""
    for key in content:
        if key not in known:
            raise ParameterError(
                f"unknown key '{key}'",
                where=where,
                expected=f"one of: {', '.join(known)}",
                got=str(key),
                remedy="correct the spelling or remove the key",
            )


def validate(
    model: type[Model], content: Any, *, where: str, error_class: type[ParameterError] = ParameterError
) -> Model:
    """`content` as `model`. Raises `error_class` with the first error that pydantic reports."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        errors = error.errors()
        # A misspelt key is also a missing key. The message names the misspelt key, because it shows what to correct.
        first = next((one for one in errors if one["type"] == "extra_forbidden"), errors[0])
        key = ".".join(str(part) for part in first["loc"])
        known = ", ".join(model.model_fields)
        unknown = first["type"] == "extra_forbidden"
        raise error_class(
            f"unknown key '{key}'" if unknown else f"bad value for '{key}'" if key else "bad parameters",
            where=f"{where}.{key}" if key else where,
            expected=f"one of: {known}" if unknown else first["msg"].removeprefix("Value error, "),
            got=repr(first["input"]),
            remedy="correct params.yaml" if "params" in where else "correct the file",
        ) from None
