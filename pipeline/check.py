"""Check params.yaml, a suite and the catalogue against each other before anything runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.base.artifacts import corpus_path, read_record
from pipeline.base.params import PARAMS_FILE, load_parameters, read_yaml
from pipeline.base.suite import Suite, load_suite
from pipeline.corpora.catalogue import find_corpus
from pipeline.lineage.stages import load_graph
from pipeline.lineage.trees import WorkingTree
from pipeline.manifolds import load_block, load_grid, load_maker
from pipeline.papers.plan import load_plans
from pipeline.plan import GROUPS, check_plan
from pipeline.report.parameters import ReportParameters
from pipeline.searches import load_pool, load_search
from pipeline.stages.embed import EmbedParameters
from pipeline.stages.encode import WordEncoderParameters
from pipeline.stages.knn_graph import GraphParameters
from pipeline.stages.pool import PoolParameters
from pipeline.stages.postprocess import load_postprocess
from pipeline.stages.sensitivity import SensitivityParameters, list_trials
from pipeline.stages.vocabulary import VocabularyParameters
from pipeline.stages.word_vectors import load_blocks
from pipeline.trainings import load_training
from pipeline.words.published import find_location
from sentfold.clusterers.base import ClusteringParameters
from sentfold.encoders.model_folder import ModelSource, check_pin
from sentfold.errors import ArtifactError, ParameterError, SourceError, SuiteError, located
from sentfold.fold.texts import LEARNED, refuse_odd_settings
from sentfold.manifold.base.protocol import SolverSettings
from sentfold.measures.registry import all_measures, evaluate_parameters, find_measure
from sentfold.settings import Parameters, check_slug, refuse_unknown
from sentfold.words.tokenizers import TOKENIZERS
from sentfold.words.vectors import WordVectorParameters

MIRROR_VARIABLE = "SENTFOLD_MIRROR"

SINGLE: dict[str, type[Parameters]] = {
    "embed": EmbedParameters,
    "knn_graph": GraphParameters,
    "eigensolve": SolverSettings,
    "evaluate": evaluate_parameters(),
    "report": ReportParameters,
    "vocabulary": VocabularyParameters,
}
NAMED: dict[str, Callable[[str], object]] = {
    "encoders": lambda name: load_parameters(ModelSource, f"encoders.{name}"),
    "poolings": lambda name: load_parameters(PoolParameters, f"poolings.{name}"),
    "postprocessing": load_postprocess,
    "trainings": load_training,
    "manifolds": lambda name: load_grid(name) if load_block(name).is_grid else load_maker(name),
    "word_vectors": lambda name: load_parameters(WordVectorParameters, f"word_vectors.{name}"),
    "clusterings": lambda name: load_parameters(ClusteringParameters, f"clusterings.{name}"),
    "word_encoders": lambda name: load_parameters(WordEncoderParameters, f"word_encoders.{name}"),
    "sensitivity": lambda name: load_parameters(SensitivityParameters, f"sensitivity.{name}"),
    "searches": load_search,
    "pools": load_pool,
}
REPORT_TABLES = ( # those of pipeline/report, which measures do not have
    "artifacts", "geometry", "hyperboloid-1", "lase-4.1", "measures", "retrieval", "selection", "speed", "trainings",
)  # fmt: skip
# The last part of the name of a model that published.csv calls otherwise.
OFFICIAL = {"SBERT-base": "bert-base-nli-mean-tokens", "SBERT-large": "bert-large-nli-mean-tokens"}


def check_everything(suite: str) -> Suite:
    """Raise the first ParameterError, SuiteError or SourceError that a run would meet; return the suite."""
    content = read_yaml(PARAMS_FILE)
    refuse_unknown(content, GROUPS, where=str(PARAMS_FILE))
    for group, model in SINGLE.items():
        load_parameters(model, group)
    if (neighbors := content["evaluate"].get("knn_neighbors", 3)) != 3:
        raise ParameterError(
            "the tables show the scores of three nearest neighbours alone",
            where=f"{PARAMS_FILE}: evaluate.knn_neighbors",
            expected="3",
            got=str(neighbors),
            remedy="set it to 3; scores.csv would have the others, and no table",
        )
    if round(100 * content["evaluate"]["confidence"], 9) % 1:
        raise ParameterError(
            "the report prints the level of intervals in whole percent",
            where=f"{PARAMS_FILE}: evaluate.confidence",
            expected="a level such as 0.95 or 0.99",
            got=str(content["evaluate"]["confidence"]),
        )
    for group, load in NAMED.items():
        for name in content.get(group) or {}:
            _check_name(group, name)
            load(name)
    _check_named_spaces(content)
    _check_published(content)
    refuse_shared_table_names({one.task: [table.name for table in one.tables] for one in all_measures()})
    check_plan(suite)
    chosen = load_suite(suite)
    for corpus in chosen.stages["download"]:
        _check_corpus(chosen, corpus)
    _check_selections(chosen)
    _check_clustered(chosen)
    for encoder in transformers_of(chosen):
        source = load_parameters(ModelSource, f"encoders.{encoder}")
        check_pin(encoder, source)
        _check_model(encoder, source)
    _check_neighbors(chosen)
    _check_words(chosen)
    _check_word_encoders(chosen, content.get("word_encoders") or {})
    _check_sensitivities(chosen)
    load_graph(WorkingTree(Path()), suite)  # refuses what a run refuses: DVC reads whatever dvc.yaml and the plan name
    return chosen


def refuse_shared_table_names(tables: Mapping[str, Sequence[str]]) -> None:
    """Raise SuiteError for a measure's table with the name of another table, of which the report would lose one.

    tables  task -> the names of its tables
    """
    found = dict.fromkeys((*REPORT_TABLES, *load_plans()), "the report")
    for task, names in tables.items():
        for name in names:
            if name in found:
                raise SuiteError(
                    "two tables have one name", where=f"sentfold/measures/{task}.py: TABLES",
                    expected=f"another name than that of a table of {found[name]}", got=name,
                )  # fmt: skip
            found[name] = task


def _check_model(encoder: str, source: ModelSource) -> None:
    """That a model is there and pinned, and has not learned from labels: a suite would score it on what it has seen."""
    where = f"{PARAMS_FILE}: encoders.{encoder}"
    if not source.hub and not source.sha256:
        raise ParameterError(
            "a model has no pins", where=where, expected="sha256: the hash of each file", got="none",
            remedy=f"`sentfold pin-encoder {encoder}` prints the lines; look at the files, and add the lines",
        )  # fmt: skip
    if LEARNED in source.sha256:
        raise ParameterError(
            "a model has learned from labels or scores, and a suite may score it on them", where=where,
            expected="a model without a space that learned from labels", got=LEARNED,
            remedy="judge it on texts that it has not seen: `sentfold compare` takes its folder",
        )  # fmt: skip
    if source.folder:
        if not Path(source.folder).is_dir():
            raise ParameterError("a model's folder is not there", where=where, expected="a folder", got=source.folder)
        refuse_odd_settings(encoder, Path(source.folder))


def transformers_of(suite: Suite) -> tuple[str, ...]:
    """The blocks of `encoders:` that the suite's spaces are made with: as they are, pooled otherwise, or trained."""
    pooled = (item["encoder"] for item in suite.stages["pool"].values())
    trained = (item["base"] for item in suite.stages["train"].values())
    return tuple(dict.fromkeys([*suite.encoders, *pooled, *trained]))


def _check_name(group: str, name: Any) -> None:
    try:
        check_slug(str(name))
    except ValueError as error:
        raise ParameterError("a name cannot be used", where=f"{PARAMS_FILE}: {group}", got=str(error)) from None


def _check_published(content: dict[str, Any]) -> None:
    """That the report calls no model of the user's by the name of one in published.csv."""
    for encoder, entry in (content["report"].get("published") or {}).items():
        source = (content.get("encoders") or {}).get(encoder) or {}
        found = next((str(source[key]) for key in ("hub", "package", "folder") if source.get(key)), "")
        wanted = OFFICIAL.get(entry["model"], entry["model"])
        parts = found.lower().replace("--", "/").split("/")  # the hub's cache has models--OWNER--NAME/snapshots/COMMIT
        named = wanted.lower() in parts or bool(source.get("package") and found.lower().endswith(f"-{wanted.lower()}"))
        if found and not named:
            raise ParameterError(
                f"the report would call this model {entry['model']}, and show printed figures of that one with it",
                where=f"{PARAMS_FILE}: encoders.{encoder}",
                expected=f"a name of the hub or a folder with the part {wanted}, or a package that ends with it",
                got=found,
                remedy=f"give your model a block of its own, or take {encoder} out of report.published",
            )


def _check_named_spaces(content: dict[str, Any]) -> None:
    """That each space that `evaluate` names is one that params.yaml can make: a slip of the pen would do nothing."""
    pooled = [f"{name}-{space}" for name, block in (content.get("poolings") or {}).items() for space in block["spaces"]]
    trained = [f"{name}-seed{seed}" for name, one in (content.get("trainings") or {}).items() for seed in one["seeds"]]
    makers = [*(content.get("encoders") or {}), *(content.get("word_encoders") or {}), *pooled, *trained]
    changes = [*(content.get("manifolds") or {}), *(content.get("postprocessing") or {})]
    known = {*makers, *(f"{maker}-{change}" for maker in makers for change in changes)}
    parameters = load_parameters(evaluate_parameters(), "evaluate")
    for key, spaces in (("unfitted", parameters.unfitted), ("perceptron", parameters.perceptron)):
        for space in set(spaces) - known:
            raise ParameterError(
                f"there is no space '{space}'",
                where=f"{PARAMS_FILE}: evaluate.{key}",
                expected="a space that is made from sentences, alone or followed by - and a block of manifolds:",
                got=space,
                remedy="correct the name, or take it off the list",
            )


def _check_corpus(suite: Suite, slug: str) -> None:
    corpus = find_corpus(slug, suite.suite)
    dataset = corpus.dataset
    if dataset.task == "counts":
        raise SuiteError(
            f"'{slug}' holds words and counts, no sentences to embed",
            where=suite.written,
            expected="corpora of sentences",
            got=slug,
            remedy=f"take it out of `corpora:` in {suite.written}",
        )
    with located(f"{corpus.catalogue}: {corpus.dataset_name}.task"):
        find_measure(dataset.task)
    if dataset.is_local:
        return
    homeless = [split for split in corpus.splits if split not in {**dataset.hub, **dataset.archive}]
    if suite.source == "package" or (suite.source == "hub" and homeless):
        raise SuiteError(
            f"'{slug}' cannot be had from the source '{suite.source}'",
            where=suite.written,
            expected="a source that the catalogue names for it: see `sentfold catalogue`",
            got=suite.source,
            remedy=f"change `source:` in {suite.written}, or take the corpus out",
        )


def _refuse_mirrored_documents(suite: Suite, slug: str) -> None:
    """Raise SourceError for queries and documents in a mirror, whose files have judged documents alone.

    Searched among these, queries score far higher than among all documents of the collection.
    """
    corpus = find_corpus(slug, suite.suite)
    if corpus.dataset.task != "retrieval" or corpus.dataset.is_local:
        return
    from pipeline.corpora.mirror import mirror_folder

    files = [name for split in corpus.splits for name in corpus.dataset.mirror_files(corpus.dataset_name, split)]
    if there := [name for name in files if (mirror_folder() / name).exists()]:
        raise SourceError(
            "a mirror has no place for the documents that nobody judged", where=f"{MIRROR_VARIABLE}/{there[0]}",
            expected=f"the collection from the hub, as {slug} has it there",
            got="a file of judged pairs of a query and a document",
            remedy="take the suite `beir`; or `sentfold compare` and `decide`, which read a folder in BEIR's form",
        )  # fmt: skip


def mirror_changes(suite: Suite) -> None:
    """Raise SourceError if the mirror no longer holds what the suite's corpora were read from.

    DVC cannot see the mirror, so without this a replaced file would keep its old numbers, and a blank
    would stay blank after its file was added. Raises SourceError too if the mirror is no folder. Nothing is compared
    while no mirror is set. Raises SourceError for queries and documents of a mirror, too.
    """
    if suite.source != "mirror" or not os.environ.get(MIRROR_VARIABLE):
        return
    from pipeline.corpora.mirror import changed_files, mirror_folder

    mirror_folder()
    stale = []
    for slug in suite.stages["download"]:
        _refuse_mirrored_documents(suite, slug)
        path = corpus_path(suite.suite, slug, "items")
        corpus = find_corpus(slug, suite.suite)
        if not path.exists() or corpus.dataset.is_local:
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
        stages = " ".join(f"{Path(suite.written).with_name('dvc.yaml')}:download@{slug}" for slug in stale)
        raise SourceError(
            "the mirror holds something else than when it was read",
            where=MIRROR_VARIABLE,
            expected="the files whose sha256 the corpora recorded",
            got=f"other or new files for: {', '.join(stale)}",
            remedy=f"read them again: dvc repro --force --single-item {stages}",
        )


def _check_neighbors(suite: Suite) -> None:
    """That the neighbour graph holds as many neighbours as each block of `manifolds:` wants of it."""
    held = load_parameters(GraphParameters, "knn_graph").neighbors
    made = {**suite.stages["eigensolve"], **suite.stages["transform"], **suite.stages["selected"]}
    for item in made.values():
        maker = str(item["maker"])
        is_grid = load_block(maker).is_grid
        points = load_grid(maker).points if is_grid else (load_maker(maker).settings,)
        wanted = max(getattr(point, "neighbors", 0) for point in points)
        if "/graphs/" in item["reads"] and wanted > held:
            raise ParameterError(
                f"manifold '{maker}' wants more neighbours than the graph holds",
                where=f"{PARAMS_FILE}: manifolds.{maker}.neighbors",
                expected=f"<= knn_graph.neighbors = {held}",
                got=str(wanted),
                remedy="raise knn_graph.neighbors, or lower this one",
            )


def _check_selections(suite: Suite) -> None:
    """That there is a similarity corpus to choose on, where the suite chooses anything."""
    if suite.development is None and not suite.stages["sweep"]:
        return
    held = [slug for slug in suite.corpora if find_corpus(slug, suite.suite).dataset.task == "similarity"]
    if suite.development not in held:
        raise SuiteError(
            "there is nothing to choose hyper-parameters on",
            where=f"{suite.written}: development",
            expected=f"one of: {', '.join(held)}",
            got=str(suite.development or "nothing"),
            remedy=f"name one in {suite.written}; no table then counts it as a test set",
        )


def _check_clustered(suite: Suite) -> None:
    """That the spaces chosen for clustering are chosen on clustering corpora."""
    held = [slug for slug in suite.corpora if find_corpus(slug, suite.suite).dataset.task == "clustering"]
    for space, item in suite.stages["sweep_clusters"].items():
        if item["development"] not in held:
            raise SuiteError(
                f"the parameters of '{space}' cannot be chosen by k-means",
                where=f"{suite.written}: chosen_on.{space}",
                expected=f"a clustering corpus of the suite: {', '.join(held) or 'it has none'}",
                got=str(item["development"]),
                remedy=f"name one in {suite.written}, or take the line out",
            )


def warn_of_selections(suite: Suite) -> str:
    """What to know of a suite that chooses parameters on a corpus and scores it too; "" for one that chooses none."""
    choosers: dict[str, list[str]] = {suite.development: list(suite.stages["sweep"])} if suite.development else {}
    for space, item in suite.stages["sweep_clusters"].items():
        choosers.setdefault(item["development"], []).append(space)
    return "\n".join(_warn_of(suite, corpus, ", ".join(spaces)) for corpus, spaces in choosers.items() if spaces)


def _warn_of(suite: Suite, corpus: str, spaces: str) -> str:
    task = find_corpus(corpus, suite.suite).dataset.task
    if [slug for slug in suite.corpora if find_corpus(slug, suite.suite).dataset.task == task] == [corpus]:
        return (
            f"warning: {corpus} chooses the parameters of {spaces}, and is the only {task} corpus of the suite: none "
            f"of their scores is evidence for them. Add another {task} corpus to {suite.written}."
        )
    return (
        f"warning: {corpus} chooses the parameters of {spaces}, and is scored too. Tables mark these scores with †, "
        "and never call them better."
    )


def _check_words(suite: Suite) -> None:
    """That counts, tokenizers and files of word vectors can be had."""
    for tokenizer in suite.tokenizers:
        if tokenizer not in TOKENIZERS:
            raise ParameterError(
                f"there is no tokenizer '{tokenizer}'",
                where=f"{PARAMS_FILE}: word_encoders, clusterings",
                expected=f"one of: {', '.join(TOKENIZERS)}",
                got=tokenizer,
                remedy=f"correct {PARAMS_FILE}",
            )
    if suite.counts != "own" and suite.source == "package":
        raise SuiteError(
            f"the counts '{suite.counts}' are in no package",
            where=f"{suite.written}: counts",
            expected="own, where the source is `package`",
            got=suite.counts,
            remedy=f"write `counts: own` in {suite.written}, or take another source",
        )
    for source in suite.word_vectors:
        for name, block in load_blocks(source).items():
            if block.file is not None:
                with located(f"{PARAMS_FILE}: word_vectors.{name}.file"):
                    find_location(block.file)


def _check_word_encoders(suite: Suite, blocks: dict[str, Any]) -> None:
    """The settings of every word encoder, and that a clustering which it names fits it."""
    for name in blocks:
        load_parameters(WordEncoderParameters, f"word_encoders.{name}").method_settings(name)
    for name in suite.word_encoders:
        wanted = load_parameters(WordEncoderParameters, f"word_encoders.{name}")
        if wanted.clusters is not None:
            _check_partition(name, wanted)


def _check_sensitivities(suite: Suite) -> None:
    """That each word encoder whose hyper-parameters are varied has a block of values, each of them its method's."""
    for name in suite.sensitivities:
        varied = load_parameters(SensitivityParameters, f"sensitivity.{name}")
        list(list_trials(name, varied, load_parameters(WordEncoderParameters, f"word_encoders.{name}")))


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
