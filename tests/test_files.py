"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sentfold.errors import ArtifactError
from sentfold.files import json_bytes, replace_whole, write_json, write_text


def names(folder: Path) -> set[str]:
    """What a folder holds."""
    return {path.name for path in folder.iterdir()}


def test_a_reader_sees_the_old_file_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    write_text(path, "old")
    with replace_whole(path) as temporary:
        temporary.write_text("half")
        assert path.read_text() == "old\n"
    assert path.read_text() == "half" and names(path.parent) == {"a.txt"}


@pytest.mark.parametrize("error", [ValueError("of the caller"), KeyboardInterrupt()])
def test_a_block_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path, error: BaseException) -> None:
    write_text(tmp_path / "a.txt", "old")
    with pytest.raises(type(error)), replace_whole(tmp_path / "a.txt") as temporary:
        temporary.write_text("half")
        raise error
    assert (tmp_path / "a.txt").read_text() == "old\n" and names(tmp_path) == {"a.txt"}


def test_a_target_that_is_a_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt" / "kept").mkdir(parents=True)
    with pytest.raises(ArtifactError, match=r"(?s)cannot write a file.*a\.txt"):
        write_text(tmp_path / "a.txt", "text")
    assert names(tmp_path) == {"a.txt"}


def test_temporary_files_of_another_machine_and_of_living_processes_stay(tmp_path: Path) -> None:
    host = os.uname().nodename
    kept = {".a[1].txt.other-host.999999999.tmp", f".a[1].txt.{host}.1.tmp", f".b.txt.{host}.999999999.tmp"}
    for name in (*kept, f".a[1].txt.{host}.999999999.tmp"):
        (tmp_path / name).write_text("half")
    write_text(tmp_path / "a[1].txt", "text")
    assert names(tmp_path) == {*kept, "a[1].txt"}


def test_json_has_one_form_and_refuses_what_json_has_not(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": 1, "a": "é"})
    assert (tmp_path / "a.json").read_bytes() == json_bytes({"a": "é", "b": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"a": float("nan")})
    assert (tmp_path / "a.json").read_bytes() == json_bytes({"a": "é", "b": 1})
