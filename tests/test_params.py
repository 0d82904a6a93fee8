"""Parameters and suites: what is allowed is accepted, and everything else is refused by its name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from dvc.utils.serialize import dumps_yaml
from dvc.utils.serialize import parse_yaml as parse_with_dvc
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from pipeline.base.params import load_parameters, parse_yaml, read_yaml
from pipeline.check import NAMED, SINGLE, check_everything
from pipeline.plan import GROUPS, check_plan
from pipeline.stages.embed import EmbedParameters
from pipeline.stages.knn_graph import GraphParameters
from sentfold.encoders.model_folder import ModelSource
from sentfold.errors import ParameterError, SentfoldError
from sentfold.manifold.base.protocol import SolverSettings
from sentfold.measures.registry import evaluate_parameters
from sentfold.settings import Parameters, check_slug

ROOT = Path(__file__).parents[1]
SUITES = ["quick", *sorted(folder.name for folder in (ROOT / "suites").iterdir())]


@pytest.fixture
def params(tmp_path: Path) -> Path:
    path = tmp_path / "params.yaml"
    path.write_text((ROOT / "params.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    return path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
    path.write_text(text.replace(old, new), encoding="utf-8")


def said(error: SentfoldError, *parts: str) -> None:
    for part in parts:
        assert part in str(error), f"{part!r} is not in:\n{error}"


# --- the files as they are --------------------------------------------------------------------------


@pytest.mark.parametrize("suite", SUITES)
def test_params_the_suite_and_the_catalogue_agree(suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert check_everything(suite).suite == suite


def test_every_group_of_params_is_one_that_the_check_validates() -> None:
    assert set(read_yaml(ROOT / "params.yaml")) <= set(SINGLE) | set(NAMED)
    assert set(SINGLE) | set(NAMED) <= set(GROUPS)


def uncommented_numbers(text: str) -> list[str]:
    """Lines of YAML that give a number, or a list of them, and have no comment there or on the line of their block."""
    blocks: list[tuple[int, bool]] = []
    lacking = []
    for line in text.splitlines():
        content, _, comment = line.partition("#")
        if not content.strip():
            continue
        indent = len(content) - len(content.lstrip())
        blocks = [block for block in blocks if block[0] < indent]
        value = content.partition(":")[2].strip()
        if not value:
            blocks.append((indent, bool(comment.strip())))
        elif re.search(r"(?<![\w.-])[-+]?\.?\d", value) and not comment.strip():
            lacking.append(line) if not any(commented for _, commented in blocks) else None
    return lacking


def test_every_number_of_params_has_a_comment() -> None:
    text = (ROOT / "params.yaml").read_text(encoding="utf-8")
    assert uncommented_numbers(text) == []
    # The search itself finds a comment that is taken away.
    bare = re.sub(r"(batch_size: \d+) #.*", r"\1", text)
    assert uncommented_numbers(bare) == [re.search(r" *batch_size: \d+", text)[0]]


# --- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "key", "old", "new", "parts"),
    [
        (EmbedParameters, "embed", "batch_size: 64 # l", "batchsize: 64 # l", ["embed.batchsize", "batch_size", "64"]),
        (
            EmbedParameters,
            "embed",
            "batch_size: 64 # l",
            "batch_size: 0 # l",
            ["embed.batch_size", "greater than", "1", "0"],
        ),
        (EmbedParameters, "embed", "batch_size: 64 # l", "batch_size: 5000 # l", ["embed.batch_size", "4096", "5000"]),
        (
            EmbedParameters,
            "embed",
            "batch_size: 64 # l",
            "batch_size: '64' # l",
            ["embed.batch_size", "integer", "'64'"],
        ),
        (
            EmbedParameters,
            "embed",
            "batch_size: 64 # l",
            "batch_size: true # l",
            ["embed.batch_size", "integer", "True"],
        ),
        (
            EmbedParameters,
            "embed",
            "batch_size: 64 # l",
            "batch_size: 64.5 # l",
            ["embed.batch_size", "integer", "64.5"],
        ),
        (EmbedParameters, "embed", "batch_size: 64 # l", "batch_size: # l", ["embed.batch_size", "integer", "None"]),
        (GraphParameters, "knn_graph", "metric: euclidean", "metric: hamming", ["metric", "'cosine'", "hamming"]),
        (SolverSettings, "eigensolve", "null_tolerance: 1.0e-10", "null_tolerance: tiny", ["null_tol", "'tiny'"]),
        (evaluate_parameters(), "evaluate", "confidence: 0.95", "confidence: 95", ["confidence", "less than 1", "95"]),
        (evaluate_parameters(), "evaluate", "confidence: 0.95", "confidence: 0.95\n  level: 1", ["evaluate.level"]),
    ],
)
def test_a_bad_value_is_refused_with_its_key_its_value_and_what_is_allowed(
    params: Path, model: type[Parameters], key: str, old: str, new: str, parts: list[str]
) -> None:
    load_parameters(model, key, path=params)
    change(params, old, new)
    with pytest.raises(ParameterError) as caught:
        load_parameters(model, key, path=params)
    said(caught.value, str(params), *parts)


def test_a_missing_value_is_refused_by_its_name(params: Path) -> None:
    change(params, "  neighbors: 100", "  # neighbors: 100")
    with pytest.raises(ParameterError) as caught:
        load_parameters(GraphParameters, "knn_graph", path=params)
    said(caught.value, "knn_graph.neighbors", "required")


def test_an_unknown_group_is_refused_by_the_first_stage(params: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    params.write_text(params.read_text() + "\nembeds: {batch_size: 8}\n")
    monkeypatch.chdir(params.parent)
    with pytest.raises(ParameterError) as caught:
        check_plan("quick")
    said(caught.value, "embeds", "one of:", "knn_graph")


def test_a_key_that_stands_twice_is_refused(params: Path) -> None:
    change(params, "  batch_size: 64 # l", "  batch_size: 32\n  batch_size: 64 # l")
    with pytest.raises(ParameterError) as caught:
        load_parameters(EmbedParameters, "embed", path=params)
    said(caught.value, "batch_size", "twice", "line")


@pytest.mark.parametrize(("one", "other"), [("1", "true"), ("1", "1.0"), ("16", "0x10"), ("TRUE", "true")])
def test_two_spellings_of_one_key_are_refused(tmp_path: Path, one: str, other: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"{one}: a\n{other}: b\n")
    with pytest.raises(ParameterError) as caught:
        read_yaml(path)
    said(caught.value, other, "twice", "line 2")


def aliases(first: str, *, levels: int, each: int) -> str:
    """YAML of `levels` anchors, each of which stands for the one before it `each` times."""
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * each)}]" for n in range(1, levels)]
    return "\n".join(lines) + "\n"


MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 10))


@pytest.mark.parametrize(
    "text",
    [
        aliases("[x]", levels=10, each=9),
        MERGES,
        aliases("[x]", levels=5000, each=1),
        "a: &a [*a]\n",
        f"a: {'[' * 200_000}",
        "- " * 200_000 + "a",
    ],
    ids=["aliases", "merges", "a chain of aliases", "an alias of itself", "brackets", "dashes"],
)
def test_a_small_file_that_stands_for_a_huge_or_deep_value_is_refused_at_once(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bomb.yaml"
    path.write_text(text)
    # In a process of its own: where it is not refused, the parser overflows the stack and ends the process.
    code = f"from pathlib import Path\nfrom pipeline.base.params import read_yaml\nread_yaml(Path({str(path)!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert "ParameterError: bomb.yaml is not valid YAML" in done.stderr
    assert "values, aliases included" in done.stderr


# By hand from the two specifications: PyYAML reads YAML 1.1, DVC reads YAML 1.2.
@pytest.mark.parametrize(
    "value",
    ["010", "-08", "0o10", "1:30", "-1:30.5", "yes", "No", "ON", "off", "+.5", "-.5e3", ".5e3", "._5", "1_0e3", "+_1"],
)
def test_a_value_that_dvc_reads_as_another_is_refused_with_its_line(tmp_path: Path, value: str) -> None:
    path = tmp_path / "a.yaml"
    for text in (f"b: 1\na: {value}\n", f"b:\n- {value}\n", f"b: 1\n{value}: 1\n"):
        path.write_text(text)
        with pytest.raises(ParameterError) as caught:
            read_yaml(path)
        said(caught.value, repr(value), "in quotes", "line 2")
    path.write_text(f"'{value}': '{value}'\n")
    assert read_yaml(path) == {value: value}


@given(st.from_regex(r"[-+]?[.0189_][0189._:eExo+-]{0,5}", fullmatch=True))
def test_what_is_read_is_what_dvc_reads(value: str) -> None:
    try:
        ours = parse_yaml(f"a: {value}\n")["a"]
    except yaml.YAMLError:
        return
    assert repr(ours) == repr(parse_with_dvc(f"a: {value}\n", "a.yaml")["a"])


@pytest.mark.parametrize("text", ["a: 1{}\n", "? !!int '1{}'\n: a\n"], ids=["a value", "a key"])
def test_a_long_number_to_the_base_of_60_takes_no_time(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text.format(":1" * 200_000))
    begun = time.perf_counter()
    with pytest.raises(ParameterError):
        read_yaml(path)
    assert time.perf_counter() - begun < 2


@pytest.mark.parametrize("value", ["!!timestamp x", "!!bool x", "!!float ''", "!!int ''"])
def test_a_text_with_the_tag_of_another_type_is_refused(tmp_path: Path, value: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"a: {value}\n")
    with pytest.raises(ParameterError, match="not valid YAML"):
        read_yaml(path)


def test_a_pipe_and_a_device_are_refused_and_not_read_for_ever(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    for name in ("pipe.yaml", "zero.yaml"):
        with pytest.raises(ParameterError, match="not a regular file"):
            read_yaml(tmp_path / name)


@pytest.mark.parametrize("value", ["9" * 5000, "2001-99-99"])
def test_a_value_that_python_cannot_hold_is_refused(tmp_path: Path, value: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"a: {value}\n")
    with pytest.raises(ParameterError) as caught:
        read_yaml(path)
    said(caught.value, "not valid YAML", str(path))


@pytest.mark.parametrize("text", ["embed: [1, 2\n", "embed:\n\t- 1\n", "a: b: c\n", "embed: &x {batch: *y}\n"])
def test_malformed_yaml_is_refused_with_its_line(params: Path, text: str) -> None:
    params.write_text(text)
    with pytest.raises(ParameterError) as caught:
        load_parameters(EmbedParameters, "embed", path=params)
    said(caught.value, "not valid YAML", str(params), "line")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"- 1\n- 2\n", b"", b"just words\n"])
def test_a_file_that_holds_no_mapping_is_refused(params: Path, content: bytes) -> None:
    params.write_bytes(content)
    with pytest.raises(ParameterError) as caught:
        load_parameters(EmbedParameters, "embed", path=params)
    said(caught.value, str(params))


def test_a_missing_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ParameterError) as caught:
        load_parameters(EmbedParameters, "embed", path=tmp_path / "params.yaml")
    said(caught.value, "params.yaml is missing", "root")


@pytest.mark.parametrize("key", ["encoders.nope", "nope", "embed.batch_size.deeper", "encoders.minilm.package.name"])
def test_a_group_that_is_not_there_is_refused_with_those_that_are(params: Path, key: str) -> None:
    with pytest.raises(ParameterError) as caught:
        load_parameters(ModelSource, key, path=params)
    said(caught.value, key, "one of:")


def test_parameters_are_frozen(params: Path) -> None:
    embed = load_parameters(EmbedParameters, "embed", path=params)
    with pytest.raises(ValueError, match="frozen"):
        embed.batch_size = 1


def test_an_encoder_has_exactly_one_place(params: Path) -> None:
    for block in ("{package: a, hub: b}", "{}"):
        params.write_text(f"encoders: {{minilm: {block}}}\n")
        with pytest.raises(ParameterError) as caught:
            load_parameters(ModelSource, "encoders.minilm", path=params)
        said(caught.value, "exactly one of: package, folder, hub")


@pytest.mark.parametrize("revision", ["main", "v1.0", "0123456", "G" * 40, "0" * 41, "A" * 40])
def test_a_revision_is_forty_hexadecimal_digits(params: Path, revision: str) -> None:
    params.write_text(f"encoders: {{a: {{hub: x/y, revision: '{revision}'}}}}\n")
    with pytest.raises(ParameterError) as caught:
        load_parameters(ModelSource, "encoders.a", path=params)
    said(caught.value, "revision", revision)


class Range(Parameters):
    """A model of this test: a closed and an open end."""

    share: float = Field(ge=0, lt=1)


@given(st.floats())
def test_a_range_accepts_what_lies_in_it_and_nothing_else(value: float) -> None:
    from sentfold.settings import validate

    if 0 <= value < 1:
        assert validate(Range, {"share": value}, where="here").share == value
    else:
        with pytest.raises(ParameterError) as caught:
            validate(Range, {"share": value}, where="here")
        said(caught.value, "here.share", repr(value))


# --- names ------------------------------------------------------------------------------------------

PIECE = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=6)


@given(st.lists(PIECE, min_size=1, max_size=4))
def test_pieces_joined_by_single_hyphens_are_a_name(pieces: list[str]) -> None:
    assert check_slug("-".join(pieces)) == "-".join(pieces)


@given(before=PIECE, after=PIECE, bad=st.characters(codec="utf-8").filter(lambda c: not re.match("[a-z0-9-]", c)))
def test_any_other_character_is_refused(before: str, after: str, bad: str) -> None:
    for name in (before + bad + after, bad + after, before + bad):
        with pytest.raises(ValueError, match="single hyphens"):
            check_slug(name)


@pytest.mark.parametrize(
    "name", ["", "-", "a--b", "-a", "a-", "a/b", "a b", "a.b", "..", "A", "stsB", "a\n", "é", "a_b"]
)
def test_a_name_that_dvc_or_a_folder_would_choke_on_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        check_slug(name)


@pytest.mark.parametrize("tag", ["!!omap", "!!pairs"])
def test_a_list_of_pairs_with_keys_that_may_repeat_is_refused(tag: str) -> None:
    with pytest.raises(yaml.YAMLError, match="a list has the tag"):
        parse_yaml(f"a: {tag} [b: 1, b: 2]\n")


TWO_READINGS = ["yes", "no", "No", "on", "off", "1:30", "12:30:45", ".5e3", "010", "=", "<<", "1e5", "2001-01-01", "~"]


@pytest.mark.parametrize("value", [*TWO_READINGS, 10, 1e-10, -0.5, 2**70, True, None])
def test_what_dvc_writes_is_read_as_the_same_value_and_key(value: object) -> None:
    content = {"a": [value], value: value}
    assert repr(parse_yaml(dumps_yaml(content), of_dvc=True)) == repr(content)


@given(st.from_regex(r"[-+]?[.0189_][0189._:eExobn+-]{0,5}", fullmatch=True))
def test_what_has_no_quotes_in_a_file_of_dvc_is_read_as_dvc_reads_it(value: str) -> None:
    try:
        ours = repr(parse_yaml(f"a: {value}\n", of_dvc=True))
    except yaml.YAMLError:
        return
    assert ours == repr(parse_with_dvc(f"a: {value}\n", "a.yaml"))


@pytest.mark.parametrize("of_dvc", [False, True])
def test_a_key_that_is_a_list_is_refused_before_its_aliases_are_written_out(of_dvc: bool) -> None:
    text = f'a: &a "{"x" * 100_000}"\n? [{", ".join(["*a"] * 1000)}]\n: 1\n'
    with pytest.raises(yaml.YAMLError, match="a key is a list or a mapping"):
        parse_yaml(text, of_dvc=of_dvc)
