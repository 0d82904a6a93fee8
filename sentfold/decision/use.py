"""The use of a space: the most similar texts, and new texts added to a file without a refit."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from sentfold.data.beir import is_beir, read_beir, with_titles
from sentfold.data.columns import assign_columns, describe_columns, require_columns
from sentfold.data.tables import DataError, left_out_notes, read_arrow_table, read_table, shorten
from sentfold.data.vectors import LISTS
from sentfold.decision.encoders import VERDICT, clear_decision, refuse_foreign
from sentfold.decision.spaces import LandmarkSpace, SmoothedSpace, Space, space_widths
from sentfold.errors import ArtifactError, first_line
from sentfold.files import PARQUET, ROW_GROUP, fixed_lists, json_bytes, replace_whole
from sentfold.locks import try_lock
from sentfold.neighbors.neighbors import nearest_among, nearest_neighbors
from sentfold.retrieval.base.ranking import first_places, unit_rows

Floats = npt.NDArray[np.float32]
Floating = npt.NDArray[np.floating[Any]]

ENCODE = b"sentfold encode"  # the key of the metadata of a file that `encode` wrote
PATIENCE = 60  # seconds for which a file is waited for that another process holds
PROBES = 16  # texts whose vectors are made again
ACCESS_LIST = "system.posix_acl_access"  # of a file, as setfacl writes it
APART = 0.05  # between two vectors of one text at unit length: 8 or 16 bits, or batches of an encoder, give less
OWN = 0.4  # of its amount: rounding decides whether smoothing takes a text for one of its pool, which moves it by less


def most_similar(query: Floating, vectors: Floating, count: int) -> list[tuple[int, float]]:
    """The rows of (n, d) vectors with the largest cosines to a query, (d,), and these; equal ones by row."""
    similar = unit_rows(vectors) @ unit_rows(query[None])[0]
    return [(int(row), float(similar[row])) for row in first_places(similar, count)]


def require_same_vectors(
    texts: Sequence[str], vectors: Floating, again: Floating, *, where: str, remedy: str, most: float = APART
) -> None:
    """Raise DataError where texts get other vectors now than those of a file, which would be mixed with them.

    again  what the vectors of the first texts should be, lengths aside; most: by which half of them may differ
    Vectors of one width can be those of another encoder or space, or of other texts.
    """
    apart = np.linalg.norm(unit_rows(again) - unit_rows(vectors[: len(again)]), axis=1)
    if len(apart) and np.median(apart) > most:
        raise DataError(
            "the file has vectors of another encoder or space, or of other texts", where=where,
            expected="vectors as they are made now",
            got=f"for the text {shorten(texts[0])} a vector at a cosine of {1 - apart[0] ** 2 / 2:.3f}",
            remedy=remedy,
        )  # fmt: skip


def describe_distances(space: Space, vectors: Floating) -> str:
    """How far (m, d) new vectors are from the rows that a space maps by, in words; "" for a space that has none.

    No verdict: texts of another kind can be as near to their nearest landmark as landmarks are to each other, and near
    copies among the landmarks make sound new texts look far.
    Cost O((m + L) L d) for L landmarks.
    """
    fixed = space.landmarks if isinstance(space, LandmarkSpace) else None
    fixed = space.pool if isinstance(space, SmoothedSpace) else fixed
    if fixed is None or len(fixed) < 2 or not len(vectors):
        return ""
    among = nearest_neighbors(fixed, 1, workers=1).distances[:, 0]
    new = nearest_among(np.asarray(vectors, dtype=fixed.dtype), fixed, 1, workers=1).distances[:, 0]
    return (
        f"Median distance to the nearest of the {len(fixed):,} texts that the space was fitted on: "
        f"{np.median(new):.3f} for new texts, {np.median(among):.3f} for these themselves."
    )


def map_vectors(space: Space, vectors: Floating, folder: Path) -> Floats:
    """(m, p) images.

    Raises DataError for vectors of another width than those that the folder's space was fitted on, and for vectors or
    images that are not finite.
    """
    width = space_widths(space)[0]
    if width not in (None, vectors.shape[1]):
        raise DataError(
            "the space was fitted on vectors of another encoder", where=str(folder), expected=f"{width} dimensions",
            got=str(vectors.shape[1]), remedy="name the encoder that the space was fitted with",
        )  # fmt: skip
    if not np.isfinite(vectors).all():
        raise DataError("an encoder gave a vector that is not finite", where="--encoder", expected="finite numbers")
    with np.errstate(over="ignore", invalid="ignore"):  # infinity is refused below
        images = space.transform(vectors)
    if not np.isfinite(images).all():
        raise ArtifactError(
            "a space gives vectors that are not finite", where=str(folder), expected="finite numbers in float32",
            remedy="fit the space again",
        )  # fmt: skip
    return images


def read_texts(path: Path, columns: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The texts of a file, one or more, and notes; empty ones are left out and counted. Raises DataError."""
    if is_beir(path, columns):
        data = read_beir(path)
        return [text for text in data.texts if _is_text(text)], list(data.notes)
    table = with_titles(read_table(path, columns.values()), columns)
    require_columns(table, columns)
    roles = dict(columns) if "text" in columns else assign_columns(table, columns)[1]
    used = [role for role in ("text", "left", "right") if role in roles]
    named: dict[str, str] = {role: roles[role] for role in used}
    notes = [describe_columns(named, columns), *table.notes, *left_out_notes(table, named.values())]
    cells = [(role, row) for role in used for row in range(len(table))]
    empty = [(role, row) for role, row in cells if not _is_text(table.columns[roles[role]][row])]
    if empty:
        role, row = empty[0]
        notes.append(f"{len(empty)} cells without a text are left out; the first: {table.place(row, roles[role])}")
    return [table.columns[roles[role]][row] for role, row in cells if _is_text(table.columns[roles[role]][row])], notes


def _is_text(cell: object) -> bool:
    return isinstance(cell, str) and bool(cell.strip())


def require_same_file(path: Path, space: Space, encode: Callable[[Sequence[str]], Floats]) -> None:
    """As require_same_vectors, for a file of texts and vectors to which others are added; nothing where there is none.

    encode  texts -> images in the space. A file of another width is left to append_vectors.
    """
    texts, vectors = _read_appended(path) if path.exists() else ([], np.empty((0, 0), dtype=np.float32))
    again = encode(texts[:PROBES]) if texts else vectors
    if again.shape[1] == vectors.shape[1]:
        remedy = "name the encoder and the space of that time, or another file: cosines across two spaces say nothing"
        most = max(APART, OWN * space.amount) if isinstance(space, SmoothedSpace) else APART
        require_same_vectors(texts, vectors, again, where=str(path), remedy=remedy, most=most)


def new_texts(path: Path, texts: Sequence[str]) -> list[str]:
    """The distinct texts that a file of texts and vectors lacks; all where there is no file. Raises DataError."""
    known = set(_read_appended(path)[0]) if path.exists() else set()
    return [text for text in dict.fromkeys(texts) if text not in known]


def append_vectors(path: Path, texts: Sequence[str], vectors: Floats) -> tuple[int, int]:
    """Add texts with their (m, p) vectors to a Parquet file, or begin one.

    Returns how many were added and how many the file then has: texts that another process added since `new_texts` are
    left out. The file is replaced whole, by one process at a time, and keeps its permissions; a link stays a link.
    Raises DataError for a file of another form or width, ArtifactError.
    """
    from pyarrow import parquet

    path = behind_links(path)
    with hold_file(path):
        known, old = _read_appended(path) if path.exists() else ([], vectors[:0])
        if old.shape[1] != vectors.shape[1]:
            raise DataError(
                "the file has vectors of another space",
                where=str(path),
                expected=f"{vectors.shape[1]} dimensions",
                got=f"{old.shape[1]}",
                remedy="name another file",
            )
        held = set(known)
        new = [row for row, text in enumerate(texts) if text not in held]
        tables = [
            pa.table({"text": pa.array(part, pa.string()), "vector": fixed_lists(np.ascontiguousarray(rows))})
            for part, rows in ((known, old), ([texts[row] for row in new], vectors[new]))
        ]
        table = pa.concat_tables(tables if known else tables[1:])
        if path.exists():  # but for the mark of `encode`, which would write over the added texts
            kept = parquet.read_schema(path).metadata or {}
            table = table.replace_schema_metadata({key: kept[key] for key in kept if key != ENCODE})
        with replace_in_mode(path) as temporary:
            parquet.write_table(table, temporary, row_group_size=ROW_GROUP, **PARQUET)
    return len(new), int(table.num_rows)


@contextmanager
def replace_in_mode(path: Path) -> Iterator[Path]:
    """As replace_whole, where nobody may read the new file who could not read the one that it replaces.

    It has the permissions, the group and the access list of the old one. Where one of the last two cannot be had, the
    group gets no permissions.
    """
    old = path.stat() if path.is_file() else None
    rules = _access_list(path) if old else None
    with replace_whole(path) as temporary:
        if old:
            temporary.touch(mode=0o600, exist_ok=False)  # follows no link of another account
        yield temporary
        if old:
            try:
                os.chown(temporary, -1, old.st_gid)
                if sys.platform == "linux" and rules is None:
                    with suppress(OSError):  # it has none, but where the folder gives one to new files
                        os.removexattr(temporary, ACCESS_LIST)
                temporary.chmod(old.st_mode & 0o777)
                if sys.platform == "linux" and rules is not None:
                    os.setxattr(temporary, ACCESS_LIST, rules)
            except OSError:
                temporary.chmod(old.st_mode & 0o707)


def _access_list(path: Path) -> bytes | None:
    if sys.platform == "linux":  # elsewhere Python reads none
        with suppress(OSError):  # as where the file system has none
            return os.getxattr(path, ACCESS_LIST)
    return None


def behind_links(path: Path) -> Path:
    """The absolute path of a file, behind links; where they lead in a circle, the first of them."""
    return Path(os.path.realpath(path))


def write_numbers(path: Path, numbers: Mapping[str, Any]) -> None:
    """Write JSON; a file that is replaced keeps its permissions, and a link stays a link. Raises ArtifactError."""
    with replace_in_mode(behind_links(path)) as temporary:
        temporary.write_bytes(json_bytes(numbers))


def require_same_lengths(vectors: Floating, again: Floating, *, where: str) -> None:
    """Raise DataError where vectors of a file have other lengths than an encoder gives the same texts now.

    Their cosines are the same, but a space maps them to other places.
    """
    length, now = (float(np.median(np.linalg.norm(rows, axis=1))) for rows in (vectors, again))
    if abs(length - now) > APART * max(length, now):
        raise DataError(
            "the vectors have other lengths than the encoder gives, and a space maps these elsewhere", where=where,
            expected=f"lengths of about {now:.3g}", got=f"{length:.3g}",
            remedy="leave --vectors out, with a space that was decided with --encoder",
        )  # fmt: skip


@contextmanager
def renewed(folder: Path) -> Iterator[Path]:
    """An empty folder to write a decision into, whose files then replace those of an earlier decision in `folder`.

    So a full disk or an error leaves the earlier decision. The verdict comes last: where a killed process left none,
    nothing was decided. Two decisions at once would mix their files, so other processes are kept from the folder, by a
    lock in it, as the folder above may be somebody else's. The empty folder is a private temporary one, as other
    accounts may be able to write in `folder`. Raises ArtifactError, as hold_file does, and ParameterError for a file of
    another program that would be replaced.
    """
    refuse_foreign(folder)
    try:
        with hold_file(folder / ".decision"), tempfile.TemporaryDirectory(prefix="sentfold-decision-") as private:
            yield (fresh := Path(private))
            # The files get their names in the order of the names, and the verdict last: ExitStack ends the last first.
            names = sorted((path.name for path in fresh.iterdir()), key=lambda name: (name == VERDICT, name))
            with ExitStack() as written:
                for name in reversed(names):
                    shutil.copyfile(fresh / name, written.enter_context(replace_in_mode(folder / name)))
                clear_decision(folder)
    except OSError as error:
        raise ArtifactError(
            "a decision cannot be written", where=str(folder), expected="room in the folder and in TMPDIR",
            got=first_line(error),
        ) from None  # fmt: skip


@contextmanager
def hold_file(path: Path) -> Iterator[None]:
    """Keep other processes from changing a file, by a lock on `.NAME.lock` next to it.

    Only the owner can open the lock: whoever can open it can hold it.
    Raises ArtifactError if another process holds the lock for more than PATIENCE seconds, or none can be made or held.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path.with_name(f".{path.name.lstrip('.')}.lock"), flags, 0o600)
    except OSError as error:
        raise ArtifactError("no lock can be made", where=str(path), got=first_line(error)) from None
    try:
        latest = time.monotonic() + PATIENCE
        while not try_lock(lock, path):
            if time.monotonic() > latest:
                raise ArtifactError(
                    "another process writes here", where=str(path), expected=f"its end within {PATIENCE} seconds",
                    remedy="run the command again when the other process has ended",
                )  # fmt: skip
            time.sleep(0.05)  # flock itself can wait, but not for a limited time
        yield
    finally:
        os.close(lock)


def _read_appended(path: Path) -> tuple[list[str], Floats]:
    """The texts of a file that `append` wrote, and their (n, p) vectors.

    Raises DataError for another file: further columns, and digits beyond float32, would be lost.
    """
    table = read_arrow_table(path)
    kinds = {field.name: field.type for field in table.schema}
    kind = kinds.get("vector", pa.null())
    is_text = kinds.get("text") in (pa.string(), pa.large_string())
    is_vector = any(test(kind) for test in LISTS) and kind.value_type == pa.float32()
    column = table.column("vector").combine_chunks() if is_vector else pa.nulls(0)
    lengths = set(pa.compute.list_value_length(column).to_pylist()) if is_vector else set()
    if not is_text or set(kinds) != {"text", "vector"} or len(lengths) != 1 or column.flatten().null_count:
        raise DataError(
            "a file has no texts with vectors to which others can be added",
            where=str(path),
            expected="the columns text, of strings, and vector, of lists of one length of float32, and no others",
            got=", ".join(f"{name} {kind}" for name, kind in kinds.items()),
            remedy="name another file",
        )
    texts: list[str] = table.column("text").to_pylist()
    if table.column("text").null_count:
        raise DataError(
            "a file has texts that are missing", where=str(path), expected="a text in each row",
            got=f"{table.column('text').null_count:,} nulls", remedy="leave these rows out, or name another file",
        )  # fmt: skip
    return texts, np.asarray(column.flatten()).reshape(len(column), -1)
