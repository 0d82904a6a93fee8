"""Typed, range-checked, frozen parameters out of params.yaml and the suite files."""

from __future__ import annotations

import pickle
import re
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from pipeline.errors import ParameterError

PARAMS_FILE = Path("params.yaml")

# The groups of params.yaml. A stage validates the groups it reads, so a misspelt group would be
# noticed by no stage at all; this list is what notices it.
GROUPS = (
    "encoders",
    "embed",
    "knn_graph",
    "manifolds",
    "eigensolve",
    "vocabulary",
    "word_vectors",
    "clusterings",
    "word_encoders",
    "evaluate",
    "report",
)

SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def check_slug(name: str) -> str:
    """Return `name` if it is a slug (a-z, 0-9, single hyphens), else raise ValueError.

    Names become folders, stage names and table columns: DVC accepts `a/b` or `a b` in a stage
    name and then fails far from the cause, so they are stopped here.
    """
    if not SLUG.fullmatch(name):
        raise ValueError(f"{name!r} is not a name: use a-z, 0-9 and single hyphens, e.g. 'stsb-dev'")
    return name


Slug = Annotated[str, AfterValidator(check_slug)]


class Parameters(BaseModel):
    """Base of every parameter model: frozen, strict about types, closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


Model = TypeVar("Model", bound=BaseModel)


# libyaml's parser, where PyYAML was built with it, takes a tenth of the time.
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _UniqueKeyLoader(_SafeLoader):  # type: ignore[misc]  # its base is known at run time only
    """YAML keeps the last of two equal keys in silence; here the second is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} stands twice", key_node.start_mark
                )
            seen.add(key)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; ParameterError if it is missing, malformed or no mapping."""
    try:
        content = pickle.loads(_parsed(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise ParameterError(
            f"{path.name} is missing", where=str(path), remedy="run from the root of a sentfold checkout"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError, TypeError, OSError) as error:
        raise ParameterError(
            f"{path.name} is not valid YAML",
            where=str(path),
            got=" ".join(str(error).split()).replace(' in "<unicode string>",', " at"),
            remedy="correct the line that is named",
        ) from None
    if not isinstance(content, dict):
        raise ParameterError(
            f"{path.name} holds no mapping", where=str(path), expected="key: value lines", got=type(content).__name__
        )
    return content


@lru_cache(maxsize=32)
def _parsed(text: str) -> bytes:
    """What a YAML text holds, pickled: a check of all parameters reads the same few files a hundred times."""
    return pickle.dumps(yaml.load(text, Loader=_UniqueKeyLoader))


def load_parameters(model: type[Model], key: str, *, path: Path = PARAMS_FILE) -> Model:
    """The group `key` (dotted, e.g. "manifolds.lp") of params.yaml as a frozen `model`.

    Raises ParameterError naming the key, its value and what is allowed.
    """
    content = read_yaml(path)
    refuse_unknown(content, GROUPS, where=str(path))
    for part in key.split("."):
        if not isinstance(content, dict) or part not in content:
            known = ", ".join(sorted(map(str, content))) if isinstance(content, dict) else "nothing"
            raise ParameterError(
                f"no parameters named '{key}'",
                where=f"{path}: {key}",
                expected=f"one of: {known}",
                got=part,
                remedy=f"correct the name, or add a block '{key}' to {path}",
            )
        content = content[part]
    return validate(model, content, where=f"{path}: {key}")


def refuse_unknown(content: dict[str, Any], known: tuple[str, ...], *, where: str) -> None:
    """ParameterError naming the first key of `content` that is not in `known`."""
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
    """`content` as `model`; pydantic's first complaint becomes a ParameterError."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        complaints = error.errors()
        # A misspelt key is also a missing one: its own spelling is what helps.
        first = next((c for c in complaints if c["type"] == "extra_forbidden"), complaints[0])
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
