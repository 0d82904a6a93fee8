"""Stage `embed`: the sentences of one corpus through one sentence transformer."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field, model_validator
from tqdm import tqdm

from pipeline.artifacts import (
    Vectors,
    absence,
    corpus_path,
    read_record,
    read_table,
    space_path,
    write_absence,
    write_vectors,
)
from pipeline.errors import EncoderError, first_line
from pipeline.params import Parameters, load_parameters

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class EncoderParameters(Parameters):
    """Where one sentence transformer's weights are, and which bytes they must be.

    package   an installed distribution that carries a model folder
    folder    a local model folder
    hub       a model id on the Hugging Face hub; `revision` is its full commit
    sha256    file inside the model folder -> digest it must have; for package and folder every file
              that decides what the model computes must be here
    """

    package: str | None = None
    folder: str | None = None
    hub: str | None = None
    revision: str | None = Field(default=None, pattern="^[0-9a-f]{40}$")
    sha256: dict[str, str] = {}

    @model_validator(mode="after")
    def _one_place(self) -> EncoderParameters:
        if sum(place is not None for place in (self.package, self.folder, self.hub)) != 1:
            raise ValueError("give exactly one of: package, folder, hub")
        return self


class EmbedParameters(Parameters):
    """How every transformer is run.

    batch_size   sentences per batch; all sentences of a batch have the same number of tokens
    """

    batch_size: int = Field(ge=1, le=4096)


@dataclass(frozen=True)
class Encoding:
    """Vectors of sentences, (n, d) float32 in the order asked for, and what the plan counted."""

    vectors: Vectors
    batches: int
    truncated: int
    blank: int


def embed(suite: str, corpus: str, encoder: str) -> int:
    """Embed one corpus with one encoder and write the space. Returns the number of sentences."""
    place = load_parameters(EncoderParameters, f"encoders.{encoder}")
    plan = load_parameters(EmbedParameters, "embed")
    source, target = corpus_path(suite, corpus, "sentences"), space_path(suite, encoder, corpus)
    reason = absence(source, kind="sentences")
    if reason is not None:
        write_absence(target, reason, kind="vectors", inputs=[source])
        return 0
    sentences = read_table(source, kind="sentences").column("text").to_pylist()
    folder = locate_model(encoder, place)
    model = load_model(encoder, folder)
    encoding = encode_sentences(model, sentences, batch_size=plan.batch_size, label=f"{encoder} {corpus}")
    write_vectors(
        target,
        encoding.vectors,
        parameters={"encoder": place.model_dump(), **plan.model_dump()},
        inputs=[source],
        notes={
            "batches": encoding.batches,
            "blank": encoding.blank,
            "dimension": encoding.vectors.shape[1],
            "model": model_digests(folder),
            "sentences": len(sentences),
            "task": read_record(source, kind="sentences")["notes"]["task"],
            "truncated": encoding.truncated,
        },
    )
    return len(sentences)


# --- the model ---------------------------------------------------------------------------------


def locate_model(encoder: str, place: EncoderParameters) -> Path:
    """The model's folder on this machine, its bytes checked. Raises EncoderError."""
    if place.hub is not None:
        return _fetch_from_hub(encoder, place)
    folder = _package_folder(encoder, place.package) if place.package else Path(place.folder or "")
    if not (folder / "modules.json").exists():
        raise EncoderError(
            f"encoder '{encoder}' has no model folder",
            where=str(place.folder or place.package),
            expected="a folder with modules.json, as sentence-transformers saves it",
            remedy=f"correct params.yaml: encoders.{encoder}",
        )
    check_digests(encoder, folder, place.sha256)
    return folder


def _package_folder(encoder: str, package: str) -> Path:
    try:
        entries = files(package) or []
    except PackageNotFoundError:
        raise EncoderError(
            f"the package '{package}' of encoder '{encoder}' is not installed",
            where="the Python environment",
            remedy="run `make install`, which installs requirements.lock",
        ) from None
    found = [Path(str(entry.locate())).parent for entry in entries if entry.name == "modules.json"]
    return found[0] if found else Path(package)


def check_pin(encoder: str, place: EncoderParameters) -> None:
    """EncoderError if the encoder is to come from the hub and no commit of it is pinned."""
    if place.hub is not None and place.revision is None:
        raise EncoderError(
            f"encoder '{encoder}' is not pinned to a revision",
            where=f"params.yaml: encoders.{encoder}.revision",
            expected="a full commit of 40 hexadecimal digits",
            got="null",
            remedy=f"with a network, `sentfold pin-encoder {encoder}` prints the line to put there",
        )


def _fetch_from_hub(encoder: str, place: EncoderParameters) -> Path:
    check_pin(encoder, place)
    from httpx2 import HTTPError
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        # No pattern for .bin, .pt or .py: pickles and code are never fetched, let alone run.
        return Path(
            snapshot_download(
                str(place.hub),
                revision=place.revision,
                allow_patterns=["*.json", "*.txt", "*.model", "*.safetensors"],
                endpoint=os.environ.get("HF_ENDPOINT"),
            )
        )
    except (HfHubHTTPError, LocalEntryNotFoundError, HFValidationError, HTTPError, OSError) as error:
        raise EncoderError(
            f"encoder '{encoder}' cannot be fetched",
            where=f"{place.hub}@{place.revision}",
            got=first_line(error),
            remedy="check the network and the revision; a model that lies on disk is given by `folder:`",
        ) from None


def deciding_files(folder: Path) -> list[str]:
    """The files that decide what a model computes: weights, configurations, pooling, tokenizer."""
    suffixes = {".safetensors", ".json", ".txt", ".model"}
    found = [path for path in folder.rglob("*") if path.is_file() and path.suffix in suffixes]
    return sorted(str(path.relative_to(folder)) for path in found)


def check_digests(encoder: str, folder: Path, pinned: dict[str, str]) -> None:
    """EncoderError unless `pinned` covers every deciding file and every digest is right."""
    for name in sorted({*deciding_files(folder), *pinned}):
        path = folder / name
        got = _digest(path) if path.exists() else "no such file"
        if pinned.get(name) != got:
            raise EncoderError(
                f"encoder '{encoder}' is not the pinned model",
                where=name,
                expected=pinned.get(name, "a pinned sha256"),
                got=got,
                remedy=f"if these are the bytes you mean, set params.yaml: encoders.{encoder}.sha256",
            )


def model_digests(folder: Path) -> dict[str, str]:
    """sha256 of the files that decide what a model computes."""
    return {name: _digest(folder / name) for name in deciding_files(folder)}


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def load_model(encoder: str, folder: Path) -> SentenceTransformer:
    """Load a model folder: safetensors only, no code from the folder, float32, on the CPU."""
    refuse_unsafe(encoder, folder)
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
    try:
        model = SentenceTransformer(
            str(folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )
    except Exception as error:  # noqa: BLE001  # a damaged model makes torch, transformers or json raise anything
        raise EncoderError(
            f"encoder '{encoder}' cannot be loaded",
            where=folder.name,
            expected="a sentence-transformers folder with safetensors weights",
            got=f"{type(error).__name__}: {first_line(error)}",
            remedy="save the model again with SentenceTransformer.save_pretrained",
        ) from None
    return model.float().eval()


def refuse_unsafe(encoder: str, folder: Path) -> None:
    """EncoderError if the folder asks for code of its own, or holds weights only as a pickle."""
    for module in _read_modules(encoder, folder):
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
                remedy="convert it with safetensors.torch.save_model, or take a revision that has safetensors",
            )


def _read_modules(encoder: str, folder: Path) -> list[dict[str, Any]]:
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
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


# --- the plan ----------------------------------------------------------------------------------


def encode_sentences(
    model: SentenceTransformer, sentences: Sequence[str], *, batch_size: int, label: str = ""
) -> Encoding:
    """One vector per sentence, in the order given.

    A batch holds sentences of one token length, sorted by text, so there is no padding, and runs on
    one thread, so a vector depends on the others at most through the blocking of matrix products
    (measured by benchmarks/batch_effect.py).
    An empty or blank sentence is encoded as the model encodes no words; a sentence longer than the
    model's limit is cut there. Both are counted. Unpaired surrogates become U+FFFD.
    """
    texts = [text.encode("utf-8", errors="surrogatepass").decode("utf-8", errors="replace") for text in sentences]
    limit = int(model.max_seq_length or 0)
    lengths = token_lengths(model, texts)
    dimension = int(model.get_embedding_dimension() or 0)
    vectors = np.zeros((len(texts), dimension), dtype=np.float32)
    batches = 0
    with _one_thread(), tqdm(total=len(texts), desc=label, unit=" sentences", disable=None, mininterval=0.5) as bar:
        for rows in plan_batches(texts, np.minimum(lengths, limit) if limit else lengths, batch_size=batch_size):
            batch = [texts[row] for row in rows]
            vectors[rows] = model.encode(
                batch, batch_size=len(batch), convert_to_numpy=True, show_progress_bar=False
            ).astype(np.float32)
            batches += 1
            bar.update(len(rows))
    return Encoding(
        vectors=vectors,
        batches=batches,
        truncated=int((lengths > limit).sum()) if limit else 0,
        blank=sum(not text.strip() for text in texts),
    )


@contextmanager
def _one_thread() -> Iterator[None]:
    """Torch splits a sum by its number of threads; with one, the bits do not depend on the machine's cores."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def token_lengths(model: Any, texts: Sequence[str], *, chunk: int = 1024) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Number of tokens of each text before truncation, special tokens included."""
    lengths: list[int] = []
    for start in range(0, len(texts), chunk):
        encoded = model.tokenizer(list(texts[start : start + chunk]), padding=False, truncation=False, verbose=False)
        lengths.extend(len(ids) for ids in encoded["input_ids"])
    return np.array(lengths, dtype=np.int64)


def plan_batches(texts: Sequence[str], lengths: np.ndarray[Any, Any], *, batch_size: int) -> Iterator[list[int]]:
    """Rows of each batch: one token length per batch, longest first, sorted by text within."""
    order = sorted(range(len(texts)), key=lambda row: (-int(lengths[row]), texts[row]))
    batch: list[int] = []
    for row in order:
        if batch and (len(batch) == batch_size or lengths[row] != lengths[batch[0]]):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
