"""Artifacts, dvc.lock and file times changed behind DVC's back: nothing wrong is read, a run puts it right."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.faults.conftest import Disturbed
from tests.faults.processes import PLAIN_DVC, RUN, Command
from tests.faults.repetition import injections

SPACE = "data/quick/spaces/wl-average/kitchen.parquet"
MAKER = "encode@wl-average"
# Stages that read it, which must refuse it when they are called by hand, without DVC's own comparison.
READERS = {
    "knn_graph@wl-average": ("knn_graph", "wl-average"),
    "transform@wl-average-pca": ("transform", "wl-average-pca"),
}
STATUS = ("-m", "dvc", "status")
OTHERS = {
    "another stage's": "data/quick/spaces/wl-average-smooth/kitchen.parquet",
    "another kind's": "data/quick/graphs/wl-average/kitchen.parquet",
    "another corpus's": "data/quick/spaces/wl-average/harbour.parquet",
}

YEARS = {"past": 315532800.0, "future": 4102444800.0}  # 1980 and 2100


def truncate(path: Path, moments: random.Random) -> str:
    length = moments.randrange(path.stat().st_size)
    os.truncate(path, length)
    return f"to {length} bytes"


def flip(path: Path, moments: random.Random, *, first: int = 0, last: int | None = None) -> str:
    content = bytearray(path.read_bytes())
    place, bit = moments.randrange(first, last or len(content)), moments.randrange(8)
    content[place] ^= 1 << bit
    path.write_bytes(content)
    return f"bit {bit} of byte {place}"


def delete(path: Path, moments: random.Random) -> str:
    path.unlink()
    return "deleted"


def replace(path: Path, moments: random.Random) -> str:
    name = moments.choice(sorted(OTHERS))
    root = path.parents[4]
    shutil.copyfile(root / OTHERS[name], path)
    return name


DAMAGES = {"truncated": truncate, "bit-flipped": flip, "replaced by another stage's": replace, "deleted": delete}


@pytest.mark.parametrize(
    ("damage", "number"),
    [case for name in DAMAGES for case in injections(name)],
)
def test_a_damaged_artifact_is_refused_by_its_reader_and_made_whole_by_the_next_run(
    damage: str, number: int, disturb_without_server: Callable[[str], Disturbed], moments: random.Random
) -> None:
    disturbed = disturb_without_server("base")
    how = DAMAGES[damage](disturbed.root / SPACE, moments)
    stage, words = list(READERS.items())[number % len(READERS)]
    reader = disturbed.starter.run("-m", "pipeline", *words)
    # Not every bit of a Parquet file means something; if the reader went on, `judge` finds a row that it changed.
    went_on = damage == "bit-flipped" and reader.wait() == 0
    if not went_on:
        require_refusal(reader, how)
    again = disturbed.judge(f"artifact {damage}", how, reader, rerun=PLAIN_DVC)
    # What a reader that went on has written names the hash of a file that is gone.
    assert again.remade() == {MAKER} | ({stage} if went_on else set()), "its stage, and none of those that refused it"


def require_refusal(reader: Command, how: str) -> None:
    """Fail unless a stage refused its input in our own words, naming the file and what to do."""
    assert reader.wait() == 2, f"{how}: {reader.printed}"
    assert "Traceback" not in reader.printed
    assert "kitchen.parquet" in reader.printed and "dvc repro" in reader.printed


@pytest.mark.parametrize("number", injections(slow=5))
def test_a_bit_flipped_under_the_old_time_is_unseen_by_dvc_yet_refused_by_its_reader(
    number: int, disturb_without_server: Callable[[str], Disturbed], moments: random.Random
) -> None:
    # DVC takes a file of the same inode, size and time for the same; its reader goes by checksums.
    disturbed = disturb_without_server("base")
    path = disturbed.root / SPACE
    disturbed.starter.run(*STATUS)  # from now on DVC remembers the times
    times = path.stat()
    how = flip(path, moments, first=4096, last=32768)  # among the numbers, where every bit means something
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    reader = disturbed.starter.run("-m", "pipeline", *READERS["knn_graph@wl-average"])
    require_refusal(reader, how)
    assert "up to date" in disturbed.starter.run(*STATUS).printed
    path.unlink()  # what the error says is to be done
    again = disturbed.judge("artifact bit-flipped, its time kept", how, reader, rerun=PLAIN_DVC)
    assert again.remade() == {MAKER}


def edit_output_hash(
    lock: dict[str, dict[str, dict[str, list[dict[str, str]]]]], moments: random.Random
) -> tuple[str, str]:
    stage = moments.choice(sorted(lock["stages"]))
    lock["stages"][stage]["outs"][0]["md5"] = "0" * 32
    return stage, f"hash of an output of {stage}"


def edit_input_hash(
    lock: dict[str, dict[str, dict[str, list[dict[str, str]]]]], moments: random.Random
) -> tuple[str, str]:
    stage = moments.choice(sorted(lock["stages"]))
    deps = lock["stages"][stage]["deps"]
    path = moments.choice(deps)["path"]
    for entry in deps:
        if entry["path"] == path:  # an input that dvc.yaml names twice; DVC goes by the last of its entries
            entry["md5"] = "0" * 32
    return stage, f"hash of an input of {stage}"


def edit_parameter(lock: dict[str, dict[str, dict[str, dict[str, object]]]], moments: random.Random) -> tuple[str, str]:
    stage = moments.choice(sorted(name for name, content in lock["stages"].items() if "params" in content))
    (file, values), *_ = lock["stages"][stage]["params"].items()
    assert isinstance(values, dict), "parameters of one file, by name"
    values[moments.choice(sorted(values))] = "edited"
    return stage, f"a parameter of {stage} in {file}"


def drop_stage(lock: dict[str, dict[str, object]], moments: random.Random) -> tuple[str, str]:
    stage = moments.choice(sorted(lock["stages"]))
    del lock["stages"][stage]
    return stage, f"{stage} taken out"


EDITS = (edit_output_hash, drop_stage, edit_input_hash, edit_parameter)


@pytest.mark.parametrize("number", injections())
def test_an_edited_lock_makes_dvc_look_at_its_stage_alone_and_becomes_what_it_was(
    number: int, disturb_without_server: Callable[[str], Disturbed], moments: random.Random
) -> None:
    disturbed = disturb_without_server("base")
    path = disturbed.root / "dvc.lock"
    lock = yaml.safe_load(path.read_text())
    stage, how = EDITS[number % len(EDITS)](lock, moments)
    path.write_text(yaml.safe_dump(lock, sort_keys=False))
    again = disturbed.judge("dvc.lock edited", how, None, rerun=PLAIN_DVC, edited_lock=True)
    assert again.remade() == {stage}, "restored from DVC's cache, or run again; and no stage beside it"


@pytest.mark.parametrize("number", injections())
def test_a_lock_that_is_cut_short_anywhere_is_put_back(
    number: int, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    disturbed = disturb("base")
    # A run keeps a copy of the lock. Where no run ever was, DVC names what it cannot read.
    disturbed.starter.run(*RUN, "--target", "plan")
    length = moments.randrange((disturbed.root / "dvc.lock").stat().st_size)
    os.truncate(disturbed.root / "dvc.lock", length)
    disturbed.judge("dvc.lock cut short", f"to {length} bytes", None)


@pytest.mark.slow
def test_a_table_of_paths_in_use_that_is_cut_short_does_not_stop_the_next_run(
    disturb: Callable[[str], Disturbed],
) -> None:
    disturbed = disturb("base")
    (disturbed.root / ".dvc/tmp/rwlock").write_text('{"wri')
    disturbed.judge("rwlock of DVC cut short", "to 5 bytes", None)


@pytest.mark.slow
@pytest.mark.parametrize("year", YEARS)
def test_file_times_decide_nothing(year: str, disturb_without_server: Callable[[str], Disturbed]) -> None:
    disturbed = disturb_without_server("base")
    disturbed.starter.run(*STATUS)
    for folder in ("data", "sentfold", "pipeline", "reports"):
        for path in (disturbed.root / folder).rglob("*"):
            if "__pycache__" not in path.parts:
                os.utime(path, (YEARS[year], YEARS[year]))
    for name in ("params.yaml", "dvc.yaml", "dvc.lock", "requirements.lock"):
        os.utime(disturbed.root / name, (YEARS[year], YEARS[year]))
    run = disturbed.judge(f"file times in the {year}", "all files", None, rerun=PLAIN_DVC)
    assert "Running stage" not in run.printed
