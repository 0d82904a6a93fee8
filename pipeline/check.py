"""Check params.yaml, a suite and the catalogue against each other before anything runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline.artifacts import corpus_path, read_record
from pipeline.corpora.catalogue import find_corpus
from pipeline.encoders.embed import EmbedParameters, EncoderParameters, check_pin
from pipeline.encoders.encode import WordEncoderParameters
from pipeline.errors import ArtifactError, ParameterError, SourceError, SuiteError, located
from pipeline.evaluate.parameters import EvaluateParameters
from pipeline.manifold.knn_graph import GraphParameters
from pipeline.manifold.manifolds import (
    METHODS,
    AbttParameters,
    LandmarkParameters,
    LleParameters,
    LppParameters,
    NpeParameters,
    PcaParameters,
    SmoothParameters,
    WhiteningParameters,
    load_manifold,
)
from pipeline.manifold.solver_parameters import SolverParameters
from pipeline.params import GROUPS, PARAMS_FILE, Parameters, check_slug, load_parameters, read_yaml, refuse_unknown
from pipeline.report.parameters import ReportParameters
from pipeline.selection.grids import GRIDS, largest_neighbors, load_grid
from pipeline.selection.sensitivity_parameters import SensitivityParameters, sensitivities_of
from pipeline.suite import Suite, load_suite
from pipeline.words.clustering_parameters import ClusteringParameters
from pipeline.words.locations import find_location
from pipeline.words.tokenizers import TOKENIZERS
from pipeline.words.vector_parameters import WordVectorParameters
from pipeline.words.vectors import load_blocks
from pipeline.words.vocabulary import VocabularyParameters

# What the stage `transform` serves; its own list would load its libraries.
TRANSFORMS: tuple[type[Parameters], ...] = (PcaParameters, WhiteningParameters, AbttParameters, LandmarkParameters)

MIRROR_VARIABLE = "SENTFOLD_MIRROR"

SINGLE: dict[str, type[Parameters]] = {
    "embed": EmbedParameters,
    "knn_graph": GraphParameters,
    "eigensolve": SolverParameters,
    "evaluate": EvaluateParameters,
    "report": ReportParameters,
    "vocabulary": VocabularyParameters,
}
NAMED: dict[str, Callable[[str], Parameters]] = {
    "encoders": lambda name: load_parameters(EncoderParameters, f"encoders.{name}"),
    "manifolds": lambda name: load_manifold(name, *METHODS.values()),
    "word_vectors": lambda name: load_parameters(WordVectorParameters, f"word_vectors.{name}"),
    "clusterings": lambda name: load_parameters(ClusteringParameters, f"clusterings.{name}"),
    "word_encoders": lambda name: load_parameters(WordEncoderParameters, f"word_encoders.{name}"),
}


def check_everything(suite: str) -> Suite:
    """Raise the first ParameterError, SuiteError or SourceError that a run would meet; return the suite."""
    content = read_yaml(PARAMS_FILE)
    refuse_unknown(content, GROUPS, where=str(PARAMS_FILE))
    for group, model in SINGLE.items():
        load_parameters(model, group)
    for group, load in NAMED.items():
        for name in content.get(group) or {}:
            _check_name(group, name)
            block = content[group][name]
            if group == "manifolds" and isinstance(block, dict) and block.get("method") in GRIDS:
                load_grid(name)
            else:
                load(name)
    _check_unfitted(content)
    chosen = load_suite(suite)
    for group, names in (
        ("encoders", chosen.encoders),
        ("manifolds", (*chosen.manifolds, *chosen.transforms, *chosen.graph_transforms, *chosen.selections)),
        ("word_vectors", chosen.makers.word_vectors),
        ("clusterings", chosen.makers.clusterings),
        ("word_encoders", chosen.word_encoders),
    ):
        _check_members(chosen, group, names, content.get(group) or {})
    for name in chosen.manifolds:
        load_manifold(name, LleParameters)
    for name in chosen.transforms:
        load_manifold(name, *TRANSFORMS)
    for name in chosen.graph_transforms:
        load_manifold(name, NpeParameters, LppParameters, SmoothParameters)
    for corpus in chosen.corpora:
        _check_corpus(chosen, corpus)
    _check_selections(chosen)
    for encoder in chosen.encoders:
        check_pin(encoder, load_parameters(EncoderParameters, f"encoders.{encoder}"))
    _check_neighbors(chosen)
    _check_words(chosen)
    _check_word_encoders(chosen, content.get("word_encoders") or {})
    _check_sensitivities(chosen)
    return chosen


def _check_name(group: str, name: Any) -> None:
    try:
        check_slug(str(name))
    except ValueError as error:
        raise ParameterError("a name cannot be used", where=f"{PARAMS_FILE}: {group}", got=str(error)) from None


def _check_unfitted(content: dict[str, Any]) -> None:
    """That each space without regressions is one that params.yaml can make: a slip of the pen would fit them."""
    makers = [*(content.get("encoders") or {}), *(content.get("word_encoders") or {})]
    known = {*makers, *(f"{maker}-{manifold}" for maker in makers for manifold in content.get("manifolds") or {})}
    for space in load_parameters(EvaluateParameters, "evaluate").unfitted:
        if space not in known:
            raise ParameterError(
                f"there is no space '{space}' to leave without regressions",
                where=f"{PARAMS_FILE}: evaluate.unfitted",
                expected="an encoder of params.yaml, alone or followed by - and one of its manifolds",
                got=space,
                remedy="correct the name, or take it off the list",
            )


def _check_members(suite: Suite, group: str, names: tuple[str, ...], known: dict[str, Any]) -> None:
    for name in names:
        if name not in known:
            raise ParameterError(
                f"suite '{suite.suite}' names an unknown {group.removesuffix('s')} '{name}'",
                where=suite.file,
                expected=f"one of: {', '.join(known)}",
                got=name,
                remedy=f"correct {suite.file}, or add a block {group}.{name} to {PARAMS_FILE}",
            )


def _check_corpus(suite: Suite, slug: str) -> None:
    corpus = find_corpus(slug)
    dataset = corpus.dataset
    if dataset.task == "counts":
        raise SuiteError(
            f"'{slug}' holds words and counts, no sentences to embed",
            where=suite.file,
            expected="corpora of sentences",
            got=slug,
            remedy=f"take it out of `corpora:` in {suite.file}",
        )
    if dataset.inline or dataset.package is not None:
        return
    homeless = [split for split in corpus.splits if split not in {**dataset.hub, **dataset.archive}]
    if suite.source == "package" or (suite.source == "hub" and homeless):
        raise SuiteError(
            f"'{slug}' cannot be had from the source '{suite.source}'",
            where=suite.file,
            expected="a source that the catalogue names for it: see `sentfold catalogue`",
            got=suite.source,
            remedy=f"change `source:` in {suite.file}, or take the corpus out",
        )


def mirror_changes(suite: Suite) -> None:
    """Raise SourceError if the mirror no longer holds what the suite's corpora were read from.

    DVC cannot see the mirror, so without this a replaced file would keep its old numbers, and a blank
    would stay blank after its file was added. Nothing is compared while no mirror is set.
    """
    if suite.source != "mirror" or not os.environ.get(MIRROR_VARIABLE):
        return
    from pipeline.corpora.mirror import changed_files, mirror_folder

    stale = []
    for slug in suite.corpora:
        path = corpus_path(suite.suite, slug, "items")
        corpus = find_corpus(slug)
        if not path.exists() or corpus.dataset.inline or corpus.dataset.package is not None:
            continue
        try:
            notes = read_record(path, kind=f"items.{corpus.dataset.task}")["notes"]
        except ArtifactError:
            continue  # damaged, or of an older version: DVC makes it again
        if "absent" in notes:
            names = [
                name for split in corpus.splits for name in corpus.dataset.mirror_files(corpus.dataset_name, split)
            ]
            changed = names if all((mirror_folder() / name).is_file() for name in names) else []
        else:
            changed = changed_files(notes["files"])
        if changed:
            stale.append(slug)
    if stale:
        stages = " ".join(f"{Path(suite.file).with_name('dvc.yaml')}:download@{slug}" for slug in stale)
        raise SourceError(
            "the mirror holds something else than when it was read",
            where=MIRROR_VARIABLE,
            expected="the files whose sha256 the corpora recorded",
            got=f"other or new files for: {', '.join(stale)}",
            remedy=f"read them again: dvc repro --force --single-item {stages}",
        )


def _check_neighbors(suite: Suite) -> None:
    held = load_parameters(GraphParameters, "knn_graph").neighbors
    asked = {name: load_manifold(name, LleParameters).neighbors for name in suite.manifolds}
    for name in suite.graph_transforms:
        asked[name] = load_manifold(name, NpeParameters, LppParameters, SmoothParameters).neighbors
    asked.update({name: largest_neighbors(load_grid(name)) for name in suite.selections})
    for manifold, wanted in asked.items():
        if wanted > held:
            raise ParameterError(
                f"manifold '{manifold}' wants more neighbours than the graph holds",
                where=f"{PARAMS_FILE}: manifolds.{manifold}.neighbors",
                expected=f"<= knn_graph.neighbors = {held}",
                got=str(wanted),
                remedy="raise knn_graph.neighbors, or lower this one",
            )


def _check_selections(suite: Suite) -> None:
    """That there is a similarity corpus to choose on."""
    for name in suite.selections:
        load_grid(name)
    held = [slug for slug in suite.corpora if find_corpus(slug).dataset.task == "similarity"]
    if suite.development not in held:
        raise SuiteError(
            "there is nothing to choose hyper-parameters on",
            where=f"{suite.file}: development",
            expected=f"one of: {', '.join(held)}",
            got=str(suite.development or "nothing"),
            remedy=f"name one in {suite.file}; no table should then count it as a test set",
        )


def _check_words(suite: Suite) -> None:
    """Tokenisers, counts and the words of clusterings: what each asks for must be made in this suite."""
    for tokenizer in suite.makers.tokenizers:
        if tokenizer not in TOKENIZERS:
            raise SuiteError(
                f"there is no tokeniser '{tokenizer}'",
                where=f"{suite.file}: makers.tokenizers",
                expected=f"one of: {', '.join(TOKENIZERS)}",
                got=tokenizer,
                remedy=f"correct {suite.file}",
            )
    if suite.counts != "own" and suite.source == "package":
        raise SuiteError(
            f"the counts '{suite.counts}' lie in no package",
            where=f"{suite.file}: counts",
            expected="own, where the source is `package`",
            got=suite.counts,
            remedy=f"write `counts: own` in {suite.file}, or take another source",
        )
    for source in suite.makers.word_vectors:
        for name, block in load_blocks(source).items():
            if block.file is not None:
                with located(f"{PARAMS_FILE}: word_vectors.{name}.file"):
                    find_location(block.file)
    for clustering in suite.makers.clusterings:
        wanted = load_parameters(ClusteringParameters, f"clusterings.{clustering}")
        for kind, name, made in (
            ("word vectors", wanted.vectors, suite.makers.word_vectors),
            ("tokeniser", wanted.tokenizer, suite.makers.tokenizers),
        ):
            if name not in made:
                raise SuiteError(
                    f"the clustering '{clustering}' wants {kind} that the suite does not make",
                    where=suite.file,
                    expected=f"one of: {', '.join(made)}",
                    got=name,
                    remedy=f"add '{name}' to {suite.file}, or take '{clustering}' out",
                )


def _check_word_encoders(suite: Suite, blocks: dict[str, Any]) -> None:
    """The settings of every word encoder, and that the suite makes the words and clusters of those it lists."""
    for name in blocks:
        load_parameters(WordEncoderParameters, f"word_encoders.{name}").method_settings(name)
    for name in suite.word_encoders:
        wanted = load_parameters(WordEncoderParameters, f"word_encoders.{name}")
        needs = [
            ("word vectors", wanted.vectors, suite.makers.word_vectors),
            ("tokeniser", wanted.tokenizer, suite.makers.tokenizers),
        ]
        if wanted.clusters is not None:
            needs.append(("clustering", wanted.clusters.clustering, suite.makers.clusterings))
        for kind, asked, made in needs:
            if asked not in made:
                raise SuiteError(
                    f"the word encoder '{name}' wants a {kind} that the suite does not make",
                    where=suite.file,
                    expected=f"one of: {', '.join(made)}",
                    got=asked,
                    remedy=f"add '{asked}' to {suite.file}, or take '{name}' out",
                )
        if wanted.clusters is not None:
            _check_partition(name, wanted)


def _check_sensitivities(suite: Suite) -> None:
    """That each word encoder whose hyper-parameters are varied has a block of values, each of them its method's."""
    beside = Path(suite.file).with_name("sensitivities.yaml")
    if not beside.is_file():
        raise SuiteError(
            "a suite has no list of sensitivities, which dvc.yaml reads",
            where=str(beside),
            expected="a file beside the suite's own, which may list none",
            remedy=f"cp sensitivities.yaml {beside}, and set `file:` in it to that path",
        )
    names = sensitivities_of(suite)
    if not names:
        return
    # Only now: it imports scikit-learn, a second of the start of every run.
    from pipeline.selection.sensitivity import points_of

    for name in names:
        varied = load_parameters(SensitivityParameters, f"report.sensitivity.{name}")
        list(points_of(name, varied, load_parameters(WordEncoderParameters, f"word_encoders.{name}")))


def _check_partition(name: str, wanted: WordEncoderParameters) -> None:
    """That the clustering of a word encoder is of its own words, and holds the partition that it asks for."""
    choice = wanted.clusters
    assert choice is not None
    clustering = load_parameters(ClusteringParameters, f"clusterings.{choice.clustering}")
    for key, asked, held in (
        ("vectors", wanted.vectors, (clustering.vectors,)),
        ("tokenizer", wanted.tokenizer, (clustering.tokenizer,)),
        ("clusters.size", choice.size, clustering.sizes),
        ("clusters.seed", choice.seed, clustering.seeds),
        ("clusters.control", choice.control, (None, *clustering.controls)),
    ):
        if asked not in held:
            raise ParameterError(
                f"the word encoder '{name}' does not fit its clustering '{choice.clustering}'",
                where=f"{PARAMS_FILE}: word_encoders.{name}.{key}",
                expected=f"one of: {', '.join(map(str, held))}",
                got=str(asked),
                remedy=f"correct it, or clusterings.{choice.clustering}",
            )
