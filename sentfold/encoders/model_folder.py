"""The folder of a sentence transformer: its path, and the sha256 that its files must have."""

from __future__ import annotations

import os
import re
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from pydantic import Field, model_validator

from sentfold.encoders.model_safety import everything, refuse_special_files
from sentfold.errors import EncoderError, UnansweredError, first_line
from sentfold.files import sha256_of
from sentfold.settings import Parameters

# The files that decide nothing: texts, pictures, code (which never runs), the notes of a download, and weights in
# formats that are never read.
IDLE_SUFFIXES = {".md", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".py", ".metadata", ".lock"} | {
    ".bin", ".pt", ".pth", ".ckpt", ".onnx", ".ot", ".h5", ".msgpack",
}  # fmt: skip
IDLE_NAMES = re.compile(r"\.gitattributes|\.gitignore|(LICENSE|NOTICE)[^.]*")
PLAIN_NAME = re.compile(r"[\w.]([\w./ -]*\w)?")  # which a line of YAML can have without quotes


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
                allow_patterns=["*.json", "*.txt", "*.model", "*.codes", "*.spm", "*.tokenizer", "*.safetensors"],
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

    Raises EncoderError if the model does not exist, if the hub does not answer, or for the name of a file that a line
    of YAML cannot have.
    """
    if source.hub is not None:
        return f"    revision: {_newest_revision(encoder, source.hub)}"
    digests = model_digests(_local_folder(encoder, source))
    for name in digests:
        if PLAIN_NAME.fullmatch(name) is None:
            raise EncoderError(
                f"encoder '{encoder}' has a file that cannot be pinned",
                where="the model's folder",
                expected="names of letters, digits, and the characters . _ - / and space",
                got=repr(name)[:200],
                remedy="take the file out of the folder",
            )
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
    """The files that can decide what a model computes: weights, configurations, pooling, tokenizer, and all unknown.

    Raises EncoderError if a folder cannot be listed.
    """
    return sorted(
        str(path.relative_to(folder))
        for path in everything(folder)
        if path.is_file() and path.suffix not in IDLE_SUFFIXES and IDLE_NAMES.fullmatch(path.name) is None
    )


def check_digests(encoder: str, folder: Path, pinned: dict[str, str]) -> None:
    """Raise EncoderError unless `pinned` has the sha256 of every deciding file and every sha256 is right.

    A pipe, a device or a link to a folder in the model's folder is refused too.
    """
    refuse_special_files(encoder, folder)
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
