"""What a space was made of, in words: WordLlama is not GloVe, and nobody may take one for the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    "g-f-p": "GloVe + fastText + PSL, variance levelled",
    "f-l-p": "fastText + LexVec + PSL, variance levelled",
    "g-f-l": "GloVe + fastText + LexVec, variance levelled",
    "g-f-l-p": "GloVe + fastText + LexVec + PSL, variance levelled",
    "l-p-f": "LexVec + PSL + fastText",
}
SCALINGS = {"quarter": "λ^-1/4", "half": "λ^-1/2"}
# Both terms are the GEM paper's: sentence-dependent and sentence-independent removal of directions.
REMOVALS = {"sdr": "SDR", "sir": "SIR", "none": "no directions removed"}


def describe_spaces(suite: Suite, models: Mapping[str, str]) -> dict[str, str]:
    """Space -> what it was made of. models: encoder -> the name that its publisher gives it."""
    parameters = {space: space_parameters(suite, space) for space in suite.spaces}
    found = {space: describe_space(suite, space, own, models) for space, own in parameters.items()}
    return tell_apart(found, parameters)


def space_parameters(suite: Suite, space: str) -> dict[str, Any]:
    """The parameters that a space's artifacts name; {} if every corpus of it is absent."""
    for corpus in suite.corpora:
        record = read_record(space_path(suite.suite, space, corpus), kind="vectors")
        if "absent" not in record["notes"]:
            parameters: dict[str, Any] = record["parameters"]
            return parameters
    return {}


def describe_space(suite: Suite, space: str, parameters: Mapping[str, Any], models: Mapping[str, str]) -> str:
    """A space in words, e.g. "S3E, K = 10 by s3e; WordLlama"."""
    encoder = suite.encoder_of(space)
    if space in suite.word_encoders:
        return describe_words(parameters)
    model = models.get(encoder, encoder)
    method = METHODS.get(str(parameters.get("method", "")), "")
    return model if space == encoder else f"{', '.join([method or space, *_sizes(parameters)])}; {model}"


def _sizes(parameters: Mapping[str, Any]) -> Iterator[str]:
    """The numbers that decide what a method makes of an encoder's vectors."""
    shown = {"neighbors": "k = {}", "components": "p = {}", "landmarks": "{} landmarks", "removed": "{} removed"}
    shown |= {"power": "power {:g}", "amount": "amount {:g}"}
    yield from (text.format(parameters[key]) for key, text in shown.items() if key in parameters)
    if parameters.get("scaling") in SCALINGS:
        yield f"scaled by {SCALINGS[parameters['scaling']]}"
    if parameters.get("chosen_on"):
        yield f"chosen on {parameters['chosen_on']}"


def describe_words(parameters: Mapping[str, Any]) -> str:
    """An encoder over word vectors in words, from its parameters as its artifacts name them."""
    settings, clusters = parameters.get("settings", {}), parameters.get("clusters") or {}
    method = str(parameters.get("method"))
    parts = [METHODS.get(method, method)]
    if settings.get("variant") == "released":
        parts.append("as released")
    if settings.get("unit_words"):
        parts.append("words of length 1")
    parts += _gem_parts(settings) if method == "gem" else _descriptor_parts(settings)
    if clusters:
        parts.append(f"K = {clusters['size']} by {clusters['clustering']}")
    if clusters.get("control"):
        parts.append(f"control: {clusters['control']} clusters")
    return f"{', '.join(parts)}; {describe_vectors(str(parameters.get('vectors')))}"


def describe_vectors(name: str) -> str:
    """A block of word vectors in words; "-pvn" is how one is called whose variance is levelled."""
    plain = name.removesuffix("-pvn")
    return VECTORS.get(name) or VECTORS.get(plain, plain) + ("" if plain == name else ", variance levelled")


def _gem_parts(settings: Mapping[str, Any]) -> Iterator[str]:
    """Which weights GEM gives a word and which directions it removes, as the paper's ablation has them."""
    scores = settings.get("scores")
    if scores is not None:
        yield "three weights" if len(scores) == 3 else f"weights: {' and '.join(scores) or 'none'}"
    if settings.get("selection") in REMOVALS:
        yield REMOVALS[settings["selection"]]
    if settings.get("signs") == "free":
        yield "mean over signs"


def _descriptor_parts(settings: Mapping[str, Any]) -> Iterator[str]:
    """Which part alone S3E and LASE were left with, if one."""
    for part, other in (("mean", "covariance"), ("covariance", "mean")):
        if settings.get(other) is False:
            yield f"{part} part alone"


def tell_apart(found: Mapping[str, str], parameters: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Descriptions, those of several spaces followed by the parameters that these spaces differ in.

    found       space -> its description
    parameters  space -> what its artifacts name
    Spaces of equal parameters hold equal vectors and keep one description.
    """
    apart = dict(found)
    for text in {text for text in found.values() if list(found.values()).count(text) > 1}:
        flat = {space: _flatten(parameters[space]) for space, other in found.items() if other == text}
        keys = sorted({key for own in flat.values() for key in own})
        differ = [key for key in keys if len({repr(own.get(key)) for own in flat.values()}) > 1]
        for space, own in flat.items():
            more = ", ".join(f"{key} {own.get(key)}" for key in differ)
            apart[space] = f"{text}; {more}" if more else text
    return apart


def _flatten(parameters: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in parameters.items():
        flat |= _flatten(value, f"{above}{key}.") if isinstance(value, Mapping) else {f"{above}{key}": value}
    return flat
