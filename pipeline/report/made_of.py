"""What a space was made of, in words: WordLlama is not GloVe, and nobody may take one for the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pipeline.base.params import read_yaml
from pipeline.base.suite import Suite
from sentfold.encoders.base.protocol import find_method
from sentfold.manifold.base import protocol as manifold

TITLES_FILE = Path(__file__).with_name("titles.yaml")

TITLES = {"flow": "BERT-flow"}
POOLINGS = {
    "cls": "first token of the last layer",
    "cls-pooled": "first token of the last layer, through the pooler",
    "mean": "mean of the last layer",
    "mean-without-sep": "mean of the last layer without [SEP]",
    "first-last": "mean of the first and last layers",
    "last-two": "mean of the last two layers",
    "second-to-second-last": "mean of the second to the second-last layers",
    "sbert-wk": "SBERT-WK",
}
SCALINGS = {"quarter": "λ^-1/4", "half": "λ^-1/2"}


@cache
def load_titles(path: Path = TITLES_FILE) -> dict[str, str]:
    """Block of word vectors -> what tables call it."""
    return read_yaml(path)


def describe_spaces(
    suite: Suite, parameters: Mapping[str, Mapping[str, Any]], models: Mapping[str, str]
) -> dict[str, str]:
    """Space -> what it was made of.

    parameters  space -> the parameters that its artifacts name
    models      encoder -> the name that its publisher gives it
    """
    return {space: describe_space(suite, space, parameters[space], models) for space in suite.spaces}


def describe_space(suite: Suite, space: str, parameters: Mapping[str, Any], models: Mapping[str, str]) -> str:
    """A space in words, e.g. "S3E, K = 10 by s3e; WordLlama"."""
    encoder = suite.encoder_of(space)
    if space in suite.word_encoders:
        return describe_words(parameters)
    model, method = models.get(encoder, encoder), str(parameters.get("method", space))
    title = manifold.find_method(method).TITLE if method in manifold.known_methods() else TITLES.get(method, method)
    if space == encoder:
        items = suite.stages.get("pooled", {}) | suite.stages.get("train", {})
        item = items.get(space, {})
        source = str(item.get("encoder", item.get("base", "")))
        return _describe_own(model, models.get(source, source), parameters)
    return f"{', '.join([title, *_sizes(parameters)])}; {model}"


def _describe_own(model: str, source: str, parameters: Mapping[str, Any]) -> str:
    """A space that is made from sentences: a model as it is, one that was pooled otherwise, or one that was trained.

    source  the model that was pooled or trained, as its publisher names it
    """
    if "pooling" in parameters:
        start = f" from layer {parameters['layer_start']}" if "layer_start" in parameters else ""
        return f"{POOLINGS[parameters['pooling']]}{start}; {source or name_source(parameters['encoder'])}"
    if "trained_on" in parameters:
        own = parameters["parameters"]
        learned = f"{own['loss']['kind']}, {parameters['pairs']} pairs of {parameters['trained_on']}"
        seed, base = parameters["seed"], source or name_source(parameters["base"])
        return f"{describe_head(own['head'])}, trained by {learned}, seed {seed}; {base}"
    return model


def describe_head(head: Mapping[str, Any]) -> str:
    """A head in words."""
    pooling = f"{head['pooling']} pooling"
    if not head["channels"]:
        return pooling
    active = "" if head["activation"] == "none" else f", {head['activation']}"
    return f"CNN {head['channels']} × {'/'.join(map(str, head['kernels']))}{active}, {pooling}"


def name_source(source: Mapping[str, Any]) -> str:
    """The model behind a block of `encoders:`."""
    return str(source.get("hub") or source.get("package") or Path(str(source.get("folder"))).name)


def _sizes(parameters: Mapping[str, Any]) -> Iterator[str]:
    """The numbers that decide what a method makes of an encoder's vectors."""
    shown = {"neighbors": "k = {}", "components": "p = {}", "landmarks": "{} landmarks", "removed": "{} removed"}
    shown |= {"power": "power {:g}", "amount": "amount {:g}"}
    yield from (text.format(parameters[key]) for key, text in shown.items() if key in parameters)
    if parameters.get("scaling") in SCALINGS:
        yield f"scaled by {SCALINGS[parameters['scaling']]}"
    if parameters.get("fitted_on"):
        yield f"fitted on {parameters['fitted_on']}"
    if parameters.get("chosen_on"):
        yield f"chosen on {parameters['chosen_on']}"


def describe_words(parameters: Mapping[str, Any]) -> str:
    """An encoder over word vectors in words, from its parameters as its artifacts name them."""
    settings, clusters = parameters.get("settings", {}), parameters.get("clusters") or {}
    module = find_method(str(parameters.get("method")))
    parts = [str(module.TITLE)]
    if settings.get("variant") == "released":
        parts.append("as released")
    if settings.get("unit_words"):
        parts.append("words of length 1")
    if settings.get("component") == "none":
        parts.append("no directions removed")
    parts += getattr(module, "describe", lambda _: ())(settings)
    if clusters:
        parts.append(f"K = {clusters['size']} by {clusters['clustering']}")
    if clusters.get("control"):
        parts.append(f"control: {clusters['control']} clusters")
    return f"{', '.join(parts)}; {describe_vectors(str(parameters.get('vectors')))}"


def describe_vectors(name: str) -> str:
    """A block of word vectors in words; "-pvn" is how one is called whose variance is levelled."""
    plain, titles = name.removesuffix("-pvn"), load_titles()
    return titles.get(name) or titles.get(plain, plain) + ("" if plain == name else ", variance levelled")


def find_twins(
    suite: Suite, parameters: Mapping[str, Mapping[str, Any]], shapes: Mapping[tuple[str, str], tuple[int, int]]
) -> dict[tuple[str, str], tuple[str, str]]:
    """(space, corpus) -> the first two spaces of the suite, itself one of them, that are one by construction there.

    parameters  space -> the parameters that its artifacts name
    shapes      (space, corpus) -> sentences and dimension of the vectors that the space was made from
    """
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for corpus in suite.corpora:
        alike: dict[tuple[str, ...], list[str]] = {}
        for space in suite.spaces:
            if (space, corpus) in shapes:
                source, own = suite.encoder_of(space), parameters[space]
                if own.get("method") == "flow" or own.get("fitted_on"):
                    continue  # no file of sentfold/manifold makes it
                method = "" if space == source else str(own["method"])
                alike.setdefault((source, *simplify(method, own, shapes[space, corpus])), []).append(space)
        for first, *others in alike.values():
            for other in reversed(others):
                found[first, corpus] = found[other, corpus] = (first, other)
    return found


def simplify(method: str, settings: Mapping[str, Any], shape: tuple[int, int]) -> tuple[str, str]:
    """The simplest method that makes the same space, and its settings; "" for the vectors that it starts from."""
    while method:
        module: Any = manifold.find_method(method)
        known = module.Settings.model_fields
        own = module.Settings(**{name: value for name, value in settings.items() if name in known})
        simpler = module.same_as(own, shape) if hasattr(module, "same_as") else None
        if simpler is None:
            return method, str(own.model_dump_json())
        method, settings = simpler
    return "", ""


def listed(names: Sequence[str]) -> str:
    """Names as a sentence lists them: "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
