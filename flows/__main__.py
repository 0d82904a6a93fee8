"""The command line of flows: `python -m flows run|deploy|fold`, which the command `sentfold` executes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from sentfold.cli.checkout import program_name
from sentfold.errors import ParameterError, SentfoldError
from sentfold.libraries import prepare_libraries
from sentfold.suggestions import message_of, plain_error, prepare_streams

app = typer.Typer(
    name="sentfold", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
)


def check_name(name: str) -> str:
    """A name from the command line; names become paths. Raises ParameterError."""
    from sentfold.settings import check_slug

    try:
        return check_slug(name)
    except ValueError as error:
        raise ParameterError("a name cannot be used", where="the command line", got=str(error)) from None


SuiteOption = Annotated[
    str, typer.Option("--suite", "-s", callback=check_name, help="quick, or a folder's name in suites/.")
]


JobsOption = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Stages at a time, where they are independent.")]
TargetOption = Annotated[
    list[str] | None,
    typer.Option("--target", "-t", help="A stage, a group like `embed`, or an output's path; and all it needs."),
]
ProfileOption = Annotated[str | None, typer.Option(help="Limits and retries; run.yaml if none is named.")]
AddressOption = Annotated[str | None, typer.Option(help="Of a Dask scheduler, whose workers make the stages.")]
RemoteOption = Annotated[str | None, typer.Option(help="The DVC remote that the workers share with this checkout.")]


@app.command()
def run(
    suite: SuiteOption = "quick",
    jobs: JobsOption = 2,
    target: TargetOption = None,
    profile: ProfileOption = None,
    address: AddressOption = None,
    remote: RemoteOption = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for a run that holds the checkout.")] = True,
) -> None:
    """Run the stale stages of a suite as a Prefect flow, independent ones in parallel; print the suite's table."""
    from flows.plan import RunRequest
    from flows.run import run as run_suite

    request = RunRequest(suite, jobs, tuple(target or ()), profile, address, remote)
    raise typer.Exit(run_suite(request, Path.cwd(), wait=wait))


@app.command(hidden=True)
def flow(
    parent: Annotated[int, typer.Argument(help="The process that this one ends with.")],
    request: Annotated[str, typer.Argument(help="JSON: a RunRequest.")],
) -> None:
    """Run the flow in this process, for `run`, which has checked the suite."""
    from flows.processes import die_with_parent

    die_with_parent()
    if os.getppid() == parent:
        from flows.flow import sentfold

        sentfold(**json.loads(request), check=False)


@app.command()
def deploy(
    prefect_file: Annotated[Path, typer.Option(help="Deployments, from the checkout's root.")] = Path("prefect.yaml"),
    notify: Annotated[str | None, typer.Option(help="TYPE/NAME of a block that is told of runs that fail.")] = None,
) -> None:
    """Register the deployments of prefect.yaml, with pool and automation, at the configured Prefect server."""
    from flows.deploy import deploy as register

    typer.echo(register(Path.cwd(), prefect_file, notify))


@app.command(hidden=True)
def fold(order: Annotated[str, typer.Argument(help="JSON, as sentfold/cli/fold.py writes it.")]) -> None:
    """Fold a large file on Dask workers; `sentfold fold --workers N` executes this."""
    from flows.dask_fold import fold_by_order
    from pipeline.environment import flow_environment, remote_environment

    remote = remote_environment() if json.loads(order).get("remote") else {}
    for name in os.environ.keys() - flow_environment().keys() - remote.keys() - {"PYTHONSAFEPATH"}:
        del os.environ[name]  # workers inherit the rest; flows/launch.py says why PYTHONSAFEPATH
    typer.echo(fold_by_order(order))


def main() -> None:
    """Entry point: an error of sentfold is printed without a traceback; exit code 2."""
    try:
        prepare_streams()
        prepare_libraries()
        app(prog_name=program_name("flows"))
    except (SentfoldError, OSError) as error:
        if (plain := plain_error(error)) is None:
            raise
        print(message_of(plain), file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
