"""The settings of a method, read from a block of params.yaml or from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from sentfold.encoders.base.word_encoder import WordSettings
from sentfold.errors import ParameterError
from sentfold.settings import validate


def make_settings(method: ModuleType, values: Mapping[str, Any], *, where: str) -> WordSettings:
    """The method's Settings with these values; lists become tuples. Raises ParameterError."""
    tuples = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    settings: WordSettings = validate(method.Settings, tuples, where=where)
    return settings


def parse_settings(method: ModuleType, pairs: list[str]) -> dict[str, Any]:
    """The settings that `key=value` texts give; see parse_value. A list has commas, as in means=mean,min,max.

    Raises ParameterError for a text without '='.
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise ParameterError(
                "a setting cannot be read",
                where="--set",
                expected="key=value",
                got=pair,
                remedy="write, for example, --set a=0.001",
            )
        field = method.Settings.model_fields.get(key)
        is_list = field is not None and isinstance(field.default, tuple)
        parts = [part.strip() for part in text.strip("[]()").split(",") if part.strip()]
        values[key] = tuple(parts) if is_list else parse_value(text)
    return values


def parse_value(text: str) -> Any:
    """The value of a text: a number, true, false or null (also None); else the text itself, such as none."""
    words = {"true": True, "false": False, "null": None, "none": None}
    if text.lower() in words and text != "none":
        return words[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
