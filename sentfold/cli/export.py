"""Write your encoder and a space as one folder that SentenceTransformer loads."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from sentfold.cli.inputs import WORDS, Words, print_notes, refuse_target_in_model
from sentfold.numeric_profile import use_profile


def command(
    space: Annotated[Path, typer.Argument(help="The folder that `sentfold decide` or `sentfold compress` wrote.")],
    encoder: Annotated[
        str, typer.Option(help="The encoder: all-MiniLM-L6-v2, a model's folder, a package, a method as sif.")
    ],
    to: Annotated[Path, typer.Option(help="The folder to write.")],
    words: Words = WORDS,
) -> None:
    """Write the folder, load it again, and compare its vectors with the library's."""
    use_profile()
    from sentfold.decision.encoders import unnamed_encoder
    from sentfold.decision.export import export_space
    from sentfold.decision.spaces import Unchanged, load_space

    refuse_target_in_model(to, encoder)
    apart = export_space(space, encoder, to, words=words)
    print_notes(unnamed_encoder(space, encoder))
    checked = find_spec("sentence_transformers") is not None
    own = '"sentfold.' in (to / "modules.json").read_text(encoding="utf-8")  # a module of sentfold's, and no plain one
    how = "SentenceTransformer(..., trust_remote_code=True)" if own else "SentenceTransformer"
    loads = f"{how} loads it" if checked else "SentenceTransformer is not installed here to load it"
    if isinstance(load_space(space), Unchanged):
        print(f"{space} has no map: {to} holds the encoder alone, and its vectors are not made smaller")
    print(f"{to}: {loads}; its vectors equal the library's within {apart:.1g}")
