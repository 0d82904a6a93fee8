"""What of the environment reaches a stage, and what travels to workers."""

import pytest

from flows.environment import flow_environment, stage_environment, travelling

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
