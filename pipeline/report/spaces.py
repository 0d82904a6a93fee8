"""What a space was made of, in words: WordLlama is not GloVe, and nobody may take one for the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.artifacts import read_record, space_path
from pipeline.suite import Suite

METHODS = {
    "lle": "locally linear embedding",
    "lle-landmark": "locally linear embedding of landmarks",
    "pca": "principal components",
    "whitening": "whitened principal components",
    "abtt": "all but the top directions",
    "npe": "neighbourhood preserving embedding",
    "lpp": "locality preserving projection",
    "smooth": "smoothing by neighbours",
    "average": "mean of words",
    "sif": "SIF",
    "usif": "uSIF",
    "pmeans": "p-means",
    "dct": "DCT",
    "vlawe": "VLAWE",
    "s3e": "S3E",
    "lase": "LASE",
    "gem": "GEM",
}
VECTORS = {
    "wordllama": "WordLlama",
    "wordllama-pvn": "WordLlama, variance levelled",
    "glove": "GloVe 840B",
    "fasttext": "fastText crawl",
    "lexvec": "LexVec",
    "psl": "Paragram-SL999",
    "word2vec": "word2vec",
    "g-f-p": "GloVe + fastText + PSL",
    "f-l-p": "fastText + LexVec + PSL",
    "g-f-l": "GloVe + fastText + LexVec",
    "g-f-l-p": "GloVe + fastText + LexVec + PSL",
    "l-p-f": "LexVec + PSL + fastText",
}


def describe_spaces(suite: Suite, models: Mapping[str, str]) -> dict[str, str]:
    """Space -> what it was made of. models: encoder -> the name that its publisher gives it."""
    return {space: describe_space(suite, space, space_parameters(suite, space), models) for space in suite.spaces}


def space_parameters(suite: Suite, space: str) -> dict[str, Any]:
    """The parameters that a space's artifacts name; {} if every corpus of it is absent."""
    for corpus in suite.corpora:
        record = read_record(space_path(suite.suite, space, corpus), kind="vectors")
        if "absent" not in record["notes"]:
            parameters: dict[str, Any] = record["parameters"]
            return parameters
    return {}


def describe_space(suite: Suite, space: str, parameters: Mapping[str, Any], models: Mapping[str, str]) -> str:
    """A space in words, e.g. "S3E, K = 10; WordLlama"."""
    encoder = suite.encoder_of(space)
    if space in suite.word_encoders:
        return _describe_words(parameters)
    model = models.get(encoder, encoder)
    method = METHODS.get(str(parameters.get("method", "")), "")
    sizes = [
        f"{letter} = {parameters[key]}"
        for letter, key in (("k", "neighbors"), ("p", "components"))
        if key in parameters
    ]
    return model if space == encoder else f"{', '.join([method or space, *sizes])}; {model}"


def _describe_words(parameters: Mapping[str, Any]) -> str:
    settings, clusters = parameters.get("settings", {}), parameters.get("clusters") or {}
    parts = [METHODS.get(str(parameters.get("method")), str(parameters.get("method")))]
    if settings.get("variant") == "released":
        parts.append("as released")
    if clusters:
        parts.append(f"K = {clusters['size']} by {clusters['clustering']}")
    if clusters.get("control"):
        parts.append(f"control: {clusters['control']} clusters")
    vectors = str(parameters.get("vectors"))
    return f"{', '.join(parts)}; {VECTORS.get(vectors, vectors)}"
