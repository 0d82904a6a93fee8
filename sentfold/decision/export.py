"""An encoder and a space as one folder that SentenceTransformer loads, with a card that says what it is worth."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import escape
from html import escape as escape_html
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError

from sentfold.data.tables import refuse_holes, unchanged
from sentfold.data.vectors import encode_texts
from sentfold.decision.encoders import (
    FIT,
    OUTPUTS,
    SPACE_FOLDER,
    WORDS_FOLDER,
    is_exported,
    learned_notes,
    load_exported,
    load_fit,
    open_encoder,
    require_encoder,
    save_words,
    unnamed_encoder,
)
from sentfold.decision.families import FAMILIES
from sentfold.decision.spaces import ARRAYS, LinearSpace, Space, Unchanged, load_space, save_space, space_widths
from sentfold.encoders.base.protocol import known_methods
from sentfold.encoders.model_safety import SPACE_MODULE
from sentfold.errors import ArtifactError, EncoderError, ParameterError, SolverError, first_line
from sentfold.files import sha256_of, write_json, write_text
from sentfold.libraries import TEXT_EXTRA

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Floats = npt.NDArray[np.float32]

EXACT = 1e-5  # of the largest number, between the folder's vectors and the library's
WORD_MODULE = "sentfold.decision.word_module.WordModule"
PROBES = ("One sentence.", "Another sentence, which is longer than the first one.", "", "2 + 2 = 4", "Ein Satz.")


def export_space(
    folder: Path, encoder: str, target: Path, *, words: str = "wordllama", texts: Sequence[str] = PROBES
) -> float:
    """Write a folder that holds an encoder with a space behind it, and a model card; return the largest difference.

    folder   that `sentfold decide` or `sentfold compress` wrote: the space, verdict.json for the card, and the fit of a
             method over word vectors
    encoder  whose vectors the space was fitted on: the name, folder or package of a model, or the name of the method
    words    the word vectors of a method
    texts    on which the vectors of the folder, loaded again, must equal those of the library to within 1e-5 of the
             largest number
    A linear map behind a model becomes a Dense module, so that SentenceTransformer(target) needs nothing else. Other
    spaces become sentfold.decision.module.SpaceModule, and methods sentfold.decision.word_module.WordModule: these are
    imported from the installed library, with trust_remote_code=True.
    Raises ParameterError if the target is there or the widths differ, ArtifactError, EncoderError, SolverError;
    DataError if a file of the folder is written meanwhile.
    """
    target = target.absolute()  # `.` cannot be renamed to
    if os.path.lexists(target):  # a folder that is there can be a mount point, a link, or where a shell is
        empty = target.is_dir() and not any(target.iterdir())
        raise ParameterError(
            "the target is there already", where=str(target), expected="a new folder",
            remedy=f"such as {target}/model" if empty else "another name; or move what is there away",
        )  # fmt: skip
    with _private_folder(target) as partial:
        with unchanged(folder) as read:  # the card is that of the space
            read.extend(folder / name for name in OUTPUTS)
            space = load_space(folder)
            require_encoder(folder, encoder)
            if encoder.lower() in known_methods() or (folder / FIT).is_file():
                probes, wanted = _write_method(folder, space, encoder, words, partial, texts)
            else:
                probes, wanted = texts, _write_model(folder, space, encoder, partial, texts)
            if _learned(space, _read_verdict(folder / "verdict.json")) or learned_notes(encoder):
                from sentfold.fold.texts import LEARNED

                write_json(partial / LEARNED, {"learned_from_labels": True})
            apart = _largest_difference(partial, probes, wanted)
        partial.rename(target)
    return apart


def _learned(space: Space, record: dict[str, Any]) -> bool:
    """Whether a space was fitted on labels or scores."""
    chosen = record.get("space")
    name = str(chosen.get("name", "")) if isinstance(chosen, dict) else ""
    return isinstance(space, LinearSpace) and any(one.supervised and name.startswith(one.name) for one in FAMILIES)


@contextmanager
def _private_folder(target: Path) -> Iterator[Path]:
    """A new folder, within a temporary folder that no other user can enter, next to the target. Raises ArtifactError.

    So no other user can exchange a file of the model before the model is checked and renamed to the target. Temporary
    folders of this user's exports that were killed are removed.
    """
    prefix = f".{target.name}.{os.uname().nodename}."
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for stale in target.parent.glob(f"{escape(prefix)}*.partial"):
            process = stale.suffixes[-2][1:]
            if not Path(f"/proc/{process}").exists() and stale.lstat().st_uid == os.getuid():
                shutil.rmtree(stale, ignore_errors=True)
        private = Path(tempfile.mkdtemp(prefix=prefix, suffix=f".{os.getpid()}.partial", dir=target.parent))
        try:
            (private / "model").mkdir()
            yield private / "model"
        finally:
            shutil.rmtree(private, ignore_errors=True)
    except (OSError, SafetensorError) as error:
        raise ArtifactError("cannot write a folder", where=str(target), got=str(error)) from None


def _refuse_links_out(model: Path) -> None:
    """Raise EncoderError for a link that leads out of a model's folder: a private file could become part of the model.

    In the hub's cache, files are links from snapshots/COMMIT to blobs.
    """
    from sentfold.encoders.model_safety import everything

    inside = [model.resolve()]
    if inside[0].parent.name == "snapshots":
        inside.append(inside[0].parent.parent / "blobs")
    for path in everything(model):
        if path.is_symlink() and not any(path.resolve().is_relative_to(folder) for folder in inside):
            raise EncoderError(
                "a link leads out of the model's folder, so that another file would become part of what is exported",
                where=str(path), expected="files in the folder", got=f"a link to {path.readlink()}",
                remedy="look at that file; if it belongs to the model, copy the model with its files (cp -rL)",
            )  # fmt: skip


def _write_model(folder: Path, space: Space, encoder: str, partial: Path, texts: Sequence[str]) -> Floats:
    """Write a model with the space behind it; return the library's vectors of the texts."""
    from sentfold.encoders.model_safety import refuse_unsafe

    if Path(encoder).is_dir():
        _refuse_links_out(Path(encoder))
    model, digests = _load(encoder)
    _check_width(folder, space, int(model.get_embedding_dimension() or 0), encoder)
    static = type(model[0]).__name__ == "StaticEmbedding"
    wanted = space.transform(encode_texts(encoder, texts) if static else _encode(model, texts))
    for module in _modules(space, model):
        model.append(module)
    model.similarity_fn_name = "cosine"  # which was judged, also where the encoder's own is the dot product
    model.save_pretrained(str(partial), create_model_card=False)
    card = model_card(folder, space, encoder, digests, plain=isinstance(space, LinearSpace | Unchanged))
    write_text(partial / "README.md", card)
    refuse_unsafe(encoder, partial)  # an encoder's `auto_map` would run once the folder's own module is trusted
    for file in partial.rglob("*.safetensors"):  # safetensors hides its files from all but their owner
        shutil.copymode(partial / "README.md", file)
    return wanted


def _write_method(
    folder: Path, space: Space, encoder: str, words: str, partial: Path, texts: Sequence[str]
) -> tuple[Sequence[str], Floats]:
    """Write a fitted method with the space behind it, without sentence-transformers.

    Returns the texts and one of words that the method knows, and the library's vectors of these.
    """
    encode = open_encoder(encoder, words, space=folder, fit_on=())  # refuses another method, and a folder without a fit
    fitted = load_fit(folder, words)
    _check_width(folder, space, fitted.dimension, encoder)
    save_words(fitted, partial / WORDS_FOLDER)
    save_space(space, partial / SPACE_FOLDER)
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": kind}
        for place, (path, kind) in enumerate([(WORDS_FOLDER, WORD_MODULE), (SPACE_FOLDER, SPACE_MODULE)])
    ]
    write_json(partial / "modules.json", modules)
    digests = {Path(words).name: fitted.sha256}
    write_text(partial / "README.md", model_card(folder, space, encoder, digests, plain=False))
    probes = [*texts, " ".join(list(fitted.counts)[:20])]
    return probes, space.transform(encode(probes).vectors)


def _check_width(folder: Path, space: Space, own: int, encoder: str) -> None:
    width = space_widths(space)[0]
    if width not in (None, own):
        raise ParameterError(
            "the space was fitted on vectors of another encoder",
            where=str(folder),
            expected=f"{own} dimensions, as {encoder} has",
            got=f"{width}",
        )


def _load(encoder: str) -> tuple[SentenceTransformer, dict[str, str]]:
    """The model and the sha256 of its files. Means of token vectors become a StaticEmbedding of unit length."""
    from sentfold.encoders.model_folder import ModelSource
    from sentfold.fold.texts import find_text_encoder, load_token_means, load_transformer

    found = find_text_encoder(encoder)
    if found.kind == "transformer":
        source = ModelSource(folder=found.folder, package=found.package, sha256=found.sha256)
        return load_transformer(encoder, source).model, found.sha256
    means = load_token_means(found)
    try:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.base.modules import Normalize
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    except ModuleNotFoundError as error:
        raise EncoderError(
            "a SentenceTransformer needs a library that is not installed", where="the Python environment",
            got=f"no module '{error.name}'", remedy=TEXT_EXTRA,
        ) from None  # fmt: skip
    modules: list[Any] = [StaticEmbedding(means.tokenizer, embedding_weights=means.table), Normalize()]
    return SentenceTransformer(modules=modules, device="cpu"), found.sha256


def _modules(space: Space, model: SentenceTransformer) -> list[Any]:
    """What is put behind the encoder.

    A model with `truncate_dim` cuts its vectors behind all modules. The cut becomes a module before the space, and the
    model's `truncate_dim` becomes None.
    """
    import torch
    from sentence_transformers.base.modules import Dense

    from sentfold.decision.module import SpaceModule

    if isinstance(space, Unchanged):
        return []
    cut = []
    if model.truncate_dim is not None:
        width, model.truncate_dim = int(model.get_embedding_dimension() or 0), None
        own = int(model.get_embedding_dimension() or 0)
        cut = [Dense(own, width, bias=False, activation_function=None, init_weight=torch.eye(width, own))]
    if not isinstance(space, LinearSpace):
        return [*cut, SpaceModule(space)]
    matrix, mean = space.map.matrix, space.map.mean
    weight, bias = (
        torch.from_numpy(np.ascontiguousarray(part, dtype=np.float32)) for part in (matrix.T, -mean @ matrix)
    )
    return [*cut, Dense(matrix.shape[0], matrix.shape[1], activation_function=None, init_weight=weight, init_bias=bias)]


def _encode(model: SentenceTransformer, texts: Sequence[str]) -> Floats:
    return np.asarray(model.encode(list(texts), show_progress_bar=False), dtype=np.float32)


def _largest_difference(folder: Path, texts: Sequence[str], wanted: Floats) -> float:
    """Between the vectors of the folder, loaded again, and those wanted. Raises SolverError above EXACT.

    A method over word vectors is loaded by the library where sentence-transformers is not installed. The two classes of
    sentfold are given to sentence-transformers, and no code that the folder names is trusted. Raises ArtifactError for
    a folder that another process exchanged.
    """
    if is_exported(folder) and find_spec("sentence_transformers") is None:
        got = load_exported(folder).encode(texts)
    else:
        from sentence_transformers import SentenceTransformer

        from sentfold.decision.module import SpaceModule
        from sentfold.decision.word_module import WordModule

        classes: dict[str, Any] = {SPACE_MODULE: SpaceModule, WORD_MODULE: WordModule}
        try:
            again = SentenceTransformer._load_with_module_classes(
                str(folder), classes, device="cpu", local_files_only=True
            )
        except Exception as error:  # noqa: BLE001  # another folder makes torch, transformers or json raise anything
            raise ArtifactError(
                "the exported folder cannot be loaded", where=str(folder), expected="the folder as it was written",
                got=f"{type(error).__name__}: {first_line(error)}", state="no folder was left",
            ) from None  # fmt: skip
        got = _encode(again, texts)
    apart = float(np.abs(got - wanted).max() / max(1.0, float(np.abs(wanted).max())))
    if not apart <= EXACT:
        raise SolverError(
            "the exported folder gives other vectors than the library",
            where=str(folder),
            expected=f"differences of at most {EXACT:g} of the largest number",
            got=f"{apart:.2g}",
        )
    return apart


# --- the card -------------------------------------------------------------------------------------------


def model_card(folder: Path, space: Space, encoder: str, digests: dict[str, str], *, plain: bool) -> str:
    """README.md: what the model is, what the space was fitted on, its numbers with intervals, and hashes.

    plain  whether SentenceTransformer needs nothing of sentfold
    """
    record = _read_verdict(folder / "verdict.json")
    width = space_widths(space)[1]
    settings = ", ".join(f"{key}: {value}" for key, value in space.settings().items())
    weights = {name: digest for name, digest in digests.items() if not name.endswith((".json", ".txt"))}
    inputs = {" ".join(name.split()).replace("`", ""): digest for name, digest in record.get("inputs", {}).items()}
    return "\n".join([
        "---", "library_name: sentence-transformers", "pipeline_tag: sentence-similarity", "tags: [sentfold]", "---",
        f"# {encoder}, with a space of sentfold", "",
        f"Sentences become vectors of {width or 'the same number of'} dimensions: those of `{encoder}`, mapped by a "
        f"space ({settings}). Compare them by cosine.", "",
        "```python", "from sentence_transformers import SentenceTransformer",
        f"model = SentenceTransformer(FOLDER{'' if plain else ', trust_remote_code=True'})",
        "```", "",
        "" if plain else "Modules named `sentfold...` come from the installed sentfold; this folder has no code.", "",
        "## What it is worth", "", _plain(record["verdict"]), "", *_numbers(record), "",
        *[f"Note: {note}.\n" for note in unnamed_encoder(folder, encoder)],
        "## Fitted on", "", *[f"- `{name}`: {digest}" for name, digest in inputs.items()],
        *[f"- {_plain(note)}" for note in record.get("notes", [])], "",
        "## Hashes", "", f"- `{ARRAYS}`: {sha256_of(folder / ARRAYS)}",
        *[f"- `{name}` of {encoder}: {digest}" for name, digest in weights.items()],
    ])  # fmt: skip


def _plain(text: object) -> str:
    """A note with names of the user's data, on a line of Markdown in which no name begins an element of HTML."""
    return escape_html(" ".join(str(text).split()), quote=False)


def _read_verdict(path: Path) -> dict[str, Any]:
    """The record of a decision; {} where there is none. Raises ArtifactError."""
    try:
        refuse_holes(path)
        record: dict[str, Any] = json.loads(path.read_bytes()) if path.is_file() else {}
        inputs, notes = record.get("inputs", {}), record.get("notes", [])
        if not isinstance(inputs, dict) or not isinstance(notes, list):
            raise TypeError("inputs are no mapping, or notes are no list")
        verdict = str(record.get("verdict", "Nothing is recorded."))
        # UnicodeEncodeError for half of a character, which no file in UTF-8 can hold.
        "\n".join([verdict, *map(str, [*inputs, *inputs.values(), *notes]), *_numbers(record)]).encode()
        return {**record, "verdict": verdict}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, OverflowError) as error:
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
        f"{_plain(record['metric'])} on {items['number']} {_plain(items['unit'])} in {items['groups']} independent "
        "groups; differences to the encoder's own vectors, x100, with simultaneous intervals:",
        "",
        "| space | difference | low | high |",
        "|---|---|---|---|",
        *[
            f"| {_plain(row['name'])} | {row['difference']:+.2f} | {row['low']:+.2f} | {row['high']:+.2f} |"
            for row in rows
        ],
    ]
