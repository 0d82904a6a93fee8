"""The folder of a sentence transformer: its path, the sha256 that its files must have, and the refused files."""

from __future__ import annotations

import json
import os
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from sentfold.errors import EncoderError, UnansweredError, first_line
from sentfold.files import sha256_of
from sentfold.settings import Parameters

SPACE_MODULE = "sentfold.decision.module.SpaceModule"  # imported from the installed library, not from the folder


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
    if not (folder / "modules.json").exists():
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
    """The newest commit of the model's main branch on the hub, 40 hexadecimal digits."""
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
    return str(commit)


def deciding_files(folder: Path) -> list[str]:
    """The files that decide what a model computes: weights, configurations, pooling, tokenizer."""
    suffixes = {".safetensors", ".json", ".txt", ".model"}
    paths = [path for path in folder.rglob("*") if path.is_file() and path.suffix in suffixes]
    return sorted(str(path.relative_to(folder)) for path in paths)


def check_digests(encoder: str, folder: Path, pinned: dict[str, str]) -> None:
    """Raise EncoderError unless `pinned` has the sha256 of every deciding file and every sha256 is right."""
    for name in sorted({*deciding_files(folder), *pinned}):
        path = folder / name
        got = sha256_of(path) if path.exists() else "no such file"
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
    """Raise EncoderError if the folder asks to run its own code, or has weights only as a pickle."""
    if has_space(encoder, folder):
        _refuse_code(encoder, folder)
    for module in _read_modules(encoder, folder):
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
    pickles = [path for suffix in ("*.bin", "*.pt", "*.pth", "*.ckpt") for path in folder.rglob(suffix)]
    for path in pickles:
        if not any(path.parent.glob("*.safetensors")):
            raise EncoderError(
                f"encoder '{encoder}' has its weights in a pickle",
                where=str(path.relative_to(folder)),
                expected="model.safetensors",
                got=path.name,
                remedy="convert the weights with safetensors.torch.save_model, or use a revision that has safetensors",
            )


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
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # RecursionError: brackets nested too deeply
        modules = first_line(error)
    if not isinstance(modules, list) or not modules or not all(isinstance(module, dict) for module in modules):
        raise EncoderError(
            f"encoder '{encoder}' has no list of modules",
            where="modules.json",
            expected="a JSON list of modules, as sentence-transformers saves it",
            got=str(modules)[:200],
            remedy="save the model again with SentenceTransformer.save_pretrained",
        )
    return modules
