"""Register the deployments of prefect.yaml with a Prefect server, and what they need there."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import typer
import yaml

from flows.server import CONFIGURED, configured_url
from pipeline.base.params import parse_yaml
from sentfold.errors import RunError

PREFECT_FILE = Path("prefect.yaml")

# Read by the pull step of prefect.yaml: a worker may be started anywhere.
CHECKOUT_VARIABLE = "SENTFOLD_CHECKOUT"

POOL_TYPE = "process"

AUTOMATION = "sentfold: a run whose process is gone is crashed"

# Prefect allows no shorter interval between heartbeats than 30 s (set in prefect.yaml); three may be missed.
SILENCE = timedelta(seconds=90)


@dataclass(frozen=True)
class Deployed:
    """What was registered: deployments as `prefect deployment run` takes them, and the pools of their workers."""

    names: tuple[str, ...]
    pools: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(
            [
                *(f"deployed {name}" for name in self.names),
                *(f"next: prefect worker start --pool {pool}" for pool in self.pools),
                f"now:  prefect deployment run {self.names[0]}",
            ]
        )


def deploy(root: Path, prefect_file: Path = PREFECT_FILE) -> Deployed:
    """Register every deployment of `root / prefect_file`, its work pools, and the automation for dead runs.

    Done again, it brings all of them to what the file says now. Raises RunError if no server is
    configured, it does not answer, or it refuses the file.
    """
    root = root.absolute()
    deployments = _read_deployments(root / prefect_file)
    require_server()
    pools = tuple(sorted({deployment["work_pool"]["name"] for deployment in deployments}))
    for pool in pools:
        _ensure_pool(pool)
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all", "--prefect-file", str(prefect_file)]
    done = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, CHECKOUT_VARIABLE: str(root), "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RunError(
            "Prefect did not take the deployments",
            where=str(prefect_file),
            got="\n".join(done.stdout.strip().splitlines()[-15:]),
            state="those before the one it refused are registered",
            remedy="correct the file and deploy again",
        )
    _ensure_automation()
    return Deployed(tuple(f"{_flow_name(deployment)}/{deployment['name']}" for deployment in deployments), pools)


def require_server() -> None:
    """Raise RunError if no Prefect server is configured, or if it does not answer."""
    if configured_url() is None:
        raise RunError(
            "no Prefect server is configured",
            where=CONFIGURED,
            expected="the address of a running server's API",
            state="nothing was registered",
            remedy="prefect server start; then, elsewhere: "
            "prefect config set PREFECT_API_URL=http://127.0.0.1:4200/api",
        )


def _read_deployments(path: Path) -> list[dict[str, Any]]:
    try:
        deployments = parse_yaml(path.read_bytes())["deployments"]
        if all(deployment["name"] and deployment["work_pool"]["name"] for deployment in deployments) and deployments:
            return list(deployments)
        got = "none"
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        got = " ".join(f"{type(error).__name__}: {error}".split())
    raise RunError(
        "there is no file of deployments here",
        where=str(path),
        expected="deployments, each with a name and a work pool",
        got=got,
        state="nothing was registered",
        remedy="run from the root of the checkout, or name another file",
    )


def _flow_name(deployment: dict[str, Any]) -> str:
    from prefect.flows import load_flow_from_entrypoint

    return str(load_flow_from_entrypoint(deployment["entrypoint"]).name)


def _ensure_pool(name: str) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import ObjectNotFound
    from prefect.workers.process import ProcessWorker

    with get_client(sync_client=True) as client:
        try:
            client.read_work_pool(name)
        except ObjectNotFound:
            template = ProcessWorker.get_default_base_job_template()
            client.create_work_pool(WorkPoolCreate(name=name, type=POOL_TYPE, base_job_template=template))
            typer.echo(f"created work pool {name}")


def _ensure_automation() -> None:
    # A flow that is killed together with its worker can tell nobody: its run would say "Running" for
    # ever. This only corrects the pages; the next run waits for no such thing, as the lock of the
    # checkout is free the moment its holder is gone.
    from prefect.automations import Automation
    from prefect.client.schemas.objects import StateType
    from prefect.events.actions import ChangeFlowRunState
    from prefect.events.schemas.automations import EventTrigger, Posture

    ends = {f"prefect.flow-run.{state}" for state in ("Completed", "Failed", "Cancelled", "Crashed")}
    wanted = Automation(
        name=AUTOMATION,
        description=f"No heartbeat for {SILENCE.seconds} s.",
        trigger=EventTrigger(
            after={"prefect.flow-run.heartbeat"},
            expect={"prefect.flow-run.heartbeat", *ends},
            match={"prefect.resource.id": "prefect.flow-run.*"},
            match_related={"prefect.resource.role": "flow", "prefect.resource.name": ["sentfold", "sentfold-audit"]},
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=SILENCE,
        ),
        actions=[
            ChangeFlowRunState(
                name="Crashed", state=StateType.CRASHED, message="no heartbeat: its process is gone", force=False
            )
        ],
    )
    _replace_automation(wanted)


def _replace_automation(wanted: Any) -> None:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        found = client.read_automations_by_name(AUTOMATION)
    if found:
        wanted.id = found[0].id
        wanted.update()
    else:
        wanted.create()
