"""Stage `encode`: encode the sentences of every corpus of a suite with one encoder over word vectors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field
from threadpoolctl import threadpool_limits

from pipeline.base.artifacts import (
    absence,
    corpus_path,
    fixed_lists,
    read_record,
    read_table,
    space_path,
    write_absence,
    write_table,
    write_vectors,
)
from pipeline.base.params import load_parameters
from pipeline.words.artifacts import (
    clusters_path,
    count_source_path,
    load_clusters,
    load_counts,
    load_vectors,
    partition_name,
    vectors_path,
)
from sentfold.encoders.base.estimator import with_clusters
from sentfold.encoders.base.lexicon import Lexicon
from sentfold.encoders.base.protocol import Encoder, Fitted, find_method
from sentfold.encoders.base.settings import make_settings
from sentfold.encoders.base.word_encoder import WordSettings
from sentfold.errors import located
from sentfold.settings import Parameters, Slug
from sentfold.words.counts import CountSource
from sentfold.words.tokenizers import TokenizerName


class ClusterChoice(Parameters):
    """One partition: the name of its clustering, its number of clusters, its seed, and its kind if it is a control."""

    clustering: Slug
    size: int = Field(ge=1)
    seed: int = Field(default=0, ge=0)
    control: Literal["random", "frequency"] | None = None


class WordEncoderParameters(Parameters):
    """One encoder over word vectors: a block of `word_encoders:` in params.yaml.

    method     sentfold/encoders/<method>.py
    vectors    a block of `word_vectors:`
    tokenizer  one of words/tokenizers.py; the suite must have a vocabulary by it
    counts     word counts. suite: those that the suite names; own: those of the suite's own sentences
    clusters   a partition of words, for methods that need clusters
    fit_on     corpus: one fit per corpus, on its own sentences; suite: one fit on the sentences of all corpora
    settings   parameters of the method; the file of the method documents them
    """

    method: str = Field(pattern="^[a-z0-9_]+$")
    vectors: Slug
    tokenizer: TokenizerName
    counts: CountSource = "suite"
    clusters: ClusterChoice | None = None
    fit_on: Literal["corpus", "suite"] = "corpus"
    settings: dict[str, Any] = {}

    def method_settings(self, name: str) -> WordSettings:
        """The settings, checked by the model of the method. Raises ParameterError or EncoderError."""
        where = f"params.yaml: word_encoders.{name}.settings"
        return make_settings(find_method(self.method), {**self.settings, "tokenizer": self.tokenizer}, where=where)


@dataclass(frozen=True)
class Done:
    """The result for one corpus: number of sentences encoded, and how often each fallback was used, name -> number."""

    corpus: str
    sentences: int
    fallbacks: dict[str, int]


def fit_path(suite: str, space: str, corpus: str) -> Path:
    """The file that holds what an encoder learned from the sentences of a corpus."""
    return Path("data") / suite / "fits" / space / f"{corpus}.parquet"


def encode(suite: str, name: str, corpora: tuple[str, ...], *, wordless: tuple[str, ...] = ()) -> list[Done]:
    """Write the vectors of every corpus of the suite in one space, and what the encoder learned for each corpus.

    wordless  corpora whose sentences do not count for the suite's vocabulary. They are encoded with the words of
              the other corpora, and a fit on the suite leaves their sentences out
    The encoder is fitted on the distinct sentences of each corpus, or once on those of the suite. Raises
    ParameterError if the block does not fit the method, ArtifactError if an artifact about words is missing.
    """
    parameters = load_parameters(WordEncoderParameters, f"word_encoders.{name}")
    settings = parameters.method_settings(name)
    inputs = word_inputs(suite, parameters)
    with threadpool_limits(1), located(f"params.yaml: word_encoders.{name}"):
        encoder = find_method(parameters.method).build(load_lexicon(suite, parameters), settings)
        sources = {corpus: corpus_path(suite, corpus, "sentences") for corpus in corpora}
        held = [corpus for corpus, path in sources.items() if not absence(path, kind="sentences")]
        texts = {corpus: read_texts(sources[corpus]) for corpus in held}
        worded = {corpus: found for corpus, found in texts.items() if corpus not in wordless}
        shared = fit_on_suite(encoder, worded) if parameters.fit_on == "suite" else None
        record = {**parameters.model_dump(), "settings": settings.model_dump(mode="json")}
        return [
            encode_corpus(suite, name, corpus, encoder, texts.get(corpus), shared, record, inputs) for corpus in corpora
        ]


def encode_corpus(
    suite: str,
    name: str,
    corpus: str,
    encoder: Encoder,
    texts: list[str] | None,
    shared: tuple[Fitted, int] | None,
    record: dict[str, Any],
    inputs: list[Path],
) -> Done:
    """Write the vectors of one corpus, and what the encoder learned; absences if the corpus is absent."""
    source = corpus_path(suite, corpus, "sentences")
    target, learned = space_path(suite, name, corpus), fit_path(suite, name, corpus)
    if texts is None:
        reason = str(absence(source, kind="sentences"))
        write_absence(target, reason, kind="vectors", inputs=[source])
        write_absence(learned, reason, kind="directions", inputs=[source])
        return Done(corpus, 0, {})
    fitted, size = shared or (encoder.fit(texts), len(texts))
    encoded = fitted.encode(texts)
    fitting = {"sentences": size, "set": "suite" if shared else corpus}
    write_vectors(
        target,
        encoded.vectors,
        parameters=record,
        inputs=[source, *inputs],
        notes={
            "dimension": encoded.vectors.shape[1],
            "fallbacks": dict(encoded.fallbacks),
            "fitted_on": fitting,
            "sentences": len(texts),
            "task": read_record(source, kind="sentences")["notes"]["task"],
        },
    )
    write_learned(learned, fitted, record, inputs=[source, *inputs], notes={"fitted_on": fitting})
    return Done(corpus, len(texts), {what: count for what, count in encoded.fallbacks.items() if count})


def write_learned(
    path: Path, fitted: Fitted, record: dict[str, Any], *, inputs: list[Path], notes: dict[str, Any]
) -> None:
    """Write what an encoder learned, one direction per row, in the format that `sentfold encode --directions` reads."""
    learned = dict(fitted.learned)
    directions = learned.pop("directions", np.zeros((0, 0)))
    if not len(directions):
        write_absence(path, "nothing was learned from the sentences", kind="directions", inputs=inputs)
        return
    columns = {"vector": fixed_lists(np.asarray(directions, dtype=np.float64))}
    columns |= {name.removesuffix("s"): pa.array(values, pa.float64()) for name, values in sorted(learned.items())}
    write_table(path, pa.table(columns), kind="directions", parameters=record, inputs=inputs, notes=notes)


def fit_on_suite(encoder: Encoder, texts: dict[str, list[str]]) -> tuple[Fitted, int]:
    """The encoder fitted on the distinct sentences of all corpora, and their number."""
    every = list(dict.fromkeys(text for corpus in texts.values() for text in corpus))
    return encoder.fit(every), len(every)


def read_texts(source: Path) -> list[str]:
    """The sentences of a corpus."""
    texts: list[str] = read_table(source, kind="sentences").column("text").to_pylist()
    return texts


def load_lexicon(suite: str, parameters: WordEncoderParameters) -> Lexicon:
    """The suite's words for an encoder; for an encoder with clusters, the words of its partition only."""
    words, vectors = load_vectors(suite, parameters.vectors, parameters.tokenizer)
    lexicon = Lexicon(words, vectors, load_counts(suite, parameters.tokenizer, parameters.counts))
    choice = parameters.clusters
    if choice is None:
        return lexicon
    found = load_clusters(suite, choice.clustering, size=choice.size, seed=choice.seed, control=choice.control)
    return with_clusters(lexicon, found.labels_of(words), found.centroids.astype(np.float64))


def word_inputs(suite: str, parameters: WordEncoderParameters) -> list[Path]:
    """The artifacts about words that an encoder reads."""
    paths = [
        vectors_path(suite, parameters.vectors, parameters.tokenizer),
        count_source_path(suite, parameters.tokenizer, parameters.counts),
    ]
    if choice := parameters.clusters:
        folder = partition_name(choice.size, choice.seed, choice.control)
        paths += [clusters_path(suite, choice.clustering, folder, part) for part in ("clusters", "centroids")]
    return paths
