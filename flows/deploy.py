"""Register the deployments of prefect.yaml with a Prefect server, and what they need there."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import typer
import yaml

from flows.server import CONFIGURED, asks_for_password, configured_url
from pipeline.base.params import parse_yaml
from sentfold.errors import RunError

PREFECT_FILE = Path("prefect.yaml")

AUTOMATION = "sentfold: a run whose process is gone is crashed"
NOTIFICATION = "sentfold: tell of a run that failed"
FLOWS = ["sentfold", "sentfold-append", "sentfold-audit"]

# What tells a dead run from a long one. Prefect allows no shorter interval between heartbeats; three may be missed.
HEARTBEAT_SECONDS = 30
SILENCE = timedelta(seconds=3 * HEARTBEAT_SECONDS)


def deploy(root: Path, prefect_file: Path = PREFECT_FILE, notify: str | None = None) -> str:
    """Register every deployment of `root / prefect_file`, its work pools, and the automation for dead runs.

    notify  a notification block of the server, TYPE/NAME, that is told of each run that fails or crashes

    Done again, it brings what is in the file to what the file says now. What was taken out, a schedule too, stays on
    the server, as with `prefect deploy`. Returns a text for the user: what was registered, and what starts it.
    Raises RunError if no server is configured, it does not answer, or it refuses the file.
    """
    root = root.absolute()
    deployments = _read_deployments(root / prefect_file)
    require_server()
    pools = sorted({deployment["work_pool"]["name"] for deployment in deployments})
    for pool in pools:
        _set_pool(pool, root)
    command = [sys.executable, "-m", "flows.launch", "prefect", "--no-prompt", "deploy", "--all"]
    command += ["--prefect-file", str(prefect_file)]
    done = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, "COLUMNS": "200"},
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
    if notify:
        _ensure_notification(notify)
    names = [f"{_flow_name(deployment)}/{deployment['name']}" for deployment in deployments]
    workers = [f"next: prefect worker start --pool {pool}" for pool in pools]
    return "\n".join([*(f"deployed {name}" for name in names), *workers, f"now:  prefect deployment run {names[0]}"])


def require_server() -> None:
    """Raise RunError if no Prefect server is configured, or if it does not answer; warn of one that anybody may use."""
    if url := configured_url():
        if not asks_for_password(url):
            typer.echo(
                f"warning: {url} asks for no password: whoever reaches it can have the worker run any command; "
                "read flows/examples/prefect.sh before you start the server",
                err=True,
            )
    else:
        raise RunError(
            "no Prefect server is configured",
            where=CONFIGURED,
            expected="the address of a running server's API",
            state="nothing was registered",
            remedy="start one: . flows/examples/prefect.sh && python -m flows.launch prefect server start; then read "
            "that file here, and deploy again",
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


def job_template(root: Path) -> dict[str, Any]:
    """What a worker starts for every run. There are no variables, so who asks for a run chooses no part of it.

    There is no key `env` either: Prefect merges the variables that come with a run into it, whatever is declared.
    """
    heartbeat = f"PREFECT_FLOWS_HEARTBEAT_FREQUENCY={HEARTBEAT_SECONDS}"
    command = shlex.join(["env", heartbeat, sys.executable, "-m", "flows.launch", "prefect.engine"])
    return {
        "job_configuration": {"command": command, "working_dir": str(root)},
        "variables": {"type": "object", "properties": {}, "additionalProperties": False},
    }


def _set_pool(name: str, root: Path) -> None:
    """Create a work pool, or give one that exists the template of today."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
    from prefect.exceptions import ObjectNotFound

    template = job_template(root)
    with get_client(sync_client=True) as client:
        try:
            if client.read_work_pool(name).type == "process":  # another kind starts no command on this machine
                client.update_work_pool(name, WorkPoolUpdate(base_job_template=template))
        except ObjectNotFound:
            client.create_work_pool(WorkPoolCreate(name=name, type="process", base_job_template=template))


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
            match_related={"prefect.resource.role": "flow", "prefect.resource.name": FLOWS},
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


def _ensure_notification(block: str) -> None:
    from prefect.automations import Automation
    from prefect.client.orchestration import get_client
    from prefect.events.actions import SendNotification
    from prefect.events.schemas.automations import EventTrigger, Posture
    from prefect.exceptions import ObjectNotFound

    kind, _, name = block.partition("/")
    try:
        with get_client(sync_client=True) as client:
            document = client.read_block_document_by_name(name, kind).id
    except ObjectNotFound:
        raise RunError(
            f"the Prefect server has no block '{block}'",
            where="--notify",
            expected="TYPE/NAME of a notification block, such as slack-webhook/team",
            state="the deployments are registered; nobody is told of failures",
            remedy="`prefect block ls` lists the blocks; the server's pages make one",
        ) from None
    text = "{{ flow_run.name }}: {{ flow_run.state.name }}. {{ flow_run.state.message }}"
    wanted = Automation(
        name=NOTIFICATION,
        description=f"Tells {block}.",
        trigger=EventTrigger(
            expect={"prefect.flow-run.Failed", "prefect.flow-run.Crashed"},
            match={"prefect.resource.id": "prefect.flow-run.*"},
            match_related={"prefect.resource.role": "flow", "prefect.resource.name": FLOWS},
            posture=Posture.Reactive,
            threshold=1,
        ),
        actions=[SendNotification(block_document_id=document, subject="sentfold: a run failed", body=text)],
    )
    _replace_automation(wanted)


def _replace_automation(wanted: Any) -> None:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        found = client.read_automations_by_name(wanted.name)
    if found:
        wanted.id = found[0].id
        wanted.update()
    else:
        wanted.create()
