"""Fold a large file of vectors or texts: embed landmarks, map every other row by its neighbours among the landmarks."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sentfold.cli.inputs import naming_options, print_notes
from sentfold.errors import RunError
from sentfold.numeric_profile import use_profile

if TYPE_CHECKING:
    from sentfold.fold.fold import FoldSettings

ROOT = Path(__file__).parents[2]  # the checkout, if the library is not installed from a wheel


def command(
    source: Annotated[Path, typer.Argument(help="A Parquet file, or a folder of them, with a column vector or text.")],
    target: Annotated[Path, typer.Argument(help="The folder to write; the answer is the dataset `folded` in it.")],
    encoder: Annotated[
        str | None, typer.Option(help="Of texts: the folder of a model, or an installed package that holds one.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, max=4096, help="Texts in a batch of the encoder.")] = 64,
    landmarks: Annotated[int, typer.Option(help="Rows that are embedded; all others are mapped by them.")] = 10_000,
    selection: Annotated[str, typer.Option(help="Choice of landmarks: random, or kmeans++ for spread.")] = "random",
    neighbors: Annotated[int, typer.Option(help="Nearest landmarks that a row is rebuilt from.")] = 30,
    components: Annotated[int, typer.Option(help="Dimensions of the answer.")] = 128,
    regularization: Annotated[float, typer.Option(help="Of the weights, as a fraction of the Gram trace.")] = 1e-3,
    scaling: Annotated[str, typer.Option(help="Of each dimension: unit, quarter or half.")] = "unit",
    seed: Annotated[int, typer.Option(help="Of the choice of landmarks, and of the eigensolver's start.")] = 0,
    tolerance: Annotated[float, typer.Option(help="Of the eigensolver's residuals.")] = 1e-3,
    partition_rows: Annotated[int, typer.Option(min=1, help="Rows of a partition, which is written at once.")] = 16_384,
    threads: Annotated[int, typer.Option(min=1, help="Threads of this process, without Dask.")] = 2,
    workers: Annotated[int, typer.Option(min=0, help="Processes of a Dask cluster on this machine; 0: no Dask.")] = 0,
    address: Annotated[str | None, typer.Option(help="Of a Dask scheduler that is running.")] = None,
    remote: Annotated[
        str | None, typer.Option(help="A DVC remote, if the workers of that scheduler share no folder with SOURCE.")
    ] = None,
    memory_limit: Annotated[str, typer.Option(help="Of each Dask process that is started here.")] = "2GB",
) -> None:
    """Write the coordinates of every row of SOURCE, in the order of the rows. After a kill, the same call continues.

    The bytes do not depend on threads, workers, address or remote.
    """
    use_profile()  # before numpy is imported, so that other processors give the same bytes
    with naming_options():
        settings = make_settings(
            manifold={
                "landmarks": landmarks,
                "selection": selection,
                "neighbors": neighbors,
                "components": components,
                "regularization": regularization,
                "scaling": scaling,
                "seed": seed,
            },
            tolerance=tolerance,
            encoder=encoder,
            batch_size=batch_size,
            rows=partition_rows,
        )
    if encoder:
        from sentfold.decision.encoders import learned_notes, prompt_notes

        print_notes([*learned_notes(encoder), *prompt_notes(encoder)])
    if workers or address or remote:
        cluster = {"address": address, "workers": workers, "memory_limit": memory_limit, "remote": remote}
        run_on_dask(source, target, settings, cluster)
    from sentfold.fold.fold import InProcess, fold_files

    with naming_options("landmarks", "neighbors", "components", "regularization", "tolerance"):
        summary = fold_files(source, target, settings, executor=InProcess(threads))
    print(f"{target / 'folded'}: {summary}")


def make_settings(
    *, manifold: dict[str, Any], tolerance: float, encoder: str | None, batch_size: int, rows: int
) -> FoldSettings:
    """The settings of a fold, checked. Raises ParameterError that names the first wrong one, and EncoderError."""
    from sentfold.fold.fold import FoldSettings
    from sentfold.fold.texts import find_text_encoder
    from sentfold.settings import validate

    found = find_text_encoder(encoder, batch_size=batch_size) if encoder else None
    content = {
        "encoder": found.model_dump() if found else None,
        "manifold": manifold,
        "solver": {"tolerance": tolerance, "null_tolerance": 1e-10, "seed": manifold["seed"]},
        "rows": rows,
    }
    return validate(FoldSettings, content, where="sentfold fold")


def run_on_dask(source: Path, target: Path, settings: FoldSettings, cluster: dict[str, Any]) -> None:
    """Replace this process by the same fold on Dask workers, whose code is part of a checkout. Raises RunError."""
    if not (ROOT / "flows" / "dask_fold.py").is_file():
        raise RunError(
            "Dask workers need a checkout of the project",
            where=str(ROOT),
            expected="a checkout with flows/, installed with `pip install --editable .[pipeline]`",
            state="nothing was run",
            remedy="fold in one process: without --workers, --address and --remote",
        )
    order = {
        "source": str(source.absolute()),
        "target": str(target.absolute()),
        "settings": settings.model_dump(),
        **cluster,
    }
    os.environ.pop("PYTHONSAFEPATH", None)  # flows is found in the folder of the checkout alone
    os.chdir(ROOT)
    os.execv(sys.executable, [sys.executable, "-m", "flows.launch", "flows", "fold", json.dumps(order)])
