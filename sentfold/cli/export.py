"""Write your encoder and a space as one folder that SentenceTransformer loads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sentfold.numeric_profile import use_profile


def command(
    space: Annotated[Path, typer.Argument(help="The folder that `sentfold decide` or `sentfold compress` wrote.")],
    encoder: Annotated[
        str, typer.Option(help="The encoder: all-MiniLM-L6-v2, a model's folder, an installed package.")
    ],
    to: Annotated[Path, typer.Option(help="The folder to write.")],
) -> None:
    """Write the folder, load it again, and compare its vectors with the library's."""
    use_profile()
    from sentfold.decision.export import export_space

    apart = export_space(space, encoder, to)
    print(f"{to}: SentenceTransformer loads it; its vectors equal the library's within {apart:.1g}")
