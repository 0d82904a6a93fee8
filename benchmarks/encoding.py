"""How fast one CPU encodes sentences by a sentence transformer, in several ways and by plain sentence-transformers.

    SENTFOLD_MIRROR=../shared/corpora python -m benchmarks.encoding --json FILE [--sentences 2500] [--threads 1]

All ways encode the same real sentences, the first distinct ones of stsb in the mirror, with the same number of threads.
Plain is SentenceTransformer.encode at the best of several batch sizes (its default, 32, is stated apart).
Ways:
- equal lengths: batches of one token length, without padding (sentfold's own, in float32)
- token budget: sentences sorted by length, batches of at most so many tokens, padding included
- bfloat16: equal lengths under torch's autocast, where the processor has instructions for it
- onnx: token budget in ONNX Runtime, where onnx and onnxruntime are installed (they are in no lock)
`ours` is the fastest way whose lowest cosine with plain float32 is LEAST_COSINE or more. Rates are those of the fastest
repeat, wall-clock time on an idle machine; the ways take turns. The libraries choose their own instructions: nothing
here runs under the numeric profile, and no reported number comes from these vectors.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks.inputs import mirror
from sentfold.encoders.model_folder import ModelSource, locate_model
from sentfold.encoders.transformer import load_model, plan_batches, token_lengths
from sentfold.fold.texts import find_text_encoder
from sentfold.numeric_profile import NATIVE, SETTINGS, profile_name

ENCODER = "all-MiniLM-L6-v2"
BATCHES = (16, 32, 64, 128, 256)
BUDGETS = (2048, 8192)
LEAST_COSINE = 0.999
BF16_FLAGS = {"avx512_bf16", "amx_bf16"}

Vectors = npt.NDArray[np.float32]
Way = Callable[[Sequence[str]], Vectors]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--sentences", type=int, default=2500)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if profile_name() != NATIVE or "ONEDNN_MAX_CPU_ISA" in os.environ:
        raise SystemExit(f"the numeric profile holds the libraries back: run without {', '.join(sorted(SETTINGS))}")
    import torch

    torch.set_num_threads(options.threads)
    texts = read_sentences(options.sentences)
    found = find_text_encoder(ENCODER)
    source = ModelSource(folder=found.folder, package=found.package, sha256=found.sha256)
    model = load_model(ENCODER, locate_model(ENCODER, source))
    with tempfile.TemporaryDirectory() as folder:
        plain, ways = plain_ways(model), dict(fast_ways(model, Path(folder), options.threads))
        seconds, vectors = measure({**plain, **ways}, texts, options.repeats)
    content = compare(seconds, vectors, list(plain), list(ways), len(texts))
    content |= {"processor": processor(), "sentences": len(texts), "threads": options.threads}
    text = json.dumps(content, indent=2, ensure_ascii=False)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")


def read_sentences(number: int) -> list[str]:
    """The first distinct sentences of stsb's test and train parts, in the order of the files."""
    columns = [
        pl.read_parquet(mirror() / "stsb" / f"{split}.parquet")[column].to_list()
        for split in ("test", "train")
        for column in ("sentence1", "sentence2")
    ]
    return list(dict.fromkeys(text for column in columns for text in column))[:number]


def measure(
    ways: dict[str, Way], texts: Sequence[str], repeats: int
) -> tuple[dict[str, list[float]], dict[str, Vectors]]:
    """Seconds of each repeat, and the vectors, of each way. The ways take turns: a slow minute hits them all."""
    vectors = {name: encode(texts) for name, encode in ways.items()}  # the first run also warms the libraries up
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, encode in ways.items():
            start = time.perf_counter()
            encode(texts)
            seconds[name].append(round(time.perf_counter() - start, 3))
    return seconds, vectors


def compare(
    seconds: dict[str, list[float]], vectors: dict[str, Vectors], plain: list[str], ways: list[str], n: int
) -> dict[str, Any]:
    """The fastest way that keeps the cosine, compared with the best plain one; the rate and lowest cosine of each."""
    rates = {name: round(n / min(times), 1) for name, times in seconds.items()}
    lowest = {name: round(lowest_cosine(made, vectors["plain 32"]), 6) for name, made in vectors.items()}
    best = max(plain, key=rates.__getitem__)
    ours = max((name for name in ways if lowest[name] >= LEAST_COSINE), key=rates.__getitem__)
    return {
        "plain_sentences_per_s": rates[best],
        "ours_sentences_per_s": rates[ours],
        "ratio": round(rates[ours] / rates[best], 3),
        "min_cosine": lowest[ours],
        "plain": best,
        "plain_32_sentences_per_s": rates["plain 32"],
        "ours": ours,
        "ways": {name: {"rate": rates[name], "min_cosine": lowest[name], "seconds": seconds[name]} for name in seconds},
    }


def lowest_cosine(one: Vectors, other: Vectors) -> float:
    """The lowest cosine of two vectors of one sentence."""
    a, b = (x.astype(np.float64) / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True) for x in (one, other))
    return float((a * b).sum(axis=1).min())


# --- ways -------------------------------------------------------------------------------------------


def plain_ways(model: Any) -> dict[str, Way]:
    """sentence-transformers as it is, by batch size."""
    return {
        f"plain {size}": lambda texts, size=size: model.encode(list(texts), batch_size=size, show_progress_bar=False)
        for size in BATCHES
    }


def fast_ways(model: Any, folder: Path, threads: int) -> Iterator[tuple[str, Way]]:
    """The other ways that can run here."""
    yield "equal lengths", lambda texts: encode_planned(model, texts)
    for budget in BUDGETS:
        yield f"token budget {budget}", lambda texts, budget=budget: encode_planned(model, texts, budget=budget)
    if BF16_FLAGS & processor_flags():
        yield "bfloat16", lambda texts: encode_planned(model, texts, bfloat16=True)
    if find_spec("onnx") and find_spec("onnxruntime"):
        session = export_onnx(model, folder, threads)
        for budget in BUDGETS:
            yield f"onnx {budget}", lambda texts, budget=budget: encode_onnx(model, session, texts, budget)


def encode_planned(model: Any, texts: Sequence[str], *, budget: int | None = None, bfloat16: bool = False) -> Vectors:
    """Batches of one length, or of at most `budget` tokens; the model itself computes them."""
    import torch

    vectors = np.zeros((len(texts), int(model.get_embedding_dimension())), dtype=np.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16) if bfloat16 else nullcontext():
        for rows in batches(model, texts, budget):
            made = model.encode([texts[row] for row in rows], batch_size=len(rows), show_progress_bar=False,
                                convert_to_tensor=True)  # fmt: skip
            vectors[rows] = made.float().numpy()
    return vectors


def batches(model: Any, texts: Sequence[str], budget: int | None) -> Iterator[list[int]]:
    """Rows of each batch, the longest first: of one token length, or of at most `budget` tokens with padding."""
    lengths = np.minimum(token_lengths(model, texts), model.max_seq_length)
    if budget is None:
        yield from plan_batches(texts, lengths, batch_size=64)
        return
    batch: list[int] = []
    for row in np.argsort(-lengths, kind="stable").tolist():
        if batch and (len(batch) + 1) * lengths[batch[0]] > budget:
            yield batch
            batch = []
        batch.append(row)
    yield batch


def export_onnx(model: Any, folder: Path, threads: int) -> Any:
    """The transformer of the model as a session of ONNX Runtime."""
    import onnxruntime
    import torch

    class Tokens(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model[0].auto_model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.inner(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    example = model.tokenizer(["one sentence", "two"], padding=True, return_tensors="pt")
    names, path = ["input_ids", "attention_mask"], folder / "model.onnx"
    axes = {key: {0: "batch", 1: "length"} for key in [*names, "tokens"]}
    torch.onnx.export(Tokens(), tuple(example[name] for name in names), str(path), input_names=names,
                      output_names=["tokens"], dynamic_axes=axes, dynamo=False)  # fmt: skip
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def encode_onnx(model: Any, session: Any, texts: Sequence[str], budget: int) -> Vectors:
    """Mean of the tokens at unit length, as the encoder pools."""
    vectors = np.zeros((len(texts), int(model.get_embedding_dimension())), dtype=np.float32)
    for rows in batches(model, texts, budget):
        tokens = model.tokenizer([texts[row] for row in rows], padding=True, truncation=True,
                                 max_length=model.max_seq_length, return_tensors="np")  # fmt: skip
        inputs = {name: tokens[name].astype(np.int64) for name in ("input_ids", "attention_mask")}
        hidden = session.run(None, inputs)[0]
        means = (hidden * inputs["attention_mask"][:, :, None]).sum(axis=1)
        vectors[rows] = means / np.linalg.norm(means, axis=1, keepdims=True)
    return vectors


# --- the machine ------------------------------------------------------------------------------------


def processor_flags() -> set[str]:
    """The features that Linux names."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return next((set(line.split()) for line in lines if line.startswith("flags")), set())


def processor() -> str:
    """The name of the processor."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    main()
