"""Reads params.yaml and other YAML files; parameters are typed, range-checked and frozen."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import yaml

from sentfold.errors import ParameterError, first_line
from sentfold.files import require_regular
from sentfold.settings import Model, validate

PARAMS_FILE = Path("params.yaml")

MOST_VALUES = 1_000_000  # of one file, with every alias copied out; the largest dvc.lock of the project has 50,000
DEEPEST = 100  # levels of one file, with every alias copied out
SEQ = "tag:yaml.org,2002:seq"
MERGE, VALUE = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:value"
BOOL, INT, FLOAT = (f"tag:yaml.org,2002:{kind}" for kind in ("bool", "int", "float"))
STR, NUMBERS = "tag:yaml.org,2002:str", (INT, FLOAT)

# DVC reads YAML 1.2, and PyYAML reads YAML 1.1. Of these a stage would get another value than dvc.lock records.
TWO_WAYS = re.compile(
    r"""  yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF
        | [-+]?0[0-9_]+                                   # 010 is 8 or 10, 08 is a text or 8
        | [-+]?0o[0-7_]+
        | [-+]\.[0-9_]+([eE][-+]?[0-9]+)?                 # -.5 is a text or a number
        | \.[0-9_]+[eE][-+]?[0-9]+
        | \._[0-9_]*
        | [-+]_[0-9_]*
        | [-+]?[0-9][0-9.]*_[0-9_.]*[eE][-+]?[0-9]+       # 1_0e3 is a text or a number
    """,
    re.VERBOSE,
)

# libyaml's parser takes a tenth of the time; some builds of PyYAML lack it.
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _refuse_bombs(content: str | bytes) -> None:
    """Raise ComposerError for a text that nests too deeply, or whose aliases stand for too many values.

    Each alias counts as all values of its anchor: a few lines of aliases of aliases stand for billions of values.
    PyYAML itself recurses: at some depth it ends the process without a message.
    """
    anchors: dict[str, tuple[int, int]] = {}  # of complete nodes: their numbers of values and of levels
    begun = [("", 0, 0)]  # anchor, values and levels of each collection that has not ended
    for event in yaml.parse(content, _SafeLoader):
        anchor, values, levels = str(getattr(event, "anchor", None) or ""), 1, 0
        if isinstance(event, yaml.CollectionStartEvent):
            begun.append((anchor, 1, 0))
            values = 0
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, values, levels = begun.pop()
        elif isinstance(event, yaml.AliasEvent):
            # An alias inside its own anchor never ends. The parser reports an alias without an anchor.
            endless = (MOST_VALUES + 1, 0) if anchor in {name for name, _, _ in begun} else (1, 0)
            values, levels = anchors.get(anchor, endless)
        elif not isinstance(event, yaml.ScalarEvent):
            continue
        if anchor and values:
            anchors[anchor] = (values, levels)
        name, total, deepest = begun[-1]
        begun[-1] = (name, total + values, max(deepest, levels + 1))
        if total + values > MOST_VALUES or len(begun) + levels > DEEPEST:
            what = f"more than {MOST_VALUES:,} values, aliases included, or more than {DEEPEST} levels"
            raise yaml.composer.ComposerError(None, None, f"{what}, reached{event.start_mark}")


def _refuse_two_readings(node: yaml.Node) -> None:
    """Raise ConstructorError for a value or a key that DVC reads as another one, and for a number to the base of 60.

    `1:30` is 90 to PyYAML, which takes hours for a long one.
    """
    if not isinstance(node, yaml.ScalarNode):
        return
    bare = not node.style or node.tag != STR  # not in quotes, or with a tag that reads what is in quotes
    if (":" in node.value and node.tag in NUMBERS) or (bare and TWO_WAYS.fullmatch(node.value)):
        what = f"{node.value[:80]!r} is another value in YAML 1.1 than in YAML 1.2: write a number in decimal, "
        what += "true or false, or a text in quotes"
        raise yaml.constructor.ConstructorError(None, None, what, node.start_mark)


def _refuse_doubt(root: yaml.Node | None, key_of: Callable[[yaml.ScalarNode], Any], *, of_dvc: bool) -> None:
    """Raise ConstructorError for what has two readings, and for a mapping with a key twice or a list as a key.

    Of two values of a key YAML would silently keep the last. Python treats `1`, `1.0` and `true` as the same key.
    A list of aliases as a key would take gigabytes where it is written out.
    """
    waiting, seen = [root] if root is not None else [], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:  # each alias leads to the node of its anchor again
            continue
        seen.add(id(node))
        if not of_dvc:
            _refuse_two_readings(node)
        if isinstance(node, yaml.MappingNode):
            keys = set[Any]()
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise yaml.constructor.ConstructorError(None, None, "a key is a list or a mapping", key.start_mark)
                if not of_dvc:
                    _refuse_two_readings(key)
                plain = key_of(key) if key.tag != MERGE else (MERGE, key.value)
                if plain in keys:
                    what = f"the key {key.value[:80]!r} occurs twice"
                    raise yaml.constructor.ConstructorError(None, None, what, key.start_mark)
                keys.add(plain)
                waiting.append(value)
        elif isinstance(node, yaml.SequenceNode):
            if node.tag != SEQ:  # !!omap and !!pairs: lists of pairs, whose keys may repeat
                raise yaml.constructor.ConstructorError(None, None, f"a list has the tag {node.tag}", node.start_mark)
            waiting += node.value


class _Loader(_SafeLoader):  # type: ignore[misc]  # its base is only known at run time
    """The safe loader, with the numbers of YAML 1.2."""


# DVC writes YAML 1.2, where 1e-10 is a number; in YAML 1.1, which PyYAML reads, it is text.
_Loader.add_implicit_resolver(
    FLOAT, re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+\Z"), list("-+.0123456789")
)


class _LoaderOfDvc(_SafeLoader):  # type: ignore[misc]  # its base is only known at run time
    """The safe loader, which takes what has no quotes as DVC's reader does: `no`, `on`, `1:30`, `.5e3` are texts."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in known if tag not in {BOOL, VALUE, *NUMBERS}]
        for first, known in _SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_decimal(self, node: yaml.ScalarNode) -> int:
        """A whole number: 010 is ten, and no octal number."""
        digits = str(self.construct_scalar(node)).replace("_", "")
        return int(digits, 0 if digits.lstrip("+-")[:2] in {"0b", "0o", "0x"} else 10)


for _tag, _pattern, _first in (
    (BOOL, r"true|True|TRUE|false|False|FALSE", "tTfF"),
    (INT, r"[-+]?0b[01_]+|[-+]?0o?[0-7_]+|[-+]?[0-9_]+|[-+]?0x[0-9a-fA-F_]+", "-+0123456789"),
    (
        FLOAT,
        r"[-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+"
        r"|[-+]?\.[0-9_]+([eE][-+][0-9]+)?"
        r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
):
    _LoaderOfDvc.add_implicit_resolver(_tag, re.compile(rf"(?:{_pattern})\Z"), list(_first))
_LoaderOfDvc.add_constructor(INT, _LoaderOfDvc.construct_decimal)


def parse_yaml(content: str | bytes, *, of_dvc: bool = False) -> Any:
    """The content of a YAML text. The loader is safe, and a repeated key is an error.

    of_dvc  whether DVC wrote the text, as it writes dvc.lock: in YAML 1.2, so that `no` is a text. Else a value that
            YAML 1.1 and 1.2 read differently is an error
    Raises yaml.YAMLError.
    """
    _refuse_bombs(content)
    loader = (_LoaderOfDvc if of_dvc else _Loader)(content)
    try:
        root = loader.get_single_node()
        _refuse_doubt(root, loader.construct_object, of_dvc=of_dvc)
        return None if root is None else loader.construct_document(root)
    # A date that no calendar has, a number of thousands of digits, a text with the tag of a date or of a number.
    except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError) as error:
        raise yaml.constructor.ConstructorError(None, None, f"a value cannot be read: {first_line(error)}") from None
    finally:
        loader.dispose()


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file. Raises ParameterError if the file is missing, malformed or no mapping."""
    try:
        require_regular(path)
        content = copy.deepcopy(_parsed(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise ParameterError(
            f"{path.name} is missing", where=str(path), remedy="run from the root of a sentfold checkout"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise ParameterError(
            f"{path.name} is not valid YAML",
            where=str(path),
            got=" ".join(str(error).split()).replace(' in "<unicode string>",', " at"),
            remedy="correct the line that the message names",
        ) from None
    if not isinstance(content, dict):
        raise ParameterError(
            f"{path.name} is no mapping", where=str(path), expected="key: value lines", got=type(content).__name__
        )
    return content


@lru_cache(maxsize=32)
def _parsed(text: str) -> Any:
    """The content of a YAML text, in a cache: a check of all parameters reads the same few files a hundred times."""
    return parse_yaml(text)


def load_parameters(model: type[Model], key: str, *, path: Path = PARAMS_FILE) -> Model:
    """The group `key` of params.yaml (with dots, such as "manifolds.lp") as a frozen `model`.

    Raises ParameterError that names the key, its value and the allowed values.
    """
    content = read_yaml(path)
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
