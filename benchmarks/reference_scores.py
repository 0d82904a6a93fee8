"""Scores of the word encoders beside those of their authors' own code on the same words and sentences.

    SENTFOLD_MIRROR=FOLDER python -m benchmarks.reference_scores [--json FILE] [--skip mixture]

The reference figures were measured once by running the released code of each method, with WordLlama's token
means for word vectors as here: Spearman and Pearson of cosines over all pairs of the test sets of STSb and
STS13, ×100. Inputs as there: STSb's texts lower-cased with Moses's tokens apart, STS13's as released; runs of word
characters or of punctuation as words, but GEM's and uSIF's own tokens; the words of the texts that the mirror
holds of STS12-16, STSb and SICK; counts of English Wikipedia; S3E's and LASE's words levelled and clustered over
the types of the set that is scored. The thesis on LASE takes its counts from that set.
Where a method depends on a seed, or on the order of equally frequent words, ranges over seeds are compared. The
Gaussian mixture has full covariances, as released, and takes minutes: `--skip mixture` leaves it out.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything loads a BLAS

import argparse
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from threadpoolctl import threadpool_limits

from benchmarks.inputs import mirror
from benchmarks.moses import moses_lower
from pipeline.base.params import load_parameters
from sentfold.clusterers import blurred, kmeans, mixture
from sentfold.clusterers.base import ClusteringParameters
from sentfold.encoders.base.lexicon import Clusters, Lexicon
from sentfold.encoders.base.protocol import find_method
from sentfold.encoders.base.settings import make_settings
from sentfold.measures.base.pairs import cosines
from sentfold.measures.similarity import score_similarity
from sentfold.words.counts import WordCounts
from sentfold.words.partition import Partition, centroids_of, random_partition
from sentfold.words.tokenizers import tokenize
from sentfold.words.vectors import WordVectorParameters, level_variance
from sentfold.words.wordllama import token_means

Float32 = npt.NDArray[np.float32]
Scores = tuple[float, ...]
Settings = Mapping[str, Any]

CORPORA = ("sts12", "sts13", "sts15", "stsb", "sickr")  # of which the mirror has the texts
SETS = ("stsb", "sts13")
SEEDS = range(5)
BOUND = 0.5
# method -> the authors' code on STSb and on STS13: Spearman and Pearson, one tuple for each seed that was run.
# Of the thesis's text, which no code follows, it was another's implementation, and Spearman alone was noted.
REFERENCE: dict[str, tuple[tuple[Scores, ...], tuple[Scores, ...]]] = {
    "BOW": (((70.65, 72.33),), ((68.01, 67.51),)),
    "SIF, a direction per side": (((69.96, 72.43),), ((70.57, 70.18),)),
    "SIF, one direction": (((70.58, 72.79),), ((70.43, 70.05),)),
    "uSIF, m = 5": (((72.48, 74.81),), ((75.57, 75.43),)),
    "uSIF, m = 0": (((72.08, 74.13),), ((71.64, 71.24),)),
    "GEM as released": (((68.89, 71.19),), ((70.48, 70.66),)),
    "S3E as released, K = 10": (
        ((70.05, 72.21), (70.87, 72.92), (69.44, 71.57)),
        ((70.74, 70.34), (70.69, 70.26), (70.78, 70.37)),
    ),
    "S3E as released, K = 20": (((69.84, 72.01),), ((70.36, 70.00),)),
    "S3E and LASE as released, k-means, K = 50": (((69.86, 72.07),), ((70.05, 69.64),)),
    "LASE as released, mixture, K = 50": (((69.94, 71.99),), ((70.08, 69.72),)),
    "LASE as released, blurred, K = 50": (((69.10, 71.45),), ((69.58, 69.34),)),
    "LASE, thesis, k-means, K = 50": (((42.5,),), ((45.8,),)),
    "LASE, thesis, mixture, K = 50": (((49.0,),), ((43.3,),)),
    "LASE, thesis, blurred, K = 50": (((53.8,),), ((60.0,),)),
    "LASE, thesis, random labels, K = 50": (((58.6,), (60.7,)), ((64.1,), (65.8,))),
    "LASE, thesis, blocks of frequency, K = 50": (((56.9,),), ((67.1,),)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--skip", nargs="*", default=[], help="words in the names of methods to leave out")
    arguments = parser.parse_args()
    lexicon = make_lexicon()
    print(f"{len(lexicon.words)} words, {int((lexicon.counts.of(lexicon.words) == 0).sum())} of them not counted")
    rows = []
    with threadpool_limits(1):
        for number, corpus in enumerate(SETS):
            pairs = read_pairs(corpus, lexicon)
            print(f"{corpus}: {len(pairs.human)} pairs, {len(pairs.types.words)} types of words")
            for method, run in measure(pairs).items():
                if not any(word in method for word in arguments.skip):
                    theirs = REFERENCE[method][number] if method in REFERENCE else ()
                    rows.append(compare(corpus, method, run(), theirs))
                    print(describe(rows[-1]), flush=True)
    content = {"bound": BOUND, "rows": rows, "seeds": list(SEEDS), "words": len(lexicon.words)}
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def compare(corpus: str, method: str, ours: list[Scores], theirs: tuple[Scores, ...]) -> dict[str, Any]:
    """Ours beside the reference, and whether the two ranges over seeds come within BOUND of each other."""
    row: dict[str, Any] = {"corpus": corpus, "method": method, "ours": np.round(ours, 2).tolist()}
    if not theirs:
        return row
    known = len(theirs[0])
    ours_all, theirs_all = np.array(ours)[:, :known], np.array(theirs)
    gap = np.maximum(ours_all.min(axis=0) - theirs_all.max(axis=0), theirs_all.min(axis=0) - ours_all.max(axis=0))
    return {
        **row,
        "difference": np.round(ours_all.mean(axis=0) - theirs_all.mean(axis=0), 2).tolist(),
        "reference": theirs_all.tolist(),
        "within": bool((gap <= BOUND).all()),
    }


def describe(row: dict[str, Any]) -> str:
    """A line of the comparison: Spearman / Pearson, means over seeds, and ranges where there are several."""
    ours = show(row["ours"])
    if "reference" not in row:
        return f"{row['corpus']:6} {row['method']:42} {ours}"
    theirs = show(row["reference"])
    difference = " / ".join(f"{value:+.2f}" for value in row["difference"])
    verdict = "" if row["within"] else f"  more than {BOUND} apart"
    return f"{row['corpus']:6} {row['method']:42} {ours:40} reference {theirs:40} {difference}{verdict}"


def show(runs: list[list[float]]) -> str:
    """Means of the columns, with their ranges if there is more than one row."""
    columns = np.array(runs).T
    ranges = [f" [{column.min():.2f}, {column.max():.2f}]" if len(column) > 1 else "" for column in columns]
    return " / ".join(f"{column.mean():.2f}{span}" for column, span in zip(columns, ranges, strict=True))


# --- inputs -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Pairs:
    """A set of pairs of sentences with human scores, and the words.

    sides    first and second sentences, in the form that the reference had
    human    (m,)
    lexicon  of all words, as they come; types: of the words of this set alone, most frequent first
    """

    sides: tuple[list[str], list[str]]
    human: npt.NDArray[np.float64]
    lexicon: Lexicon
    types: Lexicon

    @property
    def sentences(self) -> list[str]:
        """All first sides, then all second sides."""
        return [*self.sides[0], *self.sides[1]]

    def score(self, vectors: Float32) -> Scores:
        """Spearman and Pearson of the cosines over all pairs, ×100; vectors in the order of `sentences`."""
        m = len(self.human)
        cosine, _ = cosines(vectors, np.stack([np.arange(m), np.arange(m) + m], axis=1))
        scores = score_similarity({"cosine": cosine}, self.human, [""] * m)
        return 100 * (scores["spearman.all.cosine"] or 0), 100 * (scores["pearson.all.cosine"] or 0)

    @cached_property
    def own_counts(self) -> WordCounts:
        """Of the regex tokens of these sentences, repeated sentences counted as often as they stand there."""
        held = Counter(word for tokens in tokenize(self.sentences, "regex") for word in tokens)
        return WordCounts(tuple(held), np.array(list(held.values()), dtype=np.int64))

    @cached_property
    def sif_weights(self) -> npt.NDArray[np.float64]:
        """Of the types."""
        return self.types.smooth_inverse_frequency(1e-3)

    @cached_property
    def levelled(self) -> Lexicon:
        """The types with the variance of ten components levelled, as S3E and LASE prepare words."""
        return replace(self.types, vectors=level_variance(self.types.vectors, 10).astype(np.float32))


def make_lexicon() -> Lexicon:
    """The words of all texts that the mirror has, WordLlama's vectors, counts of English Wikipedia."""
    texts = [
        text for corpus in CORPORA for file in sorted((mirror() / corpus).glob("*.parquet")) for text in read(file)
    ]
    words = tuple(dict.fromkeys(word for tokens in tokenize(texts, "regex") for word in tokens))
    block = load_parameters(WordVectorParameters, "word_vectors.wordllama")
    table = pl.read_parquet(mirror() / "word_freq" / "enwiki.parquet")
    counts = WordCounts(tuple(table["word"].to_list()), table["count"].to_numpy())
    return Lexicon(words, token_means(words, package=str(block.package), sha256=block.sha256), counts)


def read(file: Path) -> list[str]:
    """Both sentences of each pair, first all first ones; STSb's with Moses's tokens apart and lower-cased."""
    frame = pl.read_parquet(file)
    texts = [text for column in ("sentence1", "sentence2") for text in frame[column].to_list()]
    return [moses_lower(text) for text in texts] if file.parent.name == "stsb" else texts


def read_pairs(corpus: str, lexicon: Lexicon) -> Pairs:
    """The test set of one corpus."""
    file = mirror() / corpus / "test.parquet"
    texts = read(file)
    half = len(texts) // 2
    held = Counter(word for tokens in tokenize(texts, "regex") for word in tokens)
    words = tuple(word for word, _ in held.most_common())
    rows = [lexicon.index[word] for word in words]
    human = pl.read_parquet(file)["score"].to_numpy().astype(np.float64)
    return Pairs((texts[:half], texts[half:]), human, lexicon, Lexicon(words, lexicon.vectors[rows], lexicon.counts))


# --- methods ----------------------------------------------------------------------------------------


def measure(pairs: Pairs) -> dict[str, Callable[[], list[Scores]]]:
    """Method -> what computes its scores, one for each seed where it has seeds."""
    released = {"variant": "released", "tokenizer": "regex"}
    usif, gem = {**released, "tokenizer": "treebank"}, {**released, "tokenizer": "wordpunct"}
    once, clustered, thesis = partial(score_once, pairs), partial(score_released, pairs), partial(score_thesis, pairs)
    kmeans, mixture, blurred = (cache(partial(find, pairs)) for find in (find_kmeans, find_mixture, find_blurred))
    return {
        "BOW": lambda: once("average", released),
        "SIF, a direction per side": lambda: once("sif", released, per_side=True),
        "SIF, one direction": lambda: once("sif", released),
        "uSIF, m = 5": lambda: once("usif", usif),
        "uSIF, m = 0": lambda: once("usif", {**usif, "components": 0}),
        "GEM as released": lambda: once("gem", gem),
        "S3E as released, K = 10": lambda: clustered([kmeans(10, seed) for seed in SEEDS]),
        "S3E as released, K = 20": lambda: clustered([kmeans(20, seed) for seed in SEEDS]),
        "S3E and LASE as released, k-means, K = 50": lambda: clustered([kmeans(50, seed) for seed in SEEDS]),
        "LASE as released, mixture, K = 50": lambda: clustered([mixture(50, 0)]),
        "LASE as released, blurred, K = 50": lambda: clustered([blurred(50, seed) for seed in SEEDS]),
        "LASE, thesis, k-means, K = 50": lambda: thesis([kmeans(50, seed) for seed in SEEDS]),
        "LASE, thesis, random, sizes of k-means": lambda: thesis([deal(kmeans(50, seed), seed) for seed in SEEDS]),
        "LASE, thesis, mixture, K = 50": lambda: thesis([mixture(50, 0)]),
        "LASE, thesis, random, sizes of mixture": lambda: thesis([deal(mixture(50, 0), seed) for seed in SEEDS]),
        "LASE, thesis, blurred, K = 50": lambda: thesis([blurred(50, seed) for seed in SEEDS]),
        "LASE, thesis, random, sizes of blurred": lambda: thesis([deal(blurred(50, seed), seed) for seed in SEEDS]),
        "LASE, thesis, random labels, K = 50": lambda: thesis([random_labels(pairs, 50, seed) for seed in SEEDS]),
        "LASE, thesis, blocks of frequency, K = 50": lambda: thesis([equal_blocks(pairs, 50, seed) for seed in SEEDS]),
    }


def score_once(pairs: Pairs, method: str, settings: Settings, *, per_side: bool = False) -> list[Scores]:
    """Fitted on all sentences, or each side on itself."""
    groups = pairs.sides if per_side else (pairs.sentences,)
    return [pairs.score(np.vstack([encode(method, pairs.lexicon, group, settings) for group in groups]))]


def score_released(pairs: Pairs, found: list[Partition]) -> list[Scores]:
    """S3E's code, and LASE's, which is the same but for the clusters: a score for each partition of the types."""
    settings = {"variant": "released", "tokenizer": "regex"}
    lexicons = [replace(pairs.levelled, clusters=Clusters(each.labels, each.centroids)) for each in found]
    return [pairs.score(encode("s3e", lexicon, pairs.sentences, settings)) for lexicon in lexicons]


def score_thesis(pairs: Pairs, found: list[Partition]) -> list[Scores]:
    """The thesis's text: a score for each partition of the types; centroids are means, counts the set's own."""
    settings = {"variant": "published", "tokenizer": "regex", "centroid": "mean"}
    own = replace(pairs.levelled, counts=pairs.own_counts)
    lexicons = [replace(own, clusters=Clusters(each.labels)) for each in found]
    return [pairs.score(encode("lase", lexicon, pairs.sentences, settings)) for lexicon in lexicons]


def encode(method: str, lexicon: Lexicon, sentences: list[str], settings: Settings) -> Float32:
    """Vectors of `sentences` by a method that is fitted on them."""
    module = find_method(method)
    encoder = module.build(lexicon, make_settings(module, dict(settings), where="benchmark"))
    vectors: Float32 = encoder.fit(sentences).encode(sentences).vectors
    return vectors


# --- partitions of the types ------------------------------------------------------------------------


def find_kmeans(pairs: Pairs, size: int, seed: int) -> Partition:
    """S3E's weighted k-means, with one start as scikit-learn has it now."""
    settings = kmeans.Settings(restarts=1, iterations=300, tolerance=1e-4)
    return next(kmeans.cluster(pairs.levelled.vectors, pairs.sif_weights, (size,), seed=seed, settings=settings))


def find_mixture(pairs: Pairs, size: int, seed: int) -> Partition:
    """LASE's Gaussian mixture, with full covariances."""
    settings = mixture.Settings(covariance="full", regularization=1e-6, iterations=100, tolerance=1e-3)
    return next(mixture.cluster(pairs.levelled.vectors, pairs.sif_weights, (size,), seed=seed, settings=settings))


def find_blurred(pairs: Pairs, size: int, seed: int) -> Partition:
    """LASE's spectral clustering, with the centroids of its code; the seed is that of `rank` too."""
    chosen = load_parameters(ClusteringParameters, "clusterings.lase-blurred").settings
    order = rank(pairs, seed)
    ordered = pairs.levelled.vectors[order], pairs.sif_weights[order]
    found = next(blurred.cluster(*ordered, (size,), seed=seed, settings=chosen))
    labels = np.empty_like(found.labels)
    labels[order] = found.labels
    found = replace(found, labels=labels)
    return replace(found, centroids=centroids_of(found, pairs.levelled.vectors, pairs.sif_weights, "scaled-mean"))


def rank(pairs: Pairs, seed: int) -> npt.NDArray[np.int64]:
    """Rows of the types, most frequent first; those that are equally frequent, as most are, in a random order."""
    counts = pairs.own_counts.of(pairs.types.words)
    return np.lexsort((np.random.default_rng(seed).random(len(counts)), -counts))


def random_labels(pairs: Pairs, size: int, seed: int) -> Partition:
    """Every type in one of `size` clusters, all equally likely."""
    words = len(pairs.types.words)
    return Partition(np.random.default_rng(seed).integers(0, size, words).astype(np.int32), size)


def deal(like: Partition, seed: int) -> Partition:
    """Words dealt at random into clusters of the same sizes."""
    return random_partition(like, seed=seed)


def equal_blocks(pairs: Pairs, size: int, seed: int) -> Partition:
    """The types in the order of frequency, cut into blocks of equal size."""
    order = rank(pairs, seed)
    labels = np.empty(len(order), dtype=np.int32)
    labels[order] = np.arange(len(order)) * size // len(order)
    return Partition(labels, size)


if __name__ == "__main__":
    main()
