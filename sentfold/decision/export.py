"""An encoder and a space as one folder that SentenceTransformer loads, with a card that says what it is worth."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sentfold.decision.spaces import ARRAYS, LinearSpace, Space, Unchanged, load_space, space_widths
from sentfold.errors import ArtifactError, EncoderError, ParameterError, SolverError, first_line
from sentfold.files import sha256_of, write_text

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

EXACT = 1e-5  # of the largest number, between the folder's vectors and the library's
PROBES = ("One sentence.", "Another sentence, which is longer than the first one.", "", "2 + 2 = 4", "Ein Satz.")


def export_space(folder: Path, encoder: str, target: Path, *, texts: Sequence[str] = PROBES) -> float:
    """Write a folder that holds an encoder with a space behind it, and a model card; return the largest difference.

    folder   that Decision.save or Compression.save wrote: the space, and verdict.json for the card
    encoder  the sentence transformer whose vectors the space was fitted on: a name, a folder, a package
    texts    on which the vectors of the folder, loaded again, must equal those of the library to within 1e-5 of the
             largest number
    A linear map becomes a Dense module, so that SentenceTransformer(target) needs nothing else. Other spaces become
    sentfold.decision.module.SpaceModule, which is imported from the installed library, with trust_remote_code=True.
    Raises ParameterError if the target is not empty or the widths differ, ArtifactError, EncoderError, SolverError.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ParameterError("the target is not empty", where=str(target), expected="a new folder")
    from sentfold.encoders.model_folder import refuse_unsafe

    space = load_space(folder)
    model, digests = _load(encoder)
    width, own = space_widths(space)[0], int(model.get_embedding_dimension() or 0)
    if width not in (None, own):
        raise ParameterError(
            "the space was fitted on vectors of another encoder",
            where=str(folder),
            expected=f"{own} dimensions, as {encoder} has",
            got=f"{width}",
        )
    wanted = space.transform(_encode(model, texts))
    partial = target.with_name(f".{target.name}.partial")
    try:
        _remove(partial)
        for module in _modules(space):
            model.append(module)
        model.save_pretrained(str(partial), create_model_card=False)
        write_text(partial / "README.md", model_card(folder, space, encoder, digests))
        refuse_unsafe(encoder, partial)  # an encoder's `auto_map` would run once the folder's own module is trusted
        for file in partial.rglob("*.safetensors"):  # safetensors hides its files from all but their owner
            shutil.copymode(partial / "README.md", file)
        apart = _largest_difference(partial, space, texts, wanted)
        if target.exists():
            target.rmdir()
        partial.rename(target)
    except OSError as error:
        raise ArtifactError("cannot write a folder", where=str(target), got=str(error)) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return apart


def _remove(partial: Path) -> None:
    """Remove what a killed export left: its modules would become part of the folder. A link is not followed."""
    if partial.is_symlink():
        partial.unlink()
    shutil.rmtree(partial, ignore_errors=True)


def _load(encoder: str) -> tuple[SentenceTransformer, dict[str, str]]:
    """The model and the sha256 of its files."""
    from sentfold.encoders.model_folder import ModelSource
    from sentfold.fold.texts import find_text_encoder, load_transformer

    found = find_text_encoder(encoder)
    if found.kind != "transformer":
        raise EncoderError("only a sentence transformer can be exported", where=encoder, got=found.kind)
    source = ModelSource(folder=found.folder, package=found.package, sha256=found.sha256)
    return load_transformer(encoder, source).model, found.sha256


def _modules(space: Space) -> list[Any]:
    """What is put behind the encoder."""
    import torch
    from sentence_transformers.base.modules import Dense

    from sentfold.decision.module import SpaceModule

    if isinstance(space, Unchanged):
        return []
    if not isinstance(space, LinearSpace):
        return [SpaceModule(space)]
    matrix, mean = space.map.matrix, space.map.mean
    weight, bias = (
        torch.from_numpy(np.ascontiguousarray(part, dtype=np.float32)) for part in (matrix.T, -mean @ matrix)
    )
    return [Dense(matrix.shape[0], matrix.shape[1], activation_function=None, init_weight=weight, init_bias=bias)]


def _encode(model: SentenceTransformer, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    return np.asarray(model.encode(list(texts), show_progress_bar=False), dtype=np.float32)


def _largest_difference(folder: Path, space: Space, texts: Sequence[str], wanted: npt.NDArray[np.float32]) -> float:
    """Between the vectors of the folder, loaded again, and those wanted. Raises SolverError above EXACT."""
    from sentence_transformers import SentenceTransformer

    trusted = not isinstance(space, LinearSpace | Unchanged)
    again = SentenceTransformer(str(folder), device="cpu", local_files_only=True, trust_remote_code=trusted)
    apart = float(np.abs(_encode(again, texts) - wanted).max() / max(1.0, float(np.abs(wanted).max())))
    if not apart <= EXACT:
        raise SolverError(
            "the exported folder gives other vectors than the library",
            where=str(folder),
            expected=f"differences of at most {EXACT:g} of the largest number",
            got=f"{apart:.2g}",
        )
    return apart


# --- the card -------------------------------------------------------------------------------------------


def model_card(folder: Path, space: Space, encoder: str, digests: dict[str, str]) -> str:
    """README.md: what the model is, what the space was fitted on, its numbers with intervals, and hashes."""
    record = _read_verdict(folder / "verdict.json")
    width = space_widths(space)[1]
    plain = isinstance(space, LinearSpace | Unchanged)
    settings = ", ".join(f"{key}: {value}" for key, value in space.settings().items())
    weights = {name: digest for name, digest in digests.items() if name.endswith(".safetensors")}
    return "\n".join([
        "---", "library_name: sentence-transformers", "pipeline_tag: sentence-similarity", "tags: [sentfold]", "---",
        f"# {encoder}, with a space of sentfold", "",
        f"Sentences become vectors of {width or 'the same number of'} dimensions: those of `{encoder}`, mapped by a "
        f"space ({settings}). Compare them by cosine.", "",
        "```python", "from sentence_transformers import SentenceTransformer",
        f"model = SentenceTransformer(FOLDER{'' if plain else ', trust_remote_code=True'})",
        "```", "",
        "" if plain else "The last module is the installed `sentfold.decision.module`; this folder has no code.", "",
        "## What it is worth", "", record["verdict"], "", *_numbers(record), "",
        "## Fitted on", "", *[f"- `{name}`: {digest}" for name, digest in record.get("inputs", {}).items()],
        *[f"- {note}" for note in record.get("notes", [])], "",
        "## Hashes", "", f"- `{ARRAYS}`: {sha256_of(folder / ARRAYS)}",
        *[f"- `{name}` of {encoder}: {digest}" for name, digest in weights.items()],
    ])  # fmt: skip


def _read_verdict(path: Path) -> dict[str, Any]:
    """The record of a decision; {} where there is none. Raises ArtifactError."""
    try:
        record: dict[str, Any] = json.loads(path.read_bytes()) if path.is_file() else {}
        _numbers(record)
        return {**record, "verdict": str(record.get("verdict", "Nothing is recorded."))}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(
            "a folder's verdict cannot be read",
            where=str(path),
            expected="a record as Decision.save writes it",
            got=f"{type(error).__name__}: {first_line(error)}",
        ) from None


def _numbers(record: dict[str, Any]) -> list[str]:
    """A table of the candidates or forms that a verdict weighed, in points, with intervals."""
    rows = record.get("candidates") or [{**form, "name": form["code"]["name"]} for form in record.get("forms", [])]
    if not rows:
        return []
    items = record["items"]
    return [
        f"{record['metric']} on {items['number']} {items['unit']} in {items['groups']} independent groups; differences "
        "to the encoder's own vectors, x100, with simultaneous intervals:",
        "",
        "| space | difference | low | high |",
        "|---|---|---|---|",
        *[f"| {row['name']} | {row['difference']:+.2f} | {row['low']:+.2f} | {row['high']:+.2f} |" for row in rows],
    ]
