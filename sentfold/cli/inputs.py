"""What the commands for a user's own data share: their options, and how data and vectors are read."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sentfold.errors import SentfoldError, escape_controls

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sentfold.data.datasets import Dataset
    from sentfold.decision.encoders import FittedMethod

Source = Annotated[
    Path,
    typer.Argument(
        help="Pairs with scores, texts with labels, a BEIR folder, or (decide) sentences: CSV, TSV, JSONL, Parquet."
    ),
]
Vectors = Annotated[
    Path | None, typer.Option(help="Their vectors: npy, npz, safetensors, or Parquet with texts and vectors.")
]
EncoderName = Annotated[
    str | None,
    typer.Option("--encoder", help="Or an encoder: all-MiniLM-L6-v2, a model's folder, a package, a method as sif."),
]
Words = Annotated[
    str, typer.Option(help="Word vectors of a method: Parquet with word, vector; a published file; or a package.")
]
Columns = Annotated[str | None, typer.Option(help="left=a,right=b,score=c or text=a,label=b; split=d.")]
Seed = Annotated[int, typer.Option(min=0, help="Of folds and resamples.")]
Mteb = Annotated[
    Path | None,
    typer.Option(help="A folder for mteb: the scores as its TaskResult files, the intervals in a file next to them."),
]

WORDS = "wordllama"


class Inputs(NamedTuple):
    """Data, its vectors, the hashes of all files behind both, and the fit of a method over word vectors."""

    data: Dataset
    vectors: npt.NDArray[np.float32]
    hashes: dict[str, str]
    fitted: FittedMethod | None = None


@contextmanager
def naming_options(*options: str) -> Iterator[None]:
    """Errors of the library, which advise what to do in params.yaml and in a suite, name these options of a command."""
    try:
        yield
    except SentfoldError as error:
        plain = error.remedy.replace(" in params.yaml", "").replace(", or leave this corpus out of the suite", "")
        named = f"`({'|'.join(options)})`"
        error.remedy = re.sub(named, lambda word: f"--{word[1].replace('_', '-')}", plain) if options else plain
        error.where = re.sub(r"^sentfold \w+\.(?:\w+\.)*(\w+)$", r"--\1", error.where)
        if error.where.startswith("--") and error.remedy == "correct the file":
            error.remedy = "give another value"
        raise


def read_inputs(
    source: Path, vectors: Path | None, encoder: str | None, columns: str | None, words: str, *, quiet: bool = False
) -> Inputs:
    """The data of a file, its vectors, and what made them. How it was read and what is odd goes to stderr, before
    a text is encoded, unless quiet.

    Raises DataError, and EncoderError for an encoder that is missing.
    """
    from sentfold.data.tables import DataError, unchanged

    if (vectors is None) == (encoder is None):
        raise DataError(
            "vectors are needed", where="--vectors, --encoder", expected="one of the two",
            got="neither" if vectors is None else "both", remedy="--encoder all-MiniLM-L6-v2, with sentfold[text]",
        )  # fmt: skip
    refuse_odd_names(source, vectors)
    model = Path(encoder or "")
    with unchanged(source, vectors, model, Path(words)) as read:
        made = _read_inputs(source, vectors, encoder, columns, words, quiet=quiet)
        own = f"{made.hashes.get('encoder')}/"
        read.extend([*made.data.files, *([] if vectors is None else [vectors])])
        read.extend([Path(words)] if made.fitted is not None else [])
        read.extend(model / name.removeprefix(own) for name in made.hashes if name.startswith(own))
        return made


def _read_inputs(
    source: Path, vectors: Path | None, encoder: str | None, columns: str | None, words: str, *, quiet: bool
) -> Inputs:
    from sentfold.data.columns import parse_columns
    from sentfold.data.datasets import read_dataset
    from sentfold.data.tables import DataError
    from sentfold.data.vectors import read_vectors

    data = read_dataset(source, parse_columns(columns))
    if encoder is not None and not data.texts:
        raise DataError("there are no texts to encode", where=data.name, got="rows of vectors", remedy="give --vectors")
    print_notes(() if quiet else data.notes)
    if vectors is not None:
        x, notes = read_vectors(vectors, data)
        made = Inputs(data, x, hash_inputs((source, data.files), (vectors, [vectors])))
    else:
        made, notes = _encode(data, source, str(encoder), words)
    print_notes(notes)
    return made


def refuse_target(target: Path | None, *inputs: Path | str | None, folder: bool = False) -> None:
    """Raise ParameterError, before anything is computed, for a target that must not be replaced.

    inputs  paths; or names, as of an encoder, which count where they are a file or a folder that is read
    folder  whether the folder of a decision is to be written; else a file. An input, a file in the folder of an input,
            a device or a pipe would be lost, also as one of the files in the folder; so would another program's file.
    """
    from sentfold.errors import ParameterError

    if target is None:
        return
    refuse_odd_names(None if target.is_dir() else target)
    if folder and target.is_symlink():  # a stranger's folder of data can have a link called `verdict`
        raise ParameterError(
            "the target is a link", where=str(target), expected="a folder, or a new name", got=f"a link to "
            f"{target.readlink()}", remedy="--to with the name of the folder itself, or another name",
        )  # fmt: skip
    place = target if folder else target.parent
    place = next(one for one in (place, *place.absolute().parents) if one.exists())
    if place.is_dir() and not os.access(place, os.W_OK | os.X_OK):
        raise ParameterError("the target cannot be written", where=str(target), expected=f"leave to write in {place}")
    for path in inputs:
        if path is not None:
            refuse_target_in_model(target, path)
    if not target.exists():
        return
    wanted = "a folder" if folder else "a file"
    if not (target.is_dir() if folder else target.is_file()):
        got = "a folder" if target.is_dir() else "a file" if target.is_file() else "a device or a pipe"
        raise ParameterError(
            f"the target is not {wanted}", where=str(target), expected=f"{wanted}, or a new name", got=got
        )
    refuse_read_only(target)
    given = [Path(path) for path in inputs if path is not None and Path(path).exists() and _is_read(path)]
    inside = not folder and any(path.resolve() in target.resolve().parents for path in given if path.is_dir())
    if inside or any(target.samefile(path) for path in given):
        raise ParameterError(
            "the target is one of the inputs, which would be lost", where=str(target), expected="another name"
        )
    if folder:
        from sentfold.decision.encoders import OUTPUTS, refuse_foreign

        files = [path for path in inputs if path is not None and not Path(path).is_dir()]
        for name in OUTPUTS:  # in a folder of the decision's own, also where that is in the folder of the data
            refuse_target(target / name, *files)
        refuse_foreign(target)


def refuse_target_in_model(target: Path, encoder: Path | str) -> None:
    """Raise ParameterError for a target in the folder of a model, which would be another model then."""
    from sentfold.errors import ParameterError

    folder = Path(encoder)
    if folder.is_dir() and folder.resolve() in target.resolve().parents:
        from sentfold.fold.texts import is_model

        if is_model(folder):
            raise ParameterError(
                "the target is in the model's folder, whose files decide the vectors", where=str(target),
                expected=f"a place outside of {folder}",
            )  # fmt: skip


def refuse_read_only(target: Path) -> None:
    """Raise ParameterError for a read-only file. A rename would replace the file all the same."""
    from sentfold.errors import ParameterError

    if target.is_file() and not target.stat().st_mode & stat.S_IWUSR:
        raise ParameterError(
            "the target is read-only", where=str(target), expected="a file that may be changed",
            remedy="another name; `dvc unprotect FILE` for a file that DVC tracks; else chmod u+w",
        )  # fmt: skip


def refuse_other_record(target: Path | None, *keys: str) -> None:
    """Raise ParameterError for a target that does not end in .json, or is no record of the command.

    keys  that the command's records have
    """
    from sentfold.decision.encoders import is_record
    from sentfold.errors import ParameterError

    if target is None:
        return
    if target.suffix.lower() != ".json":
        raise ParameterError(
            "numbers are written as JSON", where=str(target), expected="a name that ends in .json",
            remedy="another name",
        )  # fmt: skip
    if target.exists() and target.stat().st_size and not is_record(target, {*keys}):
        raise ParameterError(
            "the target has something else than numbers of this command", where=str(target),
            expected="a new name, or a file that this command wrote", remedy="another name; or move the file away",
        )  # fmt: skip


def require_parquet(target: Path) -> None:
    """Raise ParameterError for a name under which vectors would not be read as Parquet again."""
    from sentfold.errors import ParameterError

    if target.suffix.lower() != ".parquet":
        raise ParameterError(
            "vectors are written as Parquet", where=str(target), expected="a name that ends in .parquet",
            remedy="another name; `numpy.stack(polars.read_parquet(NAME)['vector'])` makes an array of the vectors",
        )  # fmt: skip


def _is_read(path: Path | str) -> bool:
    """Whether an input is read from this disk: a folder can have the name of a method or of an installed model."""
    from sentfold.decision.encoders import is_exported
    from sentfold.decision.mteb import prediction_files
    from sentfold.fold.texts import is_model

    folder = Path(path)
    return (
        isinstance(path, Path)
        or folder.is_file()
        or any(test(folder) for test in (is_model, is_exported, prediction_files))
    )


def refuse_odd_names(*paths: Path | None) -> None:
    """Raise DataError for the name of a file that is not UTF-8: records of hashes could not name the file."""
    from sentfold.data.tables import DataError

    for path in paths:
        for file in () if path is None else (path, *path.glob("*"), *path.glob("*/*")) if path.is_dir() else (path,):
            if str(file) != str(file).encode("utf-8", "replace").decode():
                raise DataError(
                    "the name of a file is not UTF-8", where=str(file).encode("utf-8", "backslashreplace").decode(),
                    expected="a name that JSON can hold", remedy="rename the file",
                )  # fmt: skip


def print_notes(notes: Iterable[str]) -> None:
    """How data was read and what is odd, one a line, to stderr. A terminal that has gone ends no command."""
    with suppress(OSError):
        for note in notes:
            print(escape_controls(note).replace("\n", "\\n"), file=sys.stderr, flush=True)


def hash_inputs(*read: tuple[Path, Iterable[Path]]) -> dict[str, str]:
    """File -> sha256, by name, or with their folder where two have one name.

    read  files and folders, each with the files of it that were read; what else is in a folder may be of any size
    """
    from sentfold.files import sha256_of

    hashes: dict[str, str] = {}
    for path, files in read:
        for file in sorted(files):
            name = str(file.relative_to(path.parent))
            hashes[f"{path.parent}/{name}" if name in hashes else name] = sha256_of(file)
    return hashes


def hashes_of_data(source: Path, files: Iterable[Path], hashes: dict[str, str]) -> dict[str, str]:
    """Of the hashes of a command's inputs those of the data's files, as they were when they were read."""
    names = [str(file.relative_to(source.parent)) for file in sorted(files)]
    return {name: hashes.get(f"{source.parent}/{name}") or hashes[name] for name in names}


def _encode(data: Dataset, source: Path, encoder: str, words: str) -> tuple[Inputs, list[str]]:
    """The inputs, and notes. A method over word vectors is fitted on the texts, without their labels.

    Raises EncoderError, and DataError for vectors that would be refused in a file too.
    """
    from sentfold.data.vectors import check_vectors
    from sentfold.decision.encoders import (
        count_notes,
        encode_by_name,
        fit_method,
        hash_encoder,
        learned_notes,
        prompt_notes,
    )
    from sentfold.encoders.base.protocol import known_methods

    texts, hashes = list(data.texts), hash_inputs((source, data.files))
    if encoder.lower() not in known_methods():
        encoded = encode_by_name(encoder, texts)
        x, notes = check_vectors(encoded.vectors, encoder)
        notes += count_notes(encoder, encoded.fallbacks)
        made_of = hash_encoder(encoder)
        # A folder of data can have the name of the model's folder, by which the files of the model are found again.
        own = f"{made_of['encoder']}/"
        named = {f"{source.parent}/{name}" if name.startswith(own) else name: hashes[name] for name in hashes}
        return Inputs(data, x, {**named, **made_of}), [*learned_notes(encoder), *prompt_notes(encoder), *notes]
    fitted, encoded = fit_method(encoder, texts, words)
    x, more = check_vectors(encoded.vectors, encoder)
    notes = [f"{encoder} is fitted on these {len(texts):,} texts, without their labels"]
    notes += count_notes(encoder, encoded.fallbacks)
    made_of = {"encoder": encoder.lower(), Path(words).name: fitted.sha256}
    return Inputs(data, x, {**hashes, **made_of}, fitted), [*notes, *more]
