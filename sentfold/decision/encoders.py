"""Encoders by name: a model, a method over word vectors that is fitted on the texts, or a folder that holds one.

A method learns from texts, so a space that was fitted on its vectors needs the very same fit later. `sentfold decide`
and `sentfold compress` write the fit next to the space; `export` writes both into one folder.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file, save

from sentfold.data.tables import refuse_holes
from sentfold.data.words import (
    count_numbers,
    cut_words,
    read_lexicon,
    read_word_vectors,
    readers_installed,
    whole_words,
)
from sentfold.decision.spaces import ARRAYS, KINDS, SETTINGS, Space, load_space
from sentfold.encoders.base.protocol import Encoded, known_methods
from sentfold.errors import ArtifactError, EncoderError, ParameterError, first_line
from sentfold.files import replace_whole, require_regular, sha256_of, write_bytes_atomically, write_json

if TYPE_CHECKING:
    from sentfold.encoders.base.protocol import Fitted

Floats = npt.NDArray[np.float32]

VERDICT, PAGE = "verdict.json", "verdict.html"
FIT, DIRECTIONS = "encoder.json", "encoder.safetensors"
OUTPUTS = (VERDICT, PAGE, SETTINGS, ARRAYS, FIT, DIRECTIONS)  # files of a decision
# Keys that tell them from files of other programs; of a verdict on sentences alone, the second ones.
OWN = {
    VERDICT: (
        {"verdict", "metric", "items", "candidates"},
        {"verdict", "metric", "items", "forms"},
        {"verdict", "shapes", "cosine_hubness"},
    ),
    FIT: ({"method", "counts", "sha256"},),
}
SIGNED = (VERDICT, SETTINGS, FIT)  # files whose keys tell that a decision wrote them
WITH = {ARRAYS: SETTINGS, DIRECTIONS: FIT}  # files without a key, and the one that each comes with
PAGE_START = b'<!doctype html><html lang="en"><meta charset="utf-8"><title>Verdict</title>'
WORDS = "words.parquet"  # in an exported folder
WIDEST = 2**20  # numbers of a sentence vector
# Files of git, of the hub's library and of file managers change while the model stays.
ASIDE = (".git", ".cache", ".gitattributes", ".gitignore", ".DS_Store", "Thumbs.db", "desktop.ini")
WORDS_FOLDER, SPACE_FOLDER = "0_WordModule", "1_SpaceModule"  # of an exported folder, as SentenceTransformer names them
# The files of such a folder that decide its vectors; others can be of any size.
EXPORTED = (
    *(f"{WORDS_FOLDER}/{name}" for name in (FIT, DIRECTIONS, WORDS)),
    *(f"{SPACE_FOLDER}/{name}" for name in (SETTINGS, ARRAYS)), "modules.json",
)  # fmt: skip


@dataclass(frozen=True)
class FittedMethod:
    """A method over word vectors after its fit, with all that decides its vectors.

    method, settings  of the method
    words, sha256     the file or the installed package that has the word vectors, and the digest of these
    counts            word -> occurrences in the texts of the fit
    learned           directions (k, d) and singular_values (k,); k = 0 for a method that removes none
    dimension         of a sentence vector
    """

    method: str
    settings: dict[str, Any]
    words: str
    sha256: str
    counts: dict[str, int]
    learned: dict[str, npt.NDArray[np.float64]]
    dimension: int

    def encode(self, texts: Sequence[str]) -> Encoded:
        """(n, d) float32. A text's vector depends on this text alone. Raises ArtifactError, EncoderError."""
        if not any(text.strip() for text in texts):
            return Encoded(np.zeros((len(texts), self.dimension), dtype=np.float32), {"empty": len(texts)})
        whole = Path(self.words).suffix.lower() == ".parquet"
        listed = whole_words(texts, self.settings["tokenizer"])
        encoded = (self._with_all_words if whole else self._with_words_of(listed)).encode(listed)
        return Encoded(encoded.vectors, {**encoded.fallbacks, **cut_words(listed, self.settings["tokenizer"])})

    @cached_property
    def _with_all_words(self) -> Fitted:
        return self._with_words_of(())

    def _with_words_of(self, texts: Sequence[str]) -> Fitted:
        """The encoder, with all words of a Parquet file, or with those of the texts from another source."""
        from sentfold.encoders.base.lexicon import Lexicon
        from sentfold.words.counts import WordCounts

        method, settings = load_method(self.method, self.settings)
        with readers_installed(self.words):
            names, vectors = read_word_vectors(texts, settings.tokenizer, self.words, *_form(self.words))
        counts = WordCounts(tuple(self.counts), np.array(list(self.counts.values()), dtype=np.int64))
        encoder = method.build(Lexicon(names, vectors, counts), settings)
        directions = self.learned["directions"]
        fitted: Fitted = (
            encoder.fit_directions(directions, self.learned["singular_values"]) if len(directions) else encoder.fit([])
        )
        return fitted

    def save(self, folder: Path) -> None:
        """Write encoder.json and encoder.safetensors. The word vectors are not copied. Raises ArtifactError."""
        record = {
            "method": self.method,
            "settings": self.settings,
            "words": Path(self.words).name,
            "sha256": self.sha256,
            "counts": self.counts,
            "dimension": self.dimension,
        }
        write_bytes_atomically(folder / DIRECTIONS, save(self.learned))
        write_json(folder / FIT, record)


def fit_method(name: str, texts: Sequence[str], words: str) -> tuple[FittedMethod, Encoded]:
    """A method with its usual settings, fitted on the distinct texts, and the vectors of all.

    words  as `sentfold encode` takes them; how many numbers a word has is read from a published file itself
    Raises EncoderError if what reads these words is not installed; ParameterError for a method that needs clusters;
    ArtifactError or SourceError for words that cannot be read.
    """
    method, settings = load_method(name, {})
    method, settings = load_method(name, tokenizer_of_raw_text(method))
    listed = whole_words(texts, settings.tokenizer)
    fitting = [*dict.fromkeys(text for text in listed if text)]  # as `encode` learns from the texts that it encodes
    try:
        with readers_installed(words):
            lexicon = read_lexicon(listed, fitting, settings.tokenizer, words, *_form(words), None)
        fitted: Fitted = method.build(lexicon, settings).fit(fitting)
    except ParameterError as error:
        error.remedy = f"write vectors with `sentfold encode {name} ... --clusters 10`, and give them as --vectors"
        raise
    encoded = fitted.encode(listed)
    encoded = Encoded(encoded.vectors, {**encoded.fallbacks, **cut_words(listed, settings.tokenizer)})
    empty = np.zeros((0, encoded.vectors.shape[1]))
    learned = {
        "directions": np.ascontiguousarray(fitted.learned.get("directions", empty), dtype=np.float64),
        "singular_values": np.ascontiguousarray(fitted.learned.get("singular_values", empty[:, 0]), dtype=np.float64),
    }
    counts = dict(zip(lexicon.counts.words, lexicon.counts.counts.tolist(), strict=True))
    kept = FittedMethod(
        name.lower(), settings.model_dump(mode="json"), words, digest_words(words), counts, learned,
        int(encoded.vectors.shape[1]),
    )  # fmt: skip
    return kept, encoded


def save_fit(folder: Path, fitted: FittedMethod | None) -> None:
    """Write the fit of a method into the folder of a space; without one, remove that of an earlier space.

    Other files of these names stay: a folder of vectors can have them. Raises ArtifactError.
    """
    if fitted is not None:
        fitted.save(folder)
    elif is_own(folder / FIT):
        remove_files(folder, DIRECTIONS, FIT)  # the one that tells whose these are comes last


def clear_decision(folder: Path) -> None:
    """Remove the verdict, the page, the space and the fit of an earlier decision: they would contradict the new one.

    Other files of these names stay, but for the verdict. Raises ArtifactError.
    """
    remove_files(folder, VERDICT, *([PAGE] if is_page(folder / PAGE) else []))
    if is_own(folder / SETTINGS):
        remove_files(folder, ARRAYS, SETTINGS)
    save_fit(folder, None)


def refuse_foreign(folder: Path) -> None:
    """Raise ParameterError for a file of another program under a name that a decision writes."""
    foreign = [name for name in SIGNED if not is_own(folder / name)]
    foreign += [] if is_page(folder / PAGE) else [PAGE]
    # A decision that is killed can leave the second of a pair alone: it is written first and removed last.
    foreign += [name for name, with_it in WITH.items() if not (folder / with_it).exists()]
    for name in foreign:
        if (folder / name).exists():
            raise ParameterError(
                "the folder has a file that no decision wrote, which would be lost", where=str(folder / name),
                expected="another folder",
            )  # fmt: skip


def is_page(path: Path) -> bool:
    """Whether a file is the page of a decision."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(PAGE_START)) == PAGE_START


def is_own(path: Path) -> bool:
    """Whether a file of the name of a verdict, a fit or the settings of a space was written by a decision."""
    if path.name == SETTINGS:
        content = _object_in(path)
        return str(content.get("kind")) in KINDS and content.keys() <= {"kind", "neighbors", "amount", "regularization"}
    return is_record(path, *OWN[path.name])


def is_record(path: Path, *keys: Set[str]) -> bool:
    """Whether a file is a JSON object that has all keys of one of these sets."""
    content = _object_in(path)
    return any(some <= content.keys() for some in keys)


def _object_in(path: Path) -> dict[str, Any]:
    """The JSON object in a file; {} if it has another content, or cannot be read."""
    try:
        refuse_holes(path)
        content = json.loads(path.read_bytes()) if path.is_file() else {}
    except (OSError, ValueError, RecursionError):  # a DataError is a ValueError
        return {}
    return content if isinstance(content, dict) else {}


def remove_files(folder: Path, *names: str) -> None:
    """Remove files that are there. Raises ArtifactError."""
    for name in names:
        try:
            (folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise ArtifactError(
                "a file of an earlier decision cannot be removed", where=str(folder / name), got=first_line(error),
                remedy="give another folder",
            ) from None  # fmt: skip


def tokenizer_of_raw_text(method: Any) -> dict[str, str]:
    """The setting of a method that splits at blanks: raw text has punctuation at its words. {} for other methods."""
    return {"tokenizer": "regex"} if method.Settings().tokenizer == "whitespace" else {}


def load_method(name: str, values: dict[str, Any]) -> tuple[Any, Any]:
    """The module of a method, and its settings. Raises EncoderError, ParameterError."""
    from sentfold.encoders.base.protocol import find_method
    from sentfold.encoders.base.settings import make_settings

    method = find_method(name)
    return method, make_settings(method, values, where=name)


def load_fit(folder: Path, words: str) -> FittedMethod:
    """The method that FittedMethod.save wrote. Raises ArtifactError, also for other word vectors than those of the fit.

    words  the file or package that has the word vectors
    """
    try:
        for name in (FIT, DIRECTIONS):
            require_regular(folder / name)
            refuse_holes(folder / name)
        record = json.loads((folder / FIT).read_bytes())
        learned = load_file(folder / DIRECTIONS)
        fitted = FittedMethod(
            str(record["method"]), dict(record["settings"]), words, str(record["sha256"]),
            {str(word): _integer(count, 0, 2**53) for word, count in record["counts"].items()},
            {name: _numbers(learned[name], axes) for name, axes in (("directions", 2), ("singular_values", 1))},
            _integer(record["dimension"], 1, WIDEST),
        )  # fmt: skip
        shape, values = fitted.learned["directions"].shape, fitted.learned["singular_values"]
        if len(values) != shape[0] or (len(values) and shape[1] != fitted.dimension):
            raise ValueError(f"directions of shape {shape} for {len(values)} values and {fitted.dimension} dimensions")
        load_method(fitted.method, fitted.settings)
        of_fit = str(record["words"])
        digest = digest_words(words)  # OSError for a name that no file can have
    except Exception as error:  # noqa: BLE001  # a damaged file makes json or safetensors raise anything
        raise ArtifactError(
            "a folder holds no fitted method that can be read", where=str(folder / FIT),
            expected=f"{FIT} and {DIRECTIONS}, as `sentfold decide --encoder METHOD` writes them",
            got=f"{type(error).__name__}: {first_line(error)}",
        ) from None  # fmt: skip
    if digest != fitted.sha256:
        raise ArtifactError(
            "these are not the word vectors of the fit", where=f"--words {words}",
            expected=f"{of_fit}, sha256 {fitted.sha256}", got=digest or "no such file or package",
            remedy=f"give the same word vectors: --words {shlex.quote(of_fit)}",
        )  # fmt: skip
    return fitted


def digest_words(words: str) -> str:
    """sha256 of a file of word vectors, or of the vectors in an installed package; empty where there is none."""
    from sentfold.words.wordllama import WEIGHTS

    path = Path(words)
    if not path.is_file() and words.isidentifier():
        spec = find_spec(words)
        places = list(spec.submodule_search_locations or []) if spec else []
        path = Path(places[0]) / WEIGHTS if places else path
    return sha256_of(path) if path.is_file() else ""


# --- an encoder by its name ---------------------------------------------------------------------------


def open_encoder(
    name: str, words: str, *, space: Path | None, fit_on: Sequence[str]
) -> Callable[[Sequence[str]], Encoded]:
    """What turns texts into vectors and counts those taken otherwise than they are, for commands that use a space.

    name    a model's, a folder's, a package's, or that of a method over word vectors
    space   the folder of the space: it holds the fit of a method
    fit_on  texts that a method is fitted on where there is no space; () where this would be a fit of its own each time
    Raises EncoderError, also if the space was fitted on the vectors of another model; ArtifactError.
    """
    if space is not None:
        require_encoder(space, name)
    known = space is not None and (space / FIT).is_file()
    if known and space is not None:
        fitted = load_fit(space, words)
        if fitted.method == name.lower():
            return fitted.encode
        raise EncoderError(
            "the space was fitted on vectors of another encoder", where=str(space), expected=fitted.method, got=name,
            remedy=f"--encoder {shlex.quote(fitted.method)}",
        )  # fmt: skip
    if name.lower() not in known_methods():
        return partial(encode_by_name, name)
    if space is not None or not fit_on:
        raise EncoderError(
            f"the method {name} has to be fitted on texts, and this folder holds no fit of it", where=str(space),
            expected=f"a folder with {FIT}",
            remedy=f"write the folder with `sentfold decide ... --encoder {shlex.quote(name)}`",
        )  # fmt: skip
    return fit_method(name, fit_on, words)[0].encode


def unnamed_encoder(space: Path, name: str) -> list[str]:
    """A note on an encoder that the decision in the folder of a space does not name; [] where it names this one."""
    if require_encoder(space, name) or (space / FIT).is_file():
        return []
    return [f"the decision in {space} names no encoder, so nothing shows that its vectors were those of {name}"]


def require_encoder(space: Path, name: str) -> bool:
    """Raise EncoderError if verdict.json in the folder of a space names other files than those of this encoder.

    Two models of one width would give vectors without a word, which no verdict judged. The word vectors of a method
    are compared by load_fit. Returns whether an encoder is named. Raises DataError for a verdict.json of holes.
    """
    if name.lower() in known_methods():
        return False
    refuse_holes(space / VERDICT)
    try:
        require_regular(space / VERDICT)
    except OSError as error:
        raise ArtifactError("a decision cannot be read", where=str(space / VERDICT), got=first_line(error)) from None
    try:
        recorded = json.loads((space / VERDICT).read_bytes())["inputs"]
        encoder, before = str(recorded["encoder"]), _files_of(recorded)
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return False  # nothing is recorded: the vectors came from a file, or from the caller of the library
    now, parts = _files_of(hash_encoder(name)), _parts_of_model(Path(name))
    for file in sorted({*before, *now}):
        if before.get(file) != now.get(file) and not _is_aside(file, parts):
            got = f"whose {file} has sha256 {now[file]}" if file in now else f"which has no {file}"
            raise EncoderError(
                "the space was fitted on vectors of another encoder", where=str(space),
                expected=f"{encoder}, as {VERDICT} has it", got=f"{name}, {got}",
                remedy=f"--encoder {shlex.quote(encoder)} with the files of that time; or decide again with this one",
            )  # fmt: skip
    return True


def _files_of(inputs: dict[str, str]) -> dict[str, str]:
    """The files of an encoder among the inputs of a decision, without the encoder's name: the folder can be renamed."""
    folder = f"{inputs['encoder']}/"
    return {name.removeprefix(folder): digest for name, digest in inputs.items() if name.startswith(folder)}


def _parts_of_model(model: Path) -> set[str] | None:
    """The names in the paths of a model's modules; None where no modules.json says so. The file has not changed."""
    try:
        modules = json.loads((model / "modules.json").read_bytes())
        return {part for module in modules for part in Path(str(module["path"])).parts}
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return None


def _is_aside(file: str, parts: set[str] | None) -> bool:
    """Whether a file of a model's folder decides no vector: it is for git or in a folder that is no part of the model.

    Copies of one model of the hub can have the folder `onnx` or lack it.
    """
    folder, name = file.partition("/")[0], file.rpartition("/")[2]
    if (set(ASIDE) - (parts or set())) & {folder, name}:
        return True
    return parts is not None and "/" in file and folder not in parts


def hash_encoder(encoder: str) -> dict[str, str]:
    """The encoder's name, and name/file -> sha256 of the files that decide its vectors: weights, tokenizer, settings.

    Raises EncoderError.
    """
    from sentfold.fold.texts import find_text_encoder

    folder = Path(encoder)
    if find_exported(encoder):
        digests = {name: sha256_of(folder / name) for name in EXPORTED if (folder / name).is_file()}
    else:
        digests = find_text_encoder(encoder).sha256
    named = folder.resolve().name if folder.is_dir() else folder.name  # `.` has no name
    return {"encoder": named, **{f"{named}/{file}": digest for file, digest in digests.items()}}


def prompt_notes(name: str) -> list[str]:
    """A note where a model has prompts for queries or documents: sentfold puts its default prompt, if any, before all.

    Raises EncoderError.
    """
    from sentfold.fold.texts import locate_encoder

    path = find_exported(name) or locate_encoder(name)[0]
    try:
        content = json.loads((path / "config_sentence_transformers.json").read_bytes())
        return _unused_prompts(name, content["prompts"], content.get("default_prompt_name"))
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return []  # no prompts; whoever loads the model says what is wrong with it


def _unused_prompts(name: str, prompts: Mapping[str, str], default: str | None) -> list[str]:
    unused = sorted(kind for kind, text in prompts.items() if text and kind != default)
    if not unused:
        return []
    kinds = ", ".join(unused)
    return [f"{name} has prompts ({kinds}), which are not used: every text is encoded as by SentenceTransformer.encode"]


def learned_notes(name: str) -> list[str]:
    """A note where `sentfold export` wrote a model with a space that has learned from labels or scores."""
    from sentfold.fold.texts import LEARNED

    if not (Path(name) / LEARNED).is_file():
        return []
    return [
        f"{name} has learned from labels or scores: on the texts that it learned from, its numbers are far better than "
        "on others. Judge it on texts that it has not seen"
    ]


def object_notes(encoder: object, texts: Sequence[str]) -> list[str]:
    """What has to be known of a SentenceTransformer that was given as an object, or by its method that encodes.

    The same as of one that is given by its name: texts that it cuts, prompts that it leaves out, labels that it learned
    from. Cost: one tokenization.
    """
    library = sys.modules.get("sentence_transformers")
    model: Any = getattr(encoder, "__self__", encoder)
    if library is None or not isinstance(model, library.SentenceTransformer):
        return []
    from sentfold.encoders.transformer import token_lengths

    notes, limit, prompts = list[str](), getattr(model, "max_seq_length", None), model.prompts or {}
    tokenizer = getattr(model, "tokenizer", None)  # a module of one's own may have none
    method = "encode" if encoder is model else str(getattr(encoder, "__name__", ""))
    kinds = {"encode_query": ("query",), "encode_document": ("document", "passage", "corpus")}.get(method, ())
    if isinstance(limit, int) and limit > 0 and hasattr(tokenizer, "num_special_tokens_to_add"):  # one of transformers
        kind = next((kind for kind in kinds if kind in prompts), model.default_prompt_name or "")
        prompt = prompts.get(kind) or ""
        lengths = token_lengths(model, [prompt + text for text in texts])
        notes += count_notes("the model", {"cut at the model's limit": int((lengths > limit).sum())})
    if method == "encode":
        notes += _unused_prompts("the model", prompts, model.default_prompt_name)
    return [*notes, *learned_notes(str(getattr(tokenizer, "name_or_path", "")))]


def encode_by_name(name: str, texts: Sequence[str]) -> Encoded:
    """(n, d) float32 vectors by a model, or by the folder of a method that `export` wrote. Raises EncoderError.

    Also how many texts were taken otherwise than they are, such as those that are cut at a model's limit.
    """
    from sentfold.data.vectors import check_numbers
    from sentfold.fold.texts import find_text_encoder

    folder = find_exported(name)
    if folder is not None:
        return load_exported(folder).encode_counted(texts)
    encoded = find_text_encoder(name).encode(list(texts))
    return Encoded(check_numbers(encoded.vectors, name), encoded.fallbacks)


def count_notes(name: str, counts: Mapping[str, int]) -> list[str]:
    """What an encoder did to texts that it could not take as they are, such as those that are cut at its limit."""
    of = "" if name.lower() in known_methods() else f"{name}: texts "
    return [f"{of}{what}: {number:,}" for what, number in counts.items() if number]


@dataclass(frozen=True)
class ExportedMethod:
    """A fitted method and the space behind it."""

    fitted: FittedMethod
    space: Space

    def encode(self, texts: Sequence[str]) -> Floats:
        """(n, p) float32."""
        return self.encode_counted(texts).vectors

    def encode_counted(self, texts: Sequence[str]) -> Encoded:
        """(n, p) float32, and how many texts were taken otherwise than they are, such as those without known words."""
        encoded = self.fitted.encode(texts)
        return Encoded(self.space.transform(encoded.vectors), encoded.fallbacks)


def is_exported(folder: Path) -> bool:
    """Whether `export` wrote the folder for a method over word vectors. Raises DataError for a file of holes in it."""
    found = (folder / WORDS_FOLDER / FIT).is_file()
    for file in folder.rglob("*") if found else ():
        refuse_holes(file)
    return found


def find_exported(name: str) -> Path | None:
    """The folder of that name, if `export` wrote it for a method.

    Raises EncoderError if an installed package or a method has the name too, or if sentence-transformers saved another
    model in the folder since, and DataError for a file of holes in it.
    """
    from sentfold.fold.texts import refuse_two_meanings

    if not is_exported(Path(name)):
        return None
    refuse_two_meanings(name)
    _refuse_other_model(Path(name))
    return Path(name)


def _refuse_other_model(folder: Path) -> None:
    """Raise EncoderError unless the folder is, for sentence-transformers too, the two modules that are read here."""
    try:
        modules = json.loads((folder / "modules.json").read_bytes())
        found = [f"{module['path']} ({str(module['type']).rpartition('.')[2]})" for module in modules]
        settings = folder / "config_sentence_transformers.json"  # of sentence-transformers
        content = json.loads(settings.read_bytes()) if settings.exists() else {}
        prompt = (content.get("prompts") or {}).get(content.get("default_prompt_name") or "")
        odd = {"truncate_dim": content.get("truncate_dim"), "a default prompt": prompt}
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        found, odd = [], {f"settings that cannot be read ({first_line(error)})": True}
    said = [name for name, value in odd.items() if value]
    if found != [f"{WORDS_FOLDER} (WordModule)", f"{SPACE_FOLDER} (SpaceModule)"] or said:
        raise EncoderError(
            "another model was saved in the folder of an exported method", where=str(folder),
            expected=f"a model of {WORDS_FOLDER} and {SPACE_FOLDER} alone, without a default prompt or truncate_dim",
            got="; ".join([", ".join(found)[:99] or "no modules", *said]),
            remedy="export the method again; save other models in folders of their own",
        )  # fmt: skip


def load_exported(folder: Path) -> ExportedMethod:
    """The method and the space of an exported folder. Raises ArtifactError."""
    return ExportedMethod(load_words(folder / WORDS_FOLDER), load_space(folder / SPACE_FOLDER))


def load_words(folder: Path) -> FittedMethod:
    """The fitted method of an exported module: its word vectors are in the folder, or in an installed package."""
    own = folder / WORDS
    try:
        named = "" if own.is_file() else json.loads((folder / FIT).read_bytes())["words"]
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        named = ""  # load_fit says what is wrong with the folder
    # The name is the folder's word, so it may name a package, and no other file of this machine.
    return load_fit(folder, named if isinstance(named, str) and named.isidentifier() else str(own))


def save_words(fitted: FittedMethod, folder: Path) -> None:
    """Write the module that load_words reads: the fit, and the word vectors where they are in a Parquet file.

    Raises ParameterError for a published file: it can hold gigabytes of words that nobody asks for.
    """
    words = Path(fitted.words)
    if words.is_file() and words.suffix.lower() != ".parquet":
        raise ParameterError(
            "a published file of word vectors is not put into a folder", where=f"--words {words}",
            expected="Parquet with word, vector; or an installed package",
            remedy="write the words that you need as Parquet, and decide with these",
        )  # fmt: skip
    fitted.save(folder)
    if words.is_file():
        with replace_whole(folder / WORDS) as temporary:
            shutil.copyfile(words, temporary)


def _form(words: str) -> tuple[int, bool]:
    """Numbers per word of a published file, and whether it is word2vec's binary format."""
    return count_numbers(Path(words)), ".bin" in Path(words.lower()).suffixes


def _integer(value: object, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"an integer from {low} to {high} is expected, not {str(value)[:50]}")
    return value


def _numbers(array: npt.NDArray[Any], axes: int) -> npt.NDArray[np.float64]:
    if array.dtype != np.float64 or array.ndim != axes or not np.isfinite(array).all():
        raise ValueError(f"{array.dtype} of shape {array.shape}, or not finite")
    return array
