"""How fast the word encoders are, compared with a plain implementation, with fse and with a sentence transformer.

    SENTFOLD_MIRROR=../shared/corpora python -m benchmarks.encoders [--json FILE] [--fse-python PYTHON]

One thread, CPU time. A rate is that of the fastest repeat; the JSON also keeps the least and the greatest time of
the repeats, in seconds for all sentences. Fitting and loading are not counted; the fit is stated apart. The sentences
are the distinct ones of sts12, sts13, sts15, stsb and sickr in the mirror; the words are WordLlama's, 256 dimensions.
"ids in" starts at rows of the lexicon, "text in" at the texts, with whitespace tokens or with the method's own. The
plain implementation is tests/reference/naive.py, sentence by sentence, given its directions, over a sample. The
transformer encodes the same sample in the same run; its seconds are scaled to all sentences.
fse (tokens in) is run by the interpreter that --fse-python names, because fse needs older libraries.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything loads a BLAS

import argparse
import gc
import json
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

if Path(sys.path[0]).name == "benchmarks":  # called as a file: our coverage.py must not pass for the library
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import numpy as np
import polars as pl
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from sentfold.encoders.base.lexicon import Clusters, Lexicon
from sentfold.encoders.base.protocol import Encoder, find_method
from sentfold.encoders.base.ragged import number_tokens
from sentfold.encoders.base.settings import make_settings
from sentfold.encoders.model_folder import ModelSource
from sentfold.encoders.transformer import TransformerEncoder
from sentfold.words.counts import WordCounts
from sentfold.words.tokenizers import TOKENIZERS, tokenize
from sentfold.words.vectors import WordVectorParameters, level_variance
from sentfold.words.wordllama import token_means
from tests.reference import naive

CORPORA = ("sts12", "sts13", "sts15", "stsb", "sickr")
METHODS = ["average", "sif", "usif", "pmeans", "dct", "vlawe", "s3e", "lase", "gem"]
FSE = ("average", "sif", "usif")  # methods that fse has too
TRANSFORMER = "minilm"  # the encoder of params.yaml that is timed with them
SHARED = ("ids in", "tokens in", "text in, whitespace")  # ways in that do not depend on the method's tokeniser
CLUSTERS = 50
# Sentences per second with ids in, that each method is to reach; and SIF with text in.
TARGETS = {"average": 400_000, "sif": 400_000, "usif": 100_000, "s3e": 20_000, "lase": 20_000, "gem": 5_000}
TEXT_TARGET = {"sif": 200_000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sample", type=int, default=3000, help="sentences for what is slow: plain code, transformer")
    parser.add_argument("--fse-python", help="an interpreter that has numpy, gensim and fse")
    parser.add_argument("--methods", nargs="*", default=METHODS)
    arguments = parser.parse_args()
    sentences = distinct_sentences(mirror())
    drawn = np.random.default_rng(0).permutation(len(sentences))[: arguments.sample]
    sample = [sentences[row] for row in drawn]
    print(f"{len(sentences)} distinct sentences of {', '.join(CORPORA)}; {processor()}")
    with threadpool_limits(1):
        lexicon = make_lexicon(sentences)
        rows = [measure(name, lexicon, sentences, sample, arguments.repeats) for name in arguments.methods]
        rows.append(measure_transformer(sample, len(sentences), min(arguments.repeats, 3)))
        peers = measure_fse(lexicon, sentences, arguments.fse_python, arguments.repeats)
    content = {
        "corpora": CORPORA,
        "fse": peers,
        "methods": rows,
        "processor": processor(),
        "sentences": len(sentences),
        "words": len(lexicon.words),
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(table(content))


def table(content: dict[str, Any]) -> str:
    """A table: sentences per second, and how many times those of the peers that is."""
    lines = [
        "| method | ids in | target | tokens in (× fse) | text in, whitespace | text in, own | plain (×) | fit, s |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    return "\n".join([*lines, *(_table_line(row, content["fse"]) for row in content["methods"])])


def _table_line(row: dict[str, Any], fse: dict[str, Any]) -> str:
    speeds, plain = row["per_second"], row.get("plain_per_second")
    shared = {what: f"{speeds[what]:,}" if what in speeds else "" for what in SHARED}
    if shared["tokens in"] and row["method"] in fse:
        shared["tokens in"] += f" (× {speeds['tokens in'] / fse[row['method']]['per_second_infer']:.1f})"
    own = next((f"{rate:,} {what.split()[-1]}" for what, rate in speeds.items() if what not in SHARED), "the same")
    cells = [
        row["method"], shared["ids in"], f"{row['target']:,}" if row.get("target") else "", shared["tokens in"],
        shared["text in, whitespace"], own,
        f"{plain:,} (× {speeds['ids in'] / plain:.0f})" if plain else "",
        f"{row['fit_seconds']:.1f}" if plain else "",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def measure(name: str, lexicon: Lexicon, sentences: list[str], sample: list[str], repeats: int) -> dict[str, Any]:
    """Speed of one method, and of its plain implementation over a sample."""
    start = time.process_time()
    fitted: Any = make_encoder(name, lexicon, "whitespace").fit(sentences)
    fitting = time.process_time() - start
    seconds = {what: time_repeats(call, repeats) for what, call in ways_in(name, lexicon, sentences, fitted).items()}
    rates = {what: round(len(sentences) / least) for what, (least, _) in seconds.items()}
    plain_rate = plain_speed(plain_encoder(name, lexicon, fitted), sample)
    met = describe_targets(name, rates)
    print(f"{name:8} {rates}  plain {plain_rate:.0f}/s  fit {fitting:.2f} s{met}", flush=True)
    return {
        "fit_seconds": round(fitting, 3),
        "method": name,
        "per_second": rates,
        "plain_per_second": round(plain_rate),
        "seconds": round_seconds(seconds),
        "target": TARGETS.get(name),
        "times_plain": round(rates["ids in"] / plain_rate, 1),
    }


def ways_in(name: str, lexicon: Lexicon, sentences: list[str], fitted: Any) -> dict[str, Callable[[], Any]]:
    """What is timed of a method: a call for each way in."""
    words = fitted.encoder.reader.read(sentences).words
    ways: dict[str, Callable[[], Any]] = {"ids in": lambda: fitted.encode_words(words)}
    if name in FSE:
        # As fse gets them; for the other methods tokens and text differ by a split at blanks.
        tokens, index = [text.split() for text in sentences], lexicon.index
        ways["tokens in"] = lambda: fitted.encode_words(number_tokens(tokens, index))
    ways["text in, whitespace"] = lambda: fitted.encode(sentences)
    own = find_method(name).Settings().tokenizer
    if own != "whitespace":
        own_fitted = make_encoder(name, lexicon, own).fit(sentences[:2000])
        ways[f"text in, {own}"] = lambda: own_fitted.encode(sentences)
    return ways


def plain_speed(plain: Callable[[Sequence[str]], Any], sample: list[str]) -> float:
    """Sentences per second of a plain implementation, once over the sample."""
    tokens = [text.split() for text in sample]
    start = time.process_time()
    for sentence in tokens:
        plain(sentence)
    return len(tokens) / (time.process_time() - start)


def describe_targets(name: str, rates: dict[str, int]) -> str:
    """Whether a method reached the speeds that it is to reach; "" if it has none."""
    targets = {"ids in": TARGETS.get(name), "text in, whitespace": TEXT_TARGET.get(name)}
    wanted = {what: target for what, target in targets.items() if target is not None}
    said = (f"{what} {goal}: {'met' if rates[what] >= goal else 'MISSED'}" for what, goal in wanted.items())
    return f"  target {'; '.join(said)}" if wanted else ""


def measure_transformer(sample: list[str], sentences: int, repeats: int) -> dict[str, Any]:
    """Speed of a sentence transformer over the sample; its seconds are scaled to all sentences."""
    from pipeline.base.params import load_parameters

    source = load_parameters(ModelSource, f"encoders.{TRANSFORMER}")
    fitted = TransformerEncoder(TRANSFORMER, source).fit()
    fitted.encode(sample[:64])  # the first call loads and compiles
    times = time_calls(lambda: fitted.encode(sample), repeats)
    seconds = {"text in, wordpiece": (min(times), max(times))}
    rates = {what: round(len(sample) / least) for what, (least, _) in seconds.items()}
    print(f"{TRANSFORMER:8} {rates}, over {len(sample)} sentences", flush=True)
    scale = sentences / len(sample)
    scaled = {what: (least * scale, greatest * scale) for what, (least, greatest) in seconds.items()}
    return {"method": TRANSFORMER, "per_second": rates, "sampled": len(sample), "seconds": round_seconds(scaled)}


def time_repeats(call: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Least and greatest CPU seconds of a call; the first one, which compiles, is not counted."""
    call()
    times = time_calls(call, repeats)
    return min(times), max(times)


def time_calls(call: Callable[[], Any], repeats: int) -> list[float]:
    """CPU seconds of each of some calls; the garbage collector waits, as in timeit: a pass takes as long as a call."""
    seconds = []
    for _ in range(repeats):
        gc.collect()
        gc.disable()
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
        gc.enable()
    return seconds


def round_seconds(seconds: dict[str, tuple[float, float]]) -> dict[str, list[float]]:
    """For the JSON: four significant digits."""
    return {what: [float(f"{value:.4g}") for value in pair] for what, pair in seconds.items()}


# --- words ------------------------------------------------------------------------------------------


def mirror() -> Path:
    """The folder of corpora."""
    place = os.environ.get("SENTFOLD_MIRROR")
    if not place:
        sys.exit("set SENTFOLD_MIRROR to a folder with the corpora, e.g. ../shared/corpora")
    return Path(place)


def distinct_sentences(folder: Path) -> list[str]:
    """Every distinct sentence of the corpora, all splits."""
    frames = [pl.read_parquet(path) for corpus in CORPORA for path in sorted((folder / corpus).glob("*.parquet"))]
    texts = [text for frame in frames for column in ("sentence1", "sentence2") for text in frame[column].to_list()]
    return list(dict.fromkeys(texts))


def make_lexicon(sentences: list[str]) -> Lexicon:
    """Every token of every tokeniser with its WordLlama vector, enwiki's counts, and 50 clusters."""
    from pipeline.base.params import load_parameters

    seen = (word for name in TOKENIZERS for words in tokenize(sentences, name) for word in words)
    lowered = (word for words in tokenize([text.lower() for text in sentences], "whitespace") for word in words)
    words = tuple(dict.fromkeys([*seen, *lowered]))
    block = load_parameters(WordVectorParameters, "word_vectors.wordllama")
    vectors = token_means(words, package=str(block.package), sha256=block.sha256)
    frame = pl.read_parquet(mirror() / "word_freq" / "enwiki.parquet")
    counts = WordCounts(tuple(frame["word"].to_list()), frame["count"].to_numpy())
    lexicon = Lexicon(words, vectors, counts)
    levelled = level_variance(vectors, 10)
    start = time.process_time()
    weights = lexicon.smooth_inverse_frequency(1e-3)
    found = KMeans(CLUSTERS, n_init=1, random_state=0).fit(levelled, sample_weight=weights)
    print(f"{len(words)} words; clustering {time.process_time() - start:.1f} s")
    centroids = found.cluster_centers_.astype(np.float64)
    return replace(
        lexicon, vectors=levelled.astype(np.float32), clusters=Clusters(found.labels_.astype(np.int32), centroids)
    )


def make_encoder(name: str, lexicon: Lexicon, tokenizer: str) -> Encoder:
    """The published variant of a method."""
    module = find_method(name)
    values: dict[str, Any] = {"tokenizer": tokenizer}
    if name == "lase":
        values["pieces"] = False  # no word is unknown here
    encoder: Encoder = module.build(lexicon, make_settings(module, values, where="benchmark"))
    return encoder


# --- peers ------------------------------------------------------------------------------------------


def plain_encoder(name: str, lexicon: Lexicon, fitted: Any) -> Callable[[Sequence[str]], Any]:
    """The method's equations for one sentence, its directions and weights known beforehand."""
    table = dict(zip(lexicon.words, lexicon.vectors.astype(np.float64), strict=True))
    counts = dict(zip(lexicon.counts.words, lexicon.counts.counts.tolist(), strict=True))
    total = sum(counts.values())
    clusters = lexicon.demand_clusters("the benchmark")
    labels = dict(zip(lexicon.words, clusters.labels.tolist(), strict=True))
    centroids = clusters.centroids
    assert centroids is not None
    learned = fitted.learned
    rows, strengths = learned.get("directions"), learned.get("strengths", ())

    def sif_weight(word: str) -> float:
        return 1e-3 / (1e-3 + counts.get(word, 0) / total)

    def laplace(word: str) -> float:
        return (total + len(counts)) / (1 + counts.get(word, 0))

    if name == "average":
        return lambda words: naive.average(words, table)
    if name == "sif":
        return lambda words: naive.without(naive.weighted_average(words, table, sif_weight), rows, strengths)
    if name == "usif":
        a, rarest = naive.usif_a(counts, 11), min(counts.values()) / total

        def usif(words: Sequence[str]) -> Any:
            matrix = np.array([table[word] for word in words])
            norms = np.linalg.norm(matrix, axis=0)
            weights = np.array([a / (a / 2 + (counts[w] / total if w in counts else rarest)) for w in words])
            return naive.without(np.mean(weights[:, None] * matrix / norms, axis=0), rows, strengths)

        return usif
    if name == "pmeans":

        def pmeans(words: Sequence[str]) -> Any:
            matrix = np.array([table[word] for word in words])
            return np.concatenate([matrix.mean(axis=0), matrix.min(axis=0), matrix.max(axis=0)])

        return pmeans
    if name == "dct":
        from scipy.fft import dct

        def transform(words: Sequence[str]) -> Any:
            matrix = np.array([table[word] for word in words])
            return dct(matrix, n=max(len(words), 6), norm="ortho", axis=0)[:6].reshape(-1)

        return transform
    if name == "vlawe":

        def vlawe(words: Sequence[str]) -> Any:
            sums = np.zeros_like(centroids)
            for word in words:
                sums[labels[word]] += table[word] - centroids[labels[word]]
            powered = np.sign(sums) * np.sqrt(np.abs(sums))
            return powered.reshape(-1) / np.linalg.norm(powered)

        return vlawe
    if name in ("s3e", "lase"):
        weight = laplace if name == "lase" else sif_weight
        upper = np.triu_indices(len(centroids))
        scale = np.where(upper[0] == upper[1], 1.0, 1.0 if name == "lase" else 2**0.5)

        def subspace(words: Sequence[str]) -> Any:
            phi = np.zeros_like(centroids)
            mean = np.zeros(centroids.shape[1])
            types = set(words)
            for word in types:
                phi[labels[word]] += weight(word) * (table[word] - centroids[labels[word]])
                mean += weight(word) * table[word]
            part = np.cov(phi, bias=True)[upper] * scale
            if name == "lase":
                part = np.sign(part) * np.sqrt(np.abs(part))
            part = part / np.linalg.norm(part)
            return part if name == "lase" else naive.without(np.concatenate([mean / len(types), part]), rows, strengths)

        return subspace
    values = learned["singular_values"]
    return lambda words: naive.gem(words, table, rows, values, window=7, removed=17, released=False)


def measure_fse(lexicon: Lexicon, sentences: list[str], python: str | None, repeats: int) -> dict[str, Any]:
    """fse's sentences per second, tokens in, in the environment of the interpreter `python`; or why not."""
    if python is None:
        print("fse      not run: give --fse-python an interpreter that has it")
        return {"absent": "no interpreter that has it was given"}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.joinpath("words.txt").write_text("\n".join(lexicon.words), encoding="utf-8")
        folder.joinpath("sentences.txt").write_text(
            "\n".join(" ".join(text.split()) for text in sentences), encoding="utf-8"
        )
        np.save(folder / "vectors.npy", lexicon.vectors)
        np.save(folder / "counts.npy", lexicon.counts.of(lexicon.words))
        peer = Path(__file__).with_name("fse_peer.py")
        done = subprocess.run(
            [python, "-P", str(peer), place, str(repeats)], capture_output=True, text=True, check=False
        )
    if done.returncode:
        print(f"fse      failed: {done.stderr.strip().splitlines()[-1:]}")
        return {"absent": "it failed"}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    print(f"fse      {found}")
    return found


def processor() -> str:
    """The processor's name; of other signs than an audit takes, such as those of samples of processors, blanks."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    name = next((line.partition(":")[2] for line in lines if line.startswith("model name")), platform.machine())
    return " ".join(re.sub(r"[^\w.,()@+/:=-]", " ", name, flags=re.ASCII).split())


if __name__ == "__main__":
    main()
