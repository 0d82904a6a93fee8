"""What of the environment reaches a stage, and what travels to workers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows.plan import RunRequest, make_plan
from pipeline.environment import (
    audit_environment,
    flow_environment,
    stage_environment,
    travelling,
)
from sentfold.errors import RunError
from sentfold.suggestions import message_of, refuse_unreadable_addresses

ROOT = Path(__file__).parents[2]
SECRETS = ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "DVC_STUDIO_TOKEN", "HUGGING_FACE_HUB_TOKEN", "SSH_AUTH_SOCK")


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*SECRETS, "HF_TOKEN", "PREFECT_API_AUTH_STRING", "https_proxy", "SENTFOLD_MIRROR"):
        monkeypatch.setenv(name, "hush")


def test_a_stage_sees_no_secret_of_other_programs_and_all_that_a_download_needs() -> None:
    seen = stage_environment()
    assert not seen.keys() & {*SECRETS, "PREFECT_API_AUTH_STRING"}
    assert {"PATH", "HOME", "HF_TOKEN", "https_proxy", "SENTFOLD_MIRROR"} <= seen.keys()
    assert not flow_environment().keys() & set(SECRETS) and "PREFECT_API_AUTH_STRING" in flow_environment()


def test_a_token_travels_encrypted_or_not_at_all() -> None:
    assert "HF_TOKEN" in travelling(encrypted=True)
    assert not {"HF_TOKEN", "https_proxy"} & travelling(encrypted=False).keys()
    assert "SENTFOLD_MIRROR" in travelling(encrypted=False)
    assert stage_environment({"SENTFOLD_MIRROR": "/there"})["SENTFOLD_MIRROR"] == "/there"


@pytest.mark.parametrize("name", ["HF_ENDPOINT", "HTTPS_PROXY", "all_proxy"])
@pytest.mark.parametrize(
    "address",
    [
        "me:hushhush@hub.example", "http://me:hushhush#1@127.0.0.1:9", "http://me:hushhush/1@127.0.0.1:9",
        "http://me:hushhush?1@127.0.0.1:9", "https://me:hushhush@hub.example/?x=1",
        "https://me:hush'hush@hub.example", "https://me:hush hush@hub.example", "http://me:hush\\hush@127.0.0.1:9",
    ],
)  # fmt: skip
def test_an_address_whose_password_no_library_finds_is_refused_and_not_shown(
    name: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, address)
    with pytest.raises(RunError, match="cannot be read") as refused:
        refuse_unreadable_addresses()
    assert name in message_of(refused.value) and "hush" not in message_of(refused.value)
    assert "***" not in message_of(refused.value)  # the form that is asked for is no address
    monkeypatch.setenv("RSYNC_PROXY", "me:hush@proxy:3128")  # as rsync wants it
    for sound in (
        "http://me:hush@127.0.0.1:9",
        "socks5://me:a%23b@host:1080/",
        "proxy:3128",
        "http://host",
        "https://me:a.b_c~d-e@hub.example/mirror/a",
    ):
        monkeypatch.setenv(name, sound)
        refuse_unreadable_addresses()


def test_a_download_with_such_an_address_prints_and_records_no_password(tmp_path: Path) -> None:
    environment = {**os.environ, "HF_ENDPOINT": "https://me:hushhush#1@hub.example", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", "download", "stsb", "--suite", "paper"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "the variable HF_ENDPOINT" in done.stderr
    assert "hushhush" not in done.stdout + done.stderr
    assert not any(b"hushhush" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_of_git_s_settings_a_stage_sees_whose_checkouts_are_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"http.extraheader": "Authorization: hush", "safe.directory": "/here", "Safe.Directory": "/there"}
    monkeypatch.setenv("GIT_CONFIG_COUNT", "3")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'http.extraheader=hush'")
    for number, (key, value) in enumerate(settings.items()):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{number}", key)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{number}", value)
    assert {name: value for name, value in stage_environment().items() if name.startswith("GIT_CONFIG_")} == {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "/here",
        "GIT_CONFIG_KEY_1": "Safe.Directory",
        "GIT_CONFIG_VALUE_1": "/there",
    }


def test_a_stage_that_an_audit_runs_again_has_no_token_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not audit_environment().keys() & {*SECRETS, "PREFECT_API_AUTH_STRING", "HF_TOKEN"}
    assert {"PATH", "HOME", "https_proxy", "SENTFOLD_MIRROR"} <= audit_environment().keys()
    monkeypatch.setenv("SENTFOLD_MIRROR", ".")  # a stage runs again in another folder
    assert audit_environment()["SENTFOLD_MIRROR"] == str(Path.cwd())


def test_a_password_in_an_address_reaches_no_strangers_stage_and_travels_encrypted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("https_proxy", "http://me:hush@proxy:3128")
    monkeypatch.setenv("HF_ENDPOINT", "https://me:hush@hub.example/api")
    monkeypatch.setenv("HTTP_PROXY", "me:hush@proxy:3128")
    monkeypatch.setenv("ALL_PROXY", "http://me:hu/sh@proxy:3128")
    monkeypatch.setenv("HF_HUB_TOKEN", "hush")
    assert not {"https_proxy", "HTTP_PROXY", "ALL_PROXY", "HF_ENDPOINT", "HF_HUB_TOKEN"} & audit_environment().keys()
    assert "HF_ENDPOINT" in travelling(encrypted=True) and "HF_ENDPOINT" not in travelling(encrypted=False)


def test_the_checks_before_a_run_see_no_secret(tmp_path: Path) -> None:
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline/__main__.py").write_text("import os, sys; sys.exit(str(dict(os.environ)))")
    with pytest.raises(RunError, match="cannot be run") as caught:
        make_plan(RunRequest(), tmp_path)
    assert "'HOME'" in caught.value.got
    assert not [name for name in SECRETS if name in caught.value.got]
