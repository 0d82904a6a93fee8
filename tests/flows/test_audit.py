from pathlib import Path

import pytest
from prefect.client.orchestration import get_client
from prefect.context import refresh_global_settings_context

from flows.flow import audit
from flows.server import Server
from sentfold.errors import RunError

# Stands where `python -m pipeline` looks first; the real command has tests of its own.
AUDIT = """
import sys
print("audited", *sys.argv[1:])
print("one number is wrong", file=sys.stderr)
sys.exit(len(sys.argv) - 4)  # as many as it has options
"""


@pytest.fixture
def checkout(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline/__main__.py").write_text(AUDIT)
    monkeypatch.chdir(tmp_path)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    refresh_global_settings_context()
    return tmp_path


@pytest.mark.slow
def test_an_audit_that_finds_nothing_leaves_what_it_printed_as_an_artifact(checkout: Path) -> None:
    audit(suite="quick")
    with get_client(sync_client=True) as client:
        found = [artifact for artifact in client.read_artifacts() if artifact.key == "sentfold-quick-audit"]
    assert "audited audit --suite quick" in str(found[-1].data)
    assert "one number is wrong" in str(found[-1].data), "both channels"


@pytest.mark.slow
def test_an_audit_that_finds_something_fails_the_run_with_its_last_lines(checkout: Path) -> None:
    with pytest.raises(RunError, match="ended with exit code 1") as caught:
        audit(suite="quick", options=["--strict"])
    assert "audited audit --suite quick --strict" in caught.value.got
    assert caught.value.where.endswith("pipeline audit --suite quick --strict")
