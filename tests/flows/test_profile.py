import os
from pathlib import Path

import pytest

from flows.profile import Retry, RunProfile, check_profile, read_profile
from pipeline.base.params import read_yaml
from sentfold.data.tables import DataError
from sentfold.errors import ParameterError
from tests.flows.checkout import SOURCE


def test_the_committed_profile_names_stages_of_dvc_yaml_and_lets_one_memory_heavy_stage_run() -> None:
    profile = read_profile(SOURCE, None)
    check_profile(profile, read_yaml(SOURCE / "dvc.yaml")["stages"], where="run.yaml")
    assert profile.kinds["memory"].at_once == 1
    assert profile.kinds_of("suites/paper/dvc.yaml:embed@sts12-minilm") == ("memory",)
    assert profile.kinds_of("report") == ()


def test_no_stage_depends_on_the_profile() -> None:
    assert "run.yaml" not in (SOURCE / "dvc.yaml").read_text()


def test_without_a_file_there_are_no_limits(tmp_path: Path) -> None:
    assert read_profile(tmp_path, None) == RunProfile()


def test_another_file_is_read_where_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("kinds: {}\n")
    (tmp_path / "large.yaml").write_text("retries: {download: {attempts: 7, delay: 0.5}}\n")
    assert read_profile(tmp_path, Path("large.yaml")).retries.download == Retry(attempts=7, delay=0.5)


def test_a_profile_of_holes_is_refused_unread(tmp_path: Path) -> None:
    (tmp_path / "holes.yaml").touch()
    os.truncate(tmp_path / "holes.yaml", 1 << 40)
    with pytest.raises(DataError, match="never written"):
        read_profile(tmp_path, Path("holes.yaml"))


@pytest.mark.parametrize("name", ["runn.yaml", "."])
def test_a_profile_that_is_no_file_is_refused_with_what_to_do(tmp_path: Path, name: str) -> None:
    with pytest.raises(ParameterError, match="there is no run profile") as caught:
        read_profile(tmp_path, Path(name))
    assert caught.value.where == "--profile"
    assert "leave out --profile" in caught.value.remedy


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("kind: {}", "kind"),
        ("kinds: {memory: {stages: [embed], at_once: 0}}", "kinds.memory.at_once"),
        ("kinds: {memory: {stages: [embed]}}", "kinds.memory.at_once"),
        ("retries: {download: {attempts: 1000, delay: 1}}", "retries.download.attempts"),
    ],
)
def test_a_profile_with_a_bad_key_or_value_is_refused_by_its_key(tmp_path: Path, text: str, key: str) -> None:
    (tmp_path / "run.yaml").write_text(text)
    with pytest.raises(ParameterError) as caught:
        read_profile(tmp_path, None)
    assert caught.value.where == f"run.yaml.{key}"


def test_a_kind_that_names_no_stage_is_refused_since_it_would_limit_nothing(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("kinds: {memory: {stages: [embed, eigensolv], at_once: 1}}")
    with pytest.raises(ParameterError, match="names no stage") as caught:
        check_profile(read_profile(tmp_path, None), {"embed", "report", "eigensolve"}, where="run.yaml")
    assert caught.value.got == "eigensolv"


def test_a_list_of_kinds_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("kinds: [a]\n")
    with pytest.raises(ParameterError):
        read_profile(tmp_path, None)
