"""What is written by the entry, held against what DVC itself writes."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from dvc.utils.serialize import dumps_yaml, loads_yaml, parse_yaml_for_update
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flows.dvc import MEMORY, parse_yaml, print_entries
from tests.flows.checkout import SOURCE, Checkout

LOCKS = ("dvc.lock", "suites/paper-mirror/dvc.lock")
DVC, OURS = "dvc", "flows.dvc"

# Values that DVC prints into the lock beside those of stage.py's own parameters, all in one list.
AWKWARD = (
    "embed: {dimension: 4, list: [1, [2, {a: []}], {}], text: 'yes', number: '1e5', size: 1.0e-08, none: null, "
    "digest: 12345678901234567890123456789e12, name: 'días  日本', long: '" + "words that are folded " * 12 + "'}"
)

texts = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["yes", "No", "on", "~", "null", "1e5", "0x1f", "017", "1_000", "1:30", ".inf", "- a", "a: b", "#"]
    ),
    st.from_regex(r"[0-9]{1,30}e[0-9]{1,30}", fullmatch=True),
    st.lists(
        st.sampled_from(["python", "--suite", "a:", "#", "'q'", '"', "é", "日本", "\\", "&&", "|"]), max_size=60
    ).map(" ".join),
)
# Keys of some 80 characters with spaces DVC folds into what it cannot read any more itself.
keys = texts.filter(lambda text: 0 < len(text) <= 40)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), texts)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)
entries = st.fixed_dictionaries(
    {
        "cmd": texts,
        "params": st.fixed_dictionaries({"params.yaml": st.dictionaries(keys, values, max_size=3)}),
    }
)
names = st.one_of(st.from_regex(r"[a-z]{1,8}(@[a-z0-9-]{1,8})?", fullmatch=True), keys)


def lines_of(lock: str) -> dict[str, str]:
    """The lines of each stage in a text that DVC printed, by the lines that begin a stage."""
    blocks: list[str] = []
    for line in lock.split("stages:\n", 1)[1].splitlines(keepends=True):
        if line.startswith("  ") and line[2] != " ":
            blocks.append("")
        blocks[-1] += line
    return {block.partition(":")[0].strip(): block for block in blocks}


@pytest.mark.parametrize("name", LOCKS)
def test_every_entry_of_the_committed_locks_is_printed_as_it_stands_there(name: str) -> None:
    lock = (SOURCE / name).read_text(encoding="utf-8")
    expected = lines_of(lock)
    content = loads_yaml(lock)["stages"]
    assert set(content) == set(expected)
    for stage, entry in content.items():
        assert print_entries({stage: entry}) == {stage: expected[stage]}


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(names, entries, min_size=1, max_size=3), names, entries)
@example({"a": {"cmd": "x"}}, "s", {"cmd": "y", "params": {"params.yaml": {"a": 2.7890840981819507e20}}})
@example({"a": {"cmd": "x"}}, "s", {"cmd": "y", "params": {"params.yaml": {"a": 1e-08, "b": "\x85"}}})
def test_an_entry_printed_alone_is_as_dvc_prints_it_among_others_however_often_or_left_to_dvc(
    others: dict[str, Any], name: str, entry: Any
) -> None:
    printed = print_entries({name: entry})
    if printed is None:
        return
    among = {**others, name: entry, "last": {"cmd": "z"}}
    text = dumps_yaml({"schema": "2.0", "stages": among})
    assert printed[name] in text
    assert loads_yaml("schema: '2.0'\nstages:\n" + printed[name])["stages"] == {name: entry}
    # DVC reads the file and prints all of it when the next stage ends.
    assert printed[name] in dumps_yaml(parse_yaml_for_update(text, "dvc.lock"))


@pytest.mark.parametrize("name", ["embed", "embed@a-b", "report"])
def test_an_ordinary_entry_is_not_left_to_dvc(name: str) -> None:
    content = {"cmd": "python x.py " * 20, "outs": [{"path": "data/x", "hash": "md5", "md5": "1" * 30 + "e1"}]}
    params = {"params.yaml": {"a.b": 1e-08, "c": [], "d": {}, "e": None, "f": "yes", "g": [1, [2, "días"]]}}
    assert print_entries({name: {**content, "params": params}}) is not None


def test_an_object_in_two_places_is_left_to_dvc_which_numbers_such_objects_through_the_file() -> None:
    shared = [1, 2]
    assert "&id001" in dumps_yaml({"a": shared, "b": shared})
    assert print_entries({"s": {"cmd": "x", "params": {"a": shared, "b": shared}}}) is None


@settings(deadline=None)
@given(values)
def test_a_text_parsed_again_says_the_same_whatever_its_first_reader_did_to_it(value: Any) -> None:
    text = dumps_yaml({"a": value, "b": {"c": [1]}})
    expected = loads_yaml(text)
    first = parse_yaml(text, "params.yaml")
    assert first == expected
    first["b"]["c"].append(2)
    first.pop("a")
    assert parse_yaml(text, "params.yaml") == expected


Twin = tuple[Checkout, Checkout]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, template: Path, serverless: dict[str, str]) -> Twin:
    """Two copies of a finished repository: one for DVC, one for ours, which has seen all of its dvc.lock."""
    folder = tmp_path_factory.mktemp("pair")
    plain, ours = (copy_checkout(template, folder / name, serverless) for name in ("plain", "ours"))
    change_both((plain, ours), "embed: {dimension: 4}", AWKWARD)
    repro_both(plain, ours)
    return plain, ours


@pytest.fixture
def twins(tmp_path: Path, pair: Twin, serverless: dict[str, str]) -> Twin:
    """The same two, to be changed."""
    plain, ours = (copy_checkout(checkout.root, tmp_path / checkout.root.name, serverless) for checkout in pair)
    return plain, ours


def copy_checkout(source: Path, target: Path, environment: dict[str, str]) -> Checkout:
    """A copy with DVC's notes on it."""
    shutil.copytree(source, target, symlinks=True)
    return Checkout(target, {**environment, "DVC_SITE_CACHE_DIR": str(target / ".dvc/tmp/site")})


def repro(checkout: Checkout, module: str, *words: str) -> None:
    """`repro` by DVC or by ours, to its end."""
    command = [sys.executable, "-m", module, "repro", *words]
    done = subprocess.run(
        command, cwd=checkout.root, env=checkout.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def repro_both(plain: Checkout, ours: Checkout, *words: str) -> None:
    """The same `repro` in both; what they leave of dvc.lock has to be the same bytes."""
    repro(plain, DVC, *words)
    repro(ours, OURS, *words)
    assert (ours.root / "dvc.lock").read_bytes() == (plain.root / "dvc.lock").read_bytes()


def change_both(twins: Twin, old: str, new: str) -> None:
    """Edit params.yaml of both."""
    for checkout in twins:
        checkout.change(old, new)


def memory_of(checkout: Checkout) -> Path:
    """Where ours remembers which entries are as DVC prints them."""
    return checkout.root / f".dvc/tmp/{MEMORY}-dvc.lock"


def test_runs_with_a_parameter_changed_in_between_leave_the_bytes_of_plain_dvc(twins: Twin) -> None:
    plain, ours = twins
    # Held open, so that no later file can be given its inode: each stage puts another in its place.
    with (ours.root / "dvc.lock").open(encoding="utf-8") as written:
        change_both(twins, "dimension: 4", "dimension: 5")
        repro_both(plain, ours)
        assert not os.path.samestat(os.fstat(written.fileno()), (ours.root / "dvc.lock").stat()), "written in place"
    change_both(twins, "rounding: 2", "rounding: 0x10")
    repro_both(plain, ours)
    lock = yaml.safe_load((ours.root / "dvc.lock").read_text())["stages"]
    assert lock["embed@a"]["params"]["params.yaml"]["embed"]["dimension"] == 5
    assert lock["evaluate"]["params"]["params.yaml"]["evaluate"]["rounding"] == 16


def test_a_first_run_from_nothing_leaves_the_bytes_of_plain_dvc(twins: Twin) -> None:
    for checkout in twins:
        (checkout.root / "dvc.lock").unlink()
    repro_both(*twins, "--force")


def test_stage_by_stage_the_bytes_are_those_of_plain_dvc(twins: Twin) -> None:
    change_both(twins, "dimension: 4", "dimension: 7")
    for stage in ("embed@b", "embed@a", "evaluate", "report"):
        repro_both(*twins, "--single-item", stage)


def test_objects_that_dvc_numbers_and_floats_that_it_prints_in_two_ways_are_as_plain_dvc_leaves_them(
    twins: Twin,
) -> None:
    change_both(twins, "dimension: 4", "dimension: 2.7890840981819507e+20, x: &l [1, 2], y: *l")
    repro_both(*twins, "--single-item", "embed@a")
    repro_both(*twins, "--single-item", "embed@b")
    assert "&id002" in (twins[0].root / "dvc.lock").read_text()
    change_both(twins, "x: &l [1, 2], y: *l", "x: 1")
    repro_both(*twins)
    assert "&id" not in (twins[0].root / "dvc.lock").read_text()


def rewrite(text: str) -> str:
    """As a user's script would leave it."""
    return str(yaml.safe_dump(yaml.safe_load(text)))


def comment(text: str) -> str:
    """With remarks in three places."""
    return "# mine\n" + text.replace("    deps:\n", "    deps: # of it\n", 1) + "# the end\n"


def reorder(text: str) -> str:
    """Stages backwards, and the keys of each."""
    content = yaml.safe_load(text)
    stages = {name: dict(reversed(stage.items())) for name, stage in reversed(content["stages"].items())}
    return str(dumps_yaml({"schema": "2.0", "stages": stages}))


def quote(text: str) -> str:
    """One entry that says the same in other words."""
    return text.replace("hash: md5", 'hash: "md5"', 1)


def remark(text: str) -> str:
    """With a remark that DVC takes for the stage's and not for its entry's."""
    return text.replace("  embed@a:\n", "  embed@a:\n    # mine\n", 1)


def link(text: str) -> str:
    """One entry that names a value, and a later one that means the same by its name."""
    before, _, rest = text.partition("hash: md5")
    middle, _, after = rest.rpartition("hash: md5")
    return f"{before}hash: &x md5{middle}hash: *x{after}"


EDITS = [rewrite, remark, link, *(pytest.param(edit, marks=pytest.mark.slow) for edit in (comment, reorder, quote))]


@pytest.mark.parametrize("edit", EDITS)
def test_a_lock_that_a_user_rewrote_becomes_what_dvc_makes_of_it(twins: Twin, edit: Callable[[str], str]) -> None:
    assert memory_of(twins[1]).exists()
    for checkout in twins:
        path = checkout.root / "dvc.lock"
        edited = edit(path.read_text())
        assert edited != path.read_text()
        path.write_text(edited)
    change_both(twins, "rounding: 2", "rounding: 3")
    repro_both(*twins)
    change_both(twins, "dimension: 4", "dimension: 5")
    repro_both(*twins, "embed@a")


def lose(memory: Path, _before: bytes) -> None:
    """No file."""
    memory.unlink()


def cut(memory: Path, _before: bytes) -> None:
    """Half a file."""
    content = memory.read_bytes()
    memory.write_bytes(content[: len(content) // 2 + 3])


def spoil(memory: Path, _before: bytes) -> None:
    """Bytes that are no text."""
    memory.write_bytes(b"\xff\x00" + memory.read_bytes()[9:] + b"\xc3(")


def put_back(memory: Path, before: bytes) -> None:
    """What stood there a run ago."""
    assert memory.read_bytes() != before
    memory.write_bytes(before)


HARMS: Mapping[str, Callable[[Path, bytes], None]] = {
    "lost": lose, "cut": cut, "garbage": spoil, "of an earlier lock": put_back,
}  # fmt: skip


SLOW = ("cut", "garbage")


@pytest.mark.parametrize("harm", [pytest.param(harm, marks=[pytest.mark.slow] * (harm in SLOW)) for harm in HARMS])
def test_a_memory_that_is_lost_or_damaged_or_behind_changes_no_byte(twins: Twin, harm: str) -> None:
    memory = memory_of(twins[1])
    before = memory.read_bytes()
    for rounding in (2, 3):
        change_both(twins, f"rounding: {rounding}", f"rounding: {rounding + 1}")
        repro_both(*twins)
        HARMS[harm](memory, before)
    change_both(twins, "rounding: 4", "rounding: 5")
    repro_both(*twins)
