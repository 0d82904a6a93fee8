"""The folder of a sentence transformer: its path, the sha256 that its files must have, and the refused files."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from sentfold.errors import EncoderError, UnansweredError, first_line
from sentfold.files import sha256_of
from sentfold.settings import Parameters

SPACE_MODULE = "sentfold.decision.module.SpaceModule"  # imported from the installed library, not from the folder
MOST_MODULES = 100  # entries of modules.json
MOST_LAYERS = 64  # of a configuration; as many as the weight files have tensors, where these are more
LONGEST_HEADER = 100_000_000  # bytes; the library safetensors has the same bound
LAYERS = ("layer", "hidden_group", "inner_group")  # in the keys of a configuration that count layers
# The file and the keys of a module's configuration whose numbers multiply to at most the number of its weights. The
# library makes the weights in memory before it reads the file that has them.
SIZES = {
    "config.json": (("in_features", "out_features"), ("input_dim", "hidden_dim"), ("dimension",)),
    "lstm_config.json": (("hidden_dim", "hidden_dim"), ("hidden_dim", "embedding_dimension")),
    "cnn_config.json": (("in_embedding_dimension", "out_channels", "kernel_sizes"),),
}
# What sentence_bert_config.json may say to the functions of transformers. Other arguments choose files, run code
# (weights_only: false; an attention of the hub), or take the place of configurations that are checked here.
ARGUMENTS = re.compile("(model|tokenizer|processor|config)_(args|kwargs)")
SAFE_ARGUMENTS = {"dtype", "torch_dtype", "add_pooling_layer", "padding_side"}
SAFE_ATTENTIONS = {"eager", "sdpa"}


class ModelSource(Parameters):
    """The source of one sentence transformer, and the sha256 that its files must have.

    package   an installed distribution that carries a model folder
    folder    a local model folder
    hub       a model id on the Hugging Face hub; `revision` is its full commit
    sha256    file inside the model folder -> sha256 that the file must have; a package or a folder needs one for
              every file that decides what the model computes
    """

    package: str | None = None
    folder: str | None = None
    hub: str | None = None
    revision: str | None = Field(default=None, pattern="^[0-9a-f]{40}$")
    sha256: dict[str, str] = {}

    @model_validator(mode="after")
    def _one_place(self) -> ModelSource:
        if sum(place is not None for place in (self.package, self.folder, self.hub)) != 1:
            raise ValueError("give exactly one of: package, folder, hub")
        return self


# --- the folder --------------------------------------------------------------------------------


def locate_model(encoder: str, source: ModelSource) -> Path:
    """The model's folder on this machine. The sha256 of the files are checked, except for a commit of the hub.

    Raises EncoderError, or UnansweredError if the hub does not answer.
    """
    if source.hub is not None:
        return _fetch_from_hub(encoder, source)
    folder = _local_folder(encoder, source)
    check_digests(encoder, folder, source.sha256)
    return folder


def _local_folder(encoder: str, source: ModelSource) -> Path:
    folder = _package_folder(encoder, source.package) if source.package else Path(source.folder or "")
    if not (folder / "modules.json").is_file():
        raise EncoderError(
            f"encoder '{encoder}' has no model folder",
            where=str(source.folder or source.package),
            expected="a folder with modules.json, as sentence-transformers saves it",
            remedy=f"correct the folder or the package of '{encoder}'",
        )
    return folder


def _package_folder(encoder: str, package: str) -> Path:
    try:
        entries = files(package) or []
    except PackageNotFoundError:
        raise EncoderError(
            f"the package '{package}' of encoder '{encoder}' is not installed",
            where="the Python environment",
            remedy="in a checkout run `make install`, which installs requirements.lock; elsewhere install the package",
        ) from None
    folders = [Path(str(entry.locate())).parent for entry in entries if entry.name == "modules.json"]
    return folders[0] if folders else Path(package)


def _fetch_from_hub(encoder: str, source: ModelSource) -> Path:
    check_pin(encoder, source)
    from httpx2 import HTTPError
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        # No pattern allows .bin, .pt or .py: pickles and code are never downloaded.
        return Path(
            snapshot_download(
                str(source.hub),
                revision=source.revision,
                allow_patterns=["*.json", "*.txt", "*.model", "*.safetensors"],
                endpoint=os.environ.get("HF_ENDPOINT"),
            )
        )
    except (HfHubHTTPError, LocalEntryNotFoundError, HFValidationError, HTTPError, OSError) as error:
        kind = UnansweredError if _is_unanswered(error) else EncoderError
        raise kind(
            f"encoder '{encoder}' cannot be fetched",
            where=f"{source.hub}@{source.revision}",
            got=first_line(error),
            remedy="check the network and the revision; for a model on this machine write `folder:` instead of `hub:`",
        ) from None


def _is_unanswered(error: BaseException | None) -> bool:
    """Whether the hub did not answer, or answered that it is not available now. The request may succeed later."""
    from httpx2 import TransportError
    from huggingface_hub.errors import HfHubHTTPError

    # The hub's client wraps the errors of its connection, some of them more than once.
    while error is not None:
        if isinstance(error, HfHubHTTPError) and error.response is not None:
            status: int = error.response.status_code
            return status == 429 or status >= 500
        if isinstance(error, TransportError | ConnectionError | TimeoutError):
            return True
        error = error.__cause__ or error.__context__
    return False


# --- pins --------------------------------------------------------------------------------------


def check_pin(encoder: str, source: ModelSource) -> None:
    """Raise EncoderError if the encoder is from the hub and its commit is not pinned."""
    if source.hub is not None and source.revision is None:
        raise EncoderError(
            f"encoder '{encoder}' is not pinned to a revision",
            where=f"encoders.{encoder}.revision",
            expected="a full commit of 40 hexadecimal digits",
            got="null",
            remedy=f"run `sentfold pin-encoder {encoder}` with a network: it prints the line to add",
        )


def pin_lines(encoder: str, source: ModelSource) -> str:
    """The lines of YAML that pin an encoder to its newest commit on the hub, or to the sha256 of its files.

    Raises EncoderError if the model does not exist, or if the hub does not answer.
    """
    if source.hub is not None:
        return f"    revision: {_newest_revision(encoder, source.hub)}"
    digests = model_digests(_local_folder(encoder, source))
    return "\n".join(["    sha256:", *(f"      {name}: {digest}" for name, digest in digests.items())])


def _newest_revision(encoder: str, model_id: str) -> str:
    """The newest commit of the model's main branch on the hub, 40 hexadecimal digits. Raises EncoderError."""
    from httpx2 import HTTPError
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        commit = HfApi(endpoint=os.environ.get("HF_ENDPOINT")).model_info(model_id, timeout=30).sha
    except (HfHubHTTPError, HFValidationError, HTTPError, OSError) as error:
        raise EncoderError(
            f"the hub does not give the newest commit of encoder '{encoder}'",
            where=model_id,
            got=first_line(error),
            remedy="check the network and the model id",
        ) from None
    if re.fullmatch("[0-9a-f]{40}", str(commit)) is None:
        raise EncoderError(
            f"the hub does not give the newest commit of encoder '{encoder}'",
            where=model_id,
            expected="40 hexadecimal digits",
            got=str(commit)[:200],
            remedy="check the address of the hub (HF_ENDPOINT)",
        )
    return str(commit)


def deciding_files(folder: Path) -> list[str]:
    """The files that decide what a model computes: weights, configurations, pooling, tokenizer."""
    suffixes = {".safetensors", ".json", ".txt", ".model"}
    paths = [path for path in folder.rglob("*") if path.is_file() and path.suffix in suffixes]
    return sorted(str(path.relative_to(folder)) for path in paths)


def check_digests(encoder: str, folder: Path, pinned: dict[str, str]) -> None:
    """Raise EncoderError unless `pinned` has the sha256 of every deciding file and every sha256 is right.

    A pipe, a device or a link to a folder in the model's folder is refused too.
    """
    _refuse_special_files(encoder, folder)
    for name in sorted({*deciding_files(folder), *pinned}):
        path = folder / name
        got = sha256_of(path) if path.is_file() else "no such file"
        if pinned.get(name) != got:
            raise EncoderError(
                f"encoder '{encoder}' is not the pinned model",
                where=name,
                expected=pinned.get(name, "a pinned sha256"),
                got=got,
                remedy=f"if this is the right file, write its sha256 into encoders.{encoder}.sha256",
            )


def model_digests(folder: Path) -> dict[str, str]:
    """sha256 of the files that decide what a model computes."""
    return {name: sha256_of(folder / name) for name in deciding_files(folder)}


# --- safety ------------------------------------------------------------------------------------


def refuse_unsafe(encoder: str, folder: Path) -> None:
    """Raise EncoderError if the folder can run code, has weights only as a pickle, or asks for more than its weights.

    A folder without modules.json, as transformers saves a model, is checked too. Nothing is read before it is known to
    be a regular file.
    """
    _refuse_special_files(encoder, folder)
    if (folder / "modules.json").exists():
        _refuse_modules(encoder, folder)
    _refuse_pickles(encoder, folder)
    _refuse_arguments(encoder, folder)
    _refuse_huge_numbers(encoder, folder)


def _refuse_special_files(encoder: str, folder: Path) -> None:
    """Raise EncoderError for a pipe, a device, a broken link, or a link to a folder.

    A pipe is waited for without end. The files behind a link to a folder have no pin; a link to a file is read as the
    file (the hub's cache consists of such links).
    """
    for path in folder.rglob("*"):
        if not (path.is_file() or (path.is_dir() and not path.is_symlink())):
            raise EncoderError(
                f"encoder '{encoder}' has something else than files and folders in its folder",
                where=str(path.relative_to(folder)),
                expected="a file or a folder",
                got="a link to a folder" if path.is_dir() else "a pipe, a device or a broken link",
                remedy="copy the model again, with the files in the place of the links (cp -rL)",
            )


def _refuse_modules(encoder: str, folder: Path) -> None:
    """Raise EncoderError if modules.json names code of the folder, or a place outside of the folder."""
    if has_space(encoder, folder):
        _refuse_code(encoder, folder)
    for module in _read_modules(encoder, folder):
        path = module.get("path", "")
        if not isinstance(path, str) or Path(path).is_absolute() or ".." in Path(path).parts:
            raise EncoderError(
                f"encoder '{encoder}' has a module outside of its folder",
                where="modules.json",
                expected="paths inside of the folder",
                got=str(path)[:200],
                remedy="save the model again with SentenceTransformer.save_pretrained",
            )
        if module.get("type") == SPACE_MODULE:
            continue
        # sentence-transformers imports a local folder's own classes even without trust_remote_code.
        if not str(module.get("type", "")).startswith("sentence_transformers."):
            raise EncoderError(
                f"encoder '{encoder}' wants to run code from its folder",
                where="modules.json",
                expected="modules of sentence_transformers",
                got=str(module.get("type")),
                remedy="use a model without custom code",
            )


def _refuse_pickles(encoder: str, folder: Path) -> None:
    """Raise EncoderError if a library could read weights from a pickle.

    Beside model.safetensors no library reads a pickle. An index takes its place only for transformers: a module of
    sentence-transformers reads pytorch_model.bin beside an index.
    """
    for path in (path for suffix in ("*.bin", "*.pt", "*.pth", "*.ckpt") for path in folder.rglob(suffix)):
        instead = ["model.safetensors"] + ["model.safetensors.index.json"] * (path.name != "pytorch_model.bin")
        if not any((path.parent / name).is_file() for name in instead):
            raise _pickle_error(encoder, str(path.relative_to(folder)), path.name)
    for path in folder.rglob("*.safetensors.index.json"):
        index = _read_json(encoder, folder, path)
        files = index.get("weight_map") if isinstance(index, dict) else None
        for name in files.values() if isinstance(files, dict) else [files]:
            if not isinstance(name, str) or Path(name).name != name or not name.endswith(".safetensors"):
                raise _pickle_error(encoder, str(path.relative_to(folder)), str(name)[:200])


def _pickle_error(encoder: str, where: str, got: str) -> EncoderError:
    return EncoderError(
        f"encoder '{encoder}' has its weights in a pickle",
        where=where,
        expected="model.safetensors, or files *.safetensors of this folder in an index",
        got=got,
        remedy="convert the weights with safetensors.torch.save_model, or use a revision that has safetensors",
    )


def _refuse_arguments(encoder: str, folder: Path) -> None:
    """Raise EncoderError if a configuration of sentence-transformers passes on an argument that can run code.

    A tokenizer of another place is refused too: the place has no pin.
    """
    for path in folder.rglob("sentence_*_config.json"):
        config = _read_json(encoder, folder, path)
        for key, value in config.items() if isinstance(config, dict) else [("", config)]:
            if ARGUMENTS.fullmatch(key):
                given = value if isinstance(value, dict) else {key: value}
                refused = [name for name in given if name not in SAFE_ARGUMENTS | {"attn_implementation"}]
                if str(given.get("attn_implementation") or "sdpa") not in SAFE_ATTENTIONS:
                    refused.append(f"attn_implementation: {given['attn_implementation']}")
            else:
                refused = [key] if key in ("", "tokenizer_name_or_path", "processor_name") else []
            if refused:
                raise EncoderError(
                    f"encoder '{encoder}' gives the library an argument that is not known to be safe",
                    where=f"{path.relative_to(folder)}, {key}",
                    expected=f"of {', '.join(sorted(SAFE_ARGUMENTS))}; attn_implementation: eager or sdpa",
                    got=refused[0][:200],
                    remedy="take the argument out, and pin the changed file",
                )


def _refuse_huge_numbers(encoder: str, folder: Path) -> None:
    """Raise EncoderError if a configuration asks for many more layers, or for larger ones, than the weights are.

    The libraries make all layers before they read the weights: some bytes of JSON would take hours, or gigabytes.
    """
    most = max(MOST_LAYERS, sum(_count_tensors(path) for path in folder.rglob("*.safetensors")))
    for path in folder.rglob("*config*.json"):
        sizes: Counter[str] = Counter()
        for key, number in _numbers(_read_json(encoder, folder, path)):
            # The libraries know word_embedding_dimension, the older name, too.
            sizes[key.replace("word_embedding", "embedding")] += max(number, 1)
            if any(part in key.lower() for part in LAYERS) and abs(number) > most:
                raise _number_error(encoder, f"{path.relative_to(folder)}, {key}", f"at most {most}", number)
        weights = sum(file.stat().st_size for file in path.parent.glob("*.safetensors"))
        for keys in SIZES.get(path.name, ()):
            asked = math.prod(sizes.get(key, 1) for key in keys)
            if keys[0] in sizes and asked > weights:
                where = f"{path.relative_to(folder)}, {' x '.join(keys)}"
                raise _number_error(encoder, where, f"at most the {weights} bytes of the weights", asked)


def _number_error(encoder: str, where: str, expected: str, got: int) -> EncoderError:
    return EncoderError(
        f"encoder '{encoder}' asks for more than its weights are",
        where=where,
        expected=expected,
        got=str(got)[:200],
        remedy="save the model again with SentenceTransformer.save_pretrained",
    )


def _numbers(tree: Any) -> Iterator[tuple[str, int]]:
    """Every integer of a JSON value, with the nearest key above."""
    waiting = [("", tree)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.items()
        elif isinstance(value, list):
            waiting += [(key, item) for item in value]
        elif isinstance(value, int):
            yield key, value


def _count_tensors(path: Path) -> int:
    """The number of tensors in a safetensors file by its header; 0 if the header is damaged."""
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        try:
            header = json.loads(stream.read(length)) if length <= LONGEST_HEADER else {}
        except (ValueError, RecursionError):
            return 0  # the library refuses the file
    return len(header) if isinstance(header, dict) else 0


def has_space(encoder: str, folder: Path) -> bool:
    """Whether `sentfold export` wrote the folder with a map that is not linear. Raises EncoderError."""
    return any(module.get("type") == SPACE_MODULE for module in _read_modules(encoder, folder))


def _refuse_code(encoder: str, folder: Path) -> None:
    """Raise EncoderError if a folder with a space has or names code."""
    named = [
        path for path in folder.rglob("*.json") if "auto_map" in path.read_text(encoding="utf-8", errors="replace")
    ]
    for path in [*folder.rglob("*.py"), *named]:
        raise EncoderError(
            f"encoder '{encoder}' wants to run code from its folder",
            where=str(path.relative_to(folder)),
            expected="no file *.py, and no auto_map",
            remedy="export the model again with `sentfold export`",
        )


def _read_modules(encoder: str, folder: Path) -> list[dict[str, Any]]:
    modules = _read_json(encoder, folder, folder / "modules.json", what="has no list of modules")
    if (
        not isinstance(modules, list)
        or not 0 < len(modules) <= MOST_MODULES
        or not all(isinstance(module, dict) for module in modules)
    ):
        raise EncoderError(
            f"encoder '{encoder}' has no list of modules",
            where="modules.json",
            expected=f"a JSON list of 1 to {MOST_MODULES} modules, as sentence-transformers saves it",
            got=str(modules)[:200],
            remedy="save the model again with SentenceTransformer.save_pretrained",
        )
    return modules


def _read_json(encoder: str, folder: Path, path: Path, *, what: str = "has a file that is not JSON") -> Any:
    """The value in a JSON file of the folder. Raises EncoderError."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # RecursionError: brackets nested too deeply
        raise EncoderError(
            f"encoder '{encoder}' {what}",
            where=str(path.relative_to(folder)),
            expected="JSON, as sentence-transformers saves it",
            got=first_line(error),
            remedy="save the model again with SentenceTransformer.save_pretrained",
        ) from None
