"""A real Prefect server, and a repository in which every stage has run once."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from flows.server import DATABASE, Server, prefect_server
from tests.flows.checkout import SOURCE, Checkout, create_checkout


@pytest.fixture(scope="session")
def prefect_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Prefect's own folder, so that no test reads or writes the user's."""
    home = tmp_path_factory.mktemp("prefect")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if re.match("PREFECT_|SENTFOLD_", name)]:
            patch.delenv(name)
        patch.setenv("PREFECT_HOME", str(home))
        yield home


@pytest.fixture(scope="session")
def server(prefect_home: Path) -> Iterator[Server]:
    """A running Prefect server, shared by the tests that are not about having none."""
    with prefect_server(prefect_home) as running:
        yield running


@pytest.fixture(scope="session")
def serverless(prefect_home: Path) -> dict[str, str]:
    """An environment in which no Prefect server is configured."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    environment.pop("PREFECT_API_URL", None)
    return environment


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory, serverless: dict[str, str]) -> Path:
    """A repository in which the suite quick is up to date; copied, never changed."""
    checkout = create_checkout(tmp_path_factory.mktemp("template") / "checkout", serverless)
    checkout.repro()
    checkout.forget()
    return checkout.root


@pytest.fixture
def environment(serverless: dict[str, str], server: Server) -> dict[str, str]:
    """An environment that points at the shared Prefect server."""
    return {**serverless, **server.environment}


@pytest.fixture
def serverless_finished(finished: Checkout, serverless: dict[str, str], server: Server, prefect_home: Path) -> Checkout:
    """`finished` with no server configured, and Prefect's database already created, which takes 10 s."""
    with (
        closing(sqlite3.connect(prefect_home / DATABASE)) as source,
        closing(sqlite3.connect(finished.root / DATABASE)) as target,
    ):
        source.backup(target)
    finished.environment = serverless
    return finished


@pytest.fixture
def fresh(tmp_path: Path, environment: dict[str, str]) -> Iterator[Checkout]:
    """A repository in which nothing has run; no process of it is left behind."""
    checkout = create_checkout(tmp_path / "fresh", environment)
    yield checkout
    checkout.end()


@pytest.fixture
def finished(tmp_path: Path, template: Path, environment: dict[str, str]) -> Iterator[Checkout]:
    """A repository in which the suite quick is up to date; no process of it is left behind."""
    root = tmp_path / "finished"
    shutil.copytree(template, root, symlinks=True)
    checkout = Checkout(root, environment)
    yield checkout
    checkout.end()
