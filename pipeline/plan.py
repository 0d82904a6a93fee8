"""The plan of a suite: what follows from its suite.yaml and params.yaml, resolved for dvc.yaml's templates.

DVC's templates cannot derive lists. So `sentfold plan` reads the few lines that a user writes and writes
plan.yaml next to them: every stage instance with the names that dvc.yaml puts into its dependencies.
plan.yaml is committed. The first stage of dvc.yaml fails if it no longer follows from the suite file.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

from pydantic import Field, model_validator

from pipeline.base.params import PARAMS_FILE, read_yaml
from pipeline.base.suite import (
    CountsKind,
    SourceKind,
    freeze,
    plan_file,
    require_suite,
    suite_file,
    suite_folder,
)
from pipeline.corpora.catalogue import CATALOGUE_FILE, find_corpus, own_catalogue
from pipeline.lineage.checks import catalogue_names
from pipeline.lineage.stages import dump_yaml
from pipeline.odd_files import DVC_FILE, SHARED_STAGES, refuse_odd_lock, refuse_odd_suite, refuse_other_places
from sentfold.clusterers.base import known_clusterers
from sentfold.errors import ParameterError, SuiteError
from sentfold.files import write_bytes_atomically
from sentfold.manifold.base.grid import SUFFIX
from sentfold.manifold.base.protocol import find_method
from sentfold.settings import Parameters, Slug, refuse_unknown, validate

LINE = 100  # bytes, more than a written link has
READ_BY_DVC = ("params.yaml", ".dvc")  # next to a dvc.yaml: further values for its stages, and settings
PLAIN = "cosine"  # the block of `searches:` that derived spaces are searched by, and others are compared with
COUNTED = "word-freq"  # the data set of the catalogue that published word counts come from
# STSb was put together of the tasks before it (Cer et al. 2017), of which STS12 has pairs of MRPC (Agirre et al. 2012).
STS_DATA = frozenset({"mrpc", "sts12", "sts13", "sts14", "sts15", "sts16", "stsb"})

# The groups of params.yaml. A stage reads only its own groups, so no stage would notice a misspelt one; the first stage
# compares with this list. The list is here, because a new group must not make other stages stale.
GROUPS = (
    "encoders",
    "embed",
    "poolings",
    "postprocessing",
    "trainings",
    "knn_graph",
    "manifolds",
    "eigensolve",
    "vocabulary",
    "word_vectors",
    "clusterings",
    "word_encoders",
    "evaluate",
    "searches",
    "pools",
    "report",
    "sensitivity",
)


# Reasons stand in cells of tables, where a spreadsheet would take `=...` for a formula.
Reason = Annotated[str, Field(pattern=r"^\w")]


class SuiteFile(Parameters):
    """What a user writes in suite.yaml; see Suite for the meaning of each key.

    extends    another suite, which extends none, whose keys hold where this file has none
    chosen_on  selected space -> the clustering corpus that its parameters are chosen on, in place of `development`
    searched   spaces in which documents are searched: an encoder's own by every block of `searches:`, others by cosine
    """

    suite: Slug
    source: SourceKind
    corpora: tuple[Slug, ...]
    spaces: tuple[Slug, ...]
    extends: Slug | None = None
    skip_missing: bool = False
    counts: CountsKind = "own"
    development: Slug | None = None
    chosen_on: dict[Slug, Slug] = {}
    searched: tuple[Slug, ...] = ()
    baseline: Slug | None = None
    wordless: tuple[Slug, ...] = ()
    blanks: dict[Slug, Reason] = {}
    sensitivities: tuple[Slug, ...] = ()

    @model_validator(mode="after")
    def _names_agree(self) -> SuiteFile:
        for key in ("corpora", "spaces"):
            if not getattr(self, key):
                raise ValueError(f"'{key}' is empty: name at least one")
        for key in ("corpora", "spaces", "wordless", "sensitivities", "searched"):
            names = getattr(self, key)
            twice = sorted(name for name, count in Counter(names).items() if count > 1)
            if twice:
                raise ValueError(f"'{key}' names {', '.join(twice)} twice")
        strange = set(self.wordless) - set(self.corpora)
        if strange:
            raise ValueError(f"'wordless' names {', '.join(sorted(strange))}, no corpora of the suite")
        if self.development is not None and self.development not in self.corpora:
            raise ValueError(f"'development' names '{self.development}', which is no corpus of the suite")
        unmade = set(self.searched) - set(self.spaces)
        if unmade:
            raise ValueError(f"'searched' names {', '.join(sorted(unmade))}, no spaces of the suite")
        for space, corpus in self.chosen_on.items():
            if space not in self.spaces or corpus not in self.corpora:
                raise ValueError(f"'chosen_on' names '{space}: {corpus}', which is no space and corpus of the suite")
        if self.baseline is not None and self.baseline not in self.spaces:
            raise ValueError(f"'baseline' names '{self.baseline}', which is no space of the suite")
        return self


def write_plan(suite: str) -> Path:
    """Write the plan of a suite, and its link to dvc.yaml, where they are not right yet. Returns the plan's path.

    Raises SuiteError or ParameterError for a name that params.yaml or the catalogue does not know.
    """
    _refuse_own_stages(suite)
    path, text = plan_file(suite), plan_text(suite)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_bytes_atomically(path, text.encode())
    link = suite_folder(suite) / DVC_FILE
    if not link.exists():
        link.symlink_to(SHARED_STAGES)
    return path


def check_plan(suite: str) -> None:
    """Raise SuiteError if the plan on disk is not the one that follows from the suite file and params.yaml.

    Raises SuiteError too if there is no such suite, and ParameterError for a group of params.yaml that no stage reads.
    """
    refuse_unknown(read_yaml(PARAMS_FILE), GROUPS, where=str(PARAMS_FILE))
    require_suite(suite)
    _refuse_own_stages(suite)
    own = own_catalogue(suite)
    shadowed = catalogue_names(read_yaml(own)) & catalogue_names(read_yaml(CATALOGUE_FILE)) if own.exists() else set()
    if shadowed:
        raise SuiteError(
            f"a catalogue of suite '{suite}' has names of the shared one",
            where=str(own),
            expected="names that no other data set or corpus has, as tables call scores by these names",
            got=", ".join(sorted(shadowed)),
            remedy="rename these data sets and corpora",
        )
    path = plan_file(suite)
    if not path.exists() or path.read_text(encoding="utf-8") != plan_text(suite):
        raise SuiteError(
            f"the plan of suite '{suite}' does not follow from its suite file",
            where=str(path),
            expected=f"what follows from {suite_file(suite)} and {PARAMS_FILE}",
            got="another content" if path.exists() else "no such file",
            remedy=f"run `sentfold plan --suite {suite}`, and commit {path}",
        )


def _refuse_own_stages(suite: str) -> None:
    """Raise SuiteError for a dvc.yaml of any suite that is not the shared one: suites are data, and bring no commands.

    A stage that an audit runs again sees neither. Raises SuiteError too for other files that DVC reads in the folders
    of suites, and as refuse_odd_suite does.
    """
    refuse_odd_suite(suite)
    refuse_odd_lock(suite)
    refuse_other_places(suite)
    for folder in sorted(Path("suites").glob("*")):  # DVC reads those of all suites, whichever it is called for
        own, shared = folder / DVC_FILE, Path(DVC_FILE)
        if folder.name != suite and _is_written_link(own):
            continue
        if shared.exists() and os.path.lexists(own) and not _same_bytes(own, shared):
            raise SuiteError(
                f"suite '{folder.name}' brings stages of its own",
                where=str(own),
                expected=f"a link to ../../{DVC_FILE}",
                got="another file, whose commands a run would execute",
                remedy=f"remove {quote(str(own))}, and run `sentfold plan --suite {quote(folder.name)}`",
            )
        for name in READ_BY_DVC:
            if os.path.lexists(folder / name):
                raise SuiteError(
                    f"suite '{folder.name}' has a file that DVC would read",
                    where=str(folder / name),
                    expected=f"parameters in {PARAMS_FILE} of the checkout alone",
                    remedy=f"remove {quote(str(folder / name))}",
                )


def _is_written_link(path: Path) -> bool:
    """Whether a file has the text of the link: git writes it so where there are no links. It holds no stages."""
    return path.is_file() and path.stat().st_size < LINE and path.read_bytes().strip() == str(SHARED_STAGES).encode()


def _same_bytes(one: Path, two: Path) -> bool:
    return one.is_file() and one.stat().st_size == two.stat().st_size and one.read_bytes() == two.read_bytes()


def mark_checked(suite: str) -> Path:
    """Write the output of the stage `plan`: the same bytes every time, so that no stage reruns because of it."""
    path = Path("data") / suite / "plan" / "checked.txt"
    write_bytes_atomically(path, b"plan.yaml follows from suite.yaml and params.yaml\n")
    return path


def plan_text(suite: str) -> str:
    """The bytes of a plan.yaml, as text."""
    head = (
        f"# Written by `sentfold plan --suite {suite}` from {suite_file(suite)} and params.yaml. Edit those instead.\n"
    )
    return head + dump_yaml(make_plan(suite))


def read_suite_file(suite: str) -> SuiteFile:
    """The suite file of a suite, with the keys of the suite that it extends. Raises SuiteError."""
    path = suite_file(suite)
    content = read_yaml(require_suite(suite))
    if content.get("extends") is not None:
        parent = str(content["extends"])
        base = read_yaml(require_suite(parent))
        if base.get("extends") is not None:  # DVC would not notice an edit of the third: the stage `plan` reads two
            raise SuiteError(
                "a suite extends a suite that extends another",
                where=f"{path}: extends",
                expected="a suite that extends none",
                got=f"{suite} -> {parent} -> {base['extends']}",
                remedy=f"extend {base['extends']}, and copy the keys of {suite_file(parent)}",
            )
        content = {**base, **content, "extends": parent}
    try:
        written = validate(SuiteFile, freeze(content), where=str(path))
    except ParameterError as error:
        raise SuiteError(
            error.what, where=error.where, expected=error.expected, got=error.got, remedy=f"correct {path}"
        ) from None
    if written.suite != suite:
        raise SuiteError(
            "a suite file does not name its own suite",
            where=str(path),
            expected=f"suite: {suite}",
            got=f"suite: {written.suite}",
            remedy=f"correct {path}",
        )
    return written


def make_plan(suite: str) -> dict[str, Any]:
    """Everything that plan.yaml says. Raises SuiteError or ParameterError for an unknown name."""
    return resolve(read_suite_file(suite), read_yaml(PARAMS_FILE))


def _corpus_of(slug: str, suite: str) -> dict[str, str]:
    """Data set, catalogue, and the folder of a suite's own files: where it has none, one that always exists."""
    corpus = find_corpus(slug, suite)
    reads = corpus.dataset.folder or f"data/{suite}/plan"
    return {"dataset": corpus.dataset_name, "catalogue": corpus.catalogue, "reads": reads}


def resolve(
    written: SuiteFile,
    params: Mapping[str, Any],
    *,
    corpus_of: Callable[[str, str], dict[str, str]] = _corpus_of,
) -> dict[str, Any]:
    """The plan that follows from a suite file and the content of params.yaml.

    corpus_of  corpus, suite -> its data set, the catalogue that describes it, and the folder that it is read from
    Raises SuiteError for a name that params.yaml does not know, and what `corpus_of` raises.
    """
    suite = written.suite
    made = _Stages(written, params).instances(corpus_of)
    data, always = f"data/{suite}", f"data/{suite}/corpora"
    folder = suite_folder(suite)
    return {
        "suite": suite,
        "root": "../.." if folder.parts else ".",
        "file": str(plan_file(suite)),
        "written": str(suite_file(suite)),
        "counted": COUNTED,
        "parent": str(suite_file(written.extends or suite)),
        "source": written.source,
        "skip_missing": written.skip_missing,
        "counts": written.counts,
        "development": written.development,
        "baseline": written.baseline,
        "corpora": list(written.corpora),
        "wordless": list(written.wordless),
        "spaces": list(written.spaces),
        "blanks": dict(written.blanks),
        "sensitivities": list(written.sensitivities),
        "paths": {
            "words": f"{data}/words" if made["vocabulary"] else always,
            "sweeps": f"reports/{suite}/sweeps" if made["selected"] or made["sensitivity"] or made["train"] else always,
        },
        "stages": made,
    }


class _Stages:
    """The stage instances of one suite, derived from its spaces."""

    def __init__(self, written: SuiteFile, params: Mapping[str, Any]) -> None:
        self.suite = written
        self.file = str(suite_file(written.suite))
        self.encoders: Mapping[str, Any] = params.get("encoders") or {}
        self.word_encoders: Mapping[str, Any] = params.get("word_encoders") or {}
        self.postprocessing: Mapping[str, Any] = params.get("postprocessing") or {}
        self.manifolds: Mapping[str, Any] = params.get("manifolds") or {}
        self.word_vectors: Mapping[str, Any] = params.get("word_vectors") or {}
        self.clusterings: Mapping[str, Any] = params.get("clusterings") or {}
        self.searches: Mapping[str, Any] = params.get("searches") or {}
        self.pools: Mapping[str, Any] = params.get("pools") or {}
        self.pooled = {
            f"{encoder}-{name}": (str(encoder), str(name))
            for encoder, block in (params.get("poolings") or {}).items()
            for name in block["spaces"]
        }
        self.trained = {
            f"{name}-seed{seed}": (str(name), int(seed))
            for name, block in (params.get("trainings") or {}).items()
            for seed in block["seeds"]
        }
        self.trainings: Mapping[str, Any] = params.get("trainings") or {}
        self.origins = {space: self.origin(space) for space in written.spaces}

    def origin(self, space: str) -> tuple[str, str]:
        """The space that a space is made from, and the block of `manifolds:` or `postprocessing:` that makes it.

        They are the space itself and "" where the space is one of sentences. Raises SuiteError.
        """
        known, changes = self.own_spaces(), {**self.manifolds, **self.postprocessing}
        made = [
            (source, space.removeprefix(f"{source}-"))
            for source in sorted(known, key=len, reverse=True)
            if space.startswith(f"{source}-") and space.removeprefix(f"{source}-") in changes
        ]
        named = [group for group, spaces in self.own_groups() if space in spaces]
        if len(named) + bool(made) > 1 and not {"encoders", "word_encoders"} >= set(named):
            raise SuiteError(
                f"'{space}' is the name of two spaces",
                where=f"{self.file}: spaces",
                got=" and ".join(
                    [*(f"a space of {group}:" for group in named), *(" + ".join(one) for one in made[:1])]
                ),
                remedy="give the space in poolings: or trainings: of params.yaml another name",
            )
        if space in known:
            return space, ""
        if made:
            return made[0]
        raise SuiteError(
            f"suite '{self.suite.suite}' names a space that nothing makes",
            where=f"{self.file}: spaces",
            expected="a block of encoders: or word_encoders: in params.yaml, <encoder>-<space of poolings:>, "
            "<block of trainings:>-seed<N>, or <such a space>-<block of manifolds: or postprocessing:>",
            got=space,
            remedy=f"correct the name in {self.file}, or add the block to params.yaml",
        )

    def own_groups(self) -> tuple[tuple[str, Iterable[str]], ...]:
        """The groups of params.yaml whose spaces are made from sentences, with the names of these spaces."""
        return (
            ("encoders", self.encoders),
            ("word_encoders", self.word_encoders),
            ("poolings", self.pooled),
            ("trainings", self.trained),
        )

    def own_spaces(self) -> set[str]:
        """The names of all spaces that are made from sentences."""
        return {name for _, names in self.own_groups() for name in names}

    def instances(self, corpus_of: Callable[[str, str], dict[str, str]]) -> dict[str, dict[str, dict[str, Any]]]:
        """Stage -> instance -> what dvc.yaml's templates need to know of it."""
        used = dict.fromkeys(encoder for encoder, _ in self.origins.values())
        derived = {space: made for space, made in self.origins.items() if made[1] in self.manifolds}
        worded = [name for name in used if name in self.word_encoders]
        words = [*worded, *(name for name in self.suite.sensitivities if name not in worded)]
        blocks = [self.block("word_encoders", self.word_encoders, name) for name in words]
        clusterings = dict.fromkeys(str(block["clusters"]["clustering"]) for block in blocks if block.get("clusters"))
        blocks += [self.block("clusterings", self.clusterings, name) for name in clusterings]
        selected = self.made_by(derived, "selected")
        made: dict[str, dict[str, dict[str, Any]]] = {
            "download": {corpus: corpus_of(corpus, self.suite.suite) for corpus in self.all_corpora(used)},
            "vocabulary": {str(name): {} for name in dict.fromkeys(block["tokenizer"] for block in blocks)},
            "word_vectors": self.vectors(blocks),
            "cluster_words": {name: self.words_of(self.clusterings[name]) for name in clusterings},
            "embed": {
                f"{corpus}-{name}": {"corpus": corpus, "encoder": name}
                for name in used
                if name in self.encoders
                for corpus in self.suite.corpora
            },
            "pool": self.layers(used),
            "pooled": {name: self.pooled_space(name) for name in used if name in self.pooled},
            "train": {name: self.training(name) for name in used if name in self.trained},
            "embed_trained": {
                f"{corpus}-{name}": {"corpus": corpus, "space": name}
                for name in used
                if name in self.trained
                for corpus in self.suite.corpora
            },
            "encode": {name: self.words_of(self.word_encoders[name]) for name in worded},
            "postprocess": self.postprocessed(),
            "knn_graph": {
                encoder: {}
                for encoder in dict.fromkeys(encoder for encoder, maker in derived.values() if self.needs_graph(maker))
            },
            "reconstruction_weights": self.made_by(derived, "eigensolve"),
            "eigensolve": self.made_by(derived, "eigensolve"),
            "transform": self.made_by(derived, "transform"),
            "sweep": {space: {**item} for space, item in selected.items() if space not in self.suite.chosen_on},
            "sweep_clusters": self.clustered(selected),
            "selected": selected,
            "sensitivity": {name: self.words_of(self.word_encoders[name]) for name in self.suite.sensitivities},
            "evaluate": {
                space: {"source": encoder, "maker": maker} for space, (encoder, maker) in self.origins.items()
            },
            "search": self.searched(),
        }
        return {**made, "word_counts": made["vocabulary"]}

    def layers(self, used: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Corpus and encoder -> the spaces of `poolings:` that one forward pass makes."""
        names: dict[str, list[str]] = {}
        for space in used:
            if space in self.pooled:
                encoder, name = self.pooled[space]
                self.block("encoders", self.encoders, encoder)
                names.setdefault(encoder, []).append(name)
        return {
            f"{corpus}-{encoder}": {"corpus": corpus, "encoder": encoder, "spaces": list(found)}
            for encoder, found in names.items()
            for corpus in self.suite.corpora
        }

    def pooled_space(self, space: str) -> dict[str, Any]:
        """The encoder and the name in `poolings:` that a pooled space consists of."""
        encoder, name = self.pooled[space]
        return {"encoder": encoder, "name": name}

    def training(self, space: str) -> dict[str, Any]:
        """The block, the seed and the encoder of a trained space, and the corpora that it reads.

        Raises SuiteError where the suite scores a corpus that is known to have pairs of the training: its scores would
        be no evidence for the space.
        """
        name, seed = self.trained[space]
        block = self.block("trainings", self.trainings, name)
        base, data = str(block["base"]), block["data"]
        self.block("encoders", self.encoders, base)
        corpora = {key: str(data.get(key) or data["train"]) for key in ("train", "otherwise", "dev")}
        seen = [one for one in self.suite.corpora if any(_share_pairs(one, other) for other in corpora.values())]
        if seen:
            raise SuiteError(
                f"the training of '{space}' reads pairs that the suite scores",
                where=f"{self.file}: corpora",
                expected=f"corpora that share no pairs with {', '.join(dict.fromkeys(corpora.values()))}",
                got=", ".join(seen),
                remedy="take these corpora or the space out of the suite; a training downloads its own corpora",
            )
        return {"training": name, "seed": seed, "base": base, **corpora}

    def all_corpora(self, used: Iterable[str]) -> list[str]:
        """The suite's corpora, and those that its trainings read."""
        items = [self.training(name) for name in used if name in self.trained]
        return list(
            dict.fromkeys([*self.suite.corpora, *(i[key] for i in items for key in ("train", "otherwise", "dev"))])
        )

    def postprocessed(self) -> dict[str, dict[str, Any]]:
        """Spaces of `postprocessing:`. Raises SuiteError for a corpus to fit on that the suite lacks."""
        made: dict[str, dict[str, Any]] = {}
        for space, (source, name) in self.origins.items():
            if name not in self.postprocessing:
                continue
            corpus = self.block("postprocessing", self.postprocessing, name).get("fitted_on")
            if corpus is not None and corpus not in self.suite.corpora:
                raise SuiteError(
                    f"'{space}' is fitted on a corpus that the suite lacks",
                    where=f"{self.file}: corpora",
                    expected=f"the corpus of postprocessing.{name}.fitted_on, {corpus}",
                    got=", ".join(self.suite.corpora),
                    remedy=f"add {corpus} to the corpora, or take the space out",
                )
            made[space] = {"source": source, "change": name}
        return made

    def searched(self) -> dict[str, dict[str, Any]]:
        """Space and search -> its method, its pools, and the search that it is compared with.

        Raises SuiteError if no pool has its corpora in the suite, a search has the name of a space, or the pool of a
        corpus would test a space whose parameters that corpus chose.
        """
        made: dict[str, dict[str, Any]] = {}
        pools = [name for name in self.pools if self.has_pool(name)]
        if self.suite.searched and not pools:
            raise SuiteError(
                "the suite has no pool to search in",
                where=f"{self.file}: searched",
                expected=f"the corpora of a block of pools: in params.yaml: {', '.join(self.pools)}",
                got=", ".join(self.suite.corpora),
                remedy="add such corpora to the suite, or a block to pools:",
            )
        for space in self.suite.searched:
            encoder, maker = self.origins[space]
            chooser = self.suite.chosen_on.get(space, self.suite.development)
            seen = [pool for pool in pools if chooser and self.pool_tests(pool, chooser)]
            if maker in self.manifolds and self.method_name(maker)[1] and seen:
                raise SuiteError(
                    f"a search would test '{space}' on pairs that chose its parameters",
                    where=f"{self.file}: searched",
                    expected=f"a space without a choice, or no block pools.{seen[0]} in params.yaml",
                    got=f"{space}, chosen on {chooser}",
                    remedy="take the space out of `searched`, or, if the corpus has parts, give the pool `split: test`",
                )
            for name in [PLAIN] if maker else self.searches:
                method = str(self.block("searches", self.searches, name).get("method"))
                against = f"{space if name != PLAIN else encoder}-{PLAIN}"
                own = {"space": space, "search": name, "method": method, "against": against}
                made[f"{space}-{name}"] = {**own, "pools": pools}
        twice = set(made) & set(self.origins)
        if twice:
            raise SuiteError(
                "a search has the name of a space",
                where=f"{self.file}: searched",
                got=", ".join(sorted(twice)),
                remedy="give the block of searches: in params.yaml another name",
            )
        return made

    def pool_tests(self, pool: str, chooser: str) -> bool:
        """Whether a pool can have pairs of the corpus that chooses: it is that one, or all parts of the same data."""
        (first, part), second = pool.partition("-")[::2], chooser.partition("-")[0]
        has_parts = part == "trained" or pool in ("mrpc", "sick-e")
        kin = first == second or {first, second} <= STS_DATA
        return pool == chooser or (has_parts and kin and self.pools[pool].get("split") != "test")

    def has_pool(self, name: str) -> bool:
        """Whether the suite has the corpora of a pool, those of its development pairs included."""
        development = self.block("pools", self.pools, name).get("development") or {}
        return {name, development.get("corpus", name)} <= set(self.suite.corpora)

    def block(self, group: str, blocks: Mapping[str, Any], name: str) -> dict[str, Any]:
        """One block of params.yaml. Raises SuiteError if it is missing or no mapping."""
        block = blocks.get(name)
        if not isinstance(block, dict):
            raise SuiteError(
                f"params.yaml has no block {group}.{name}",
                where=self.file,
                expected=f"one of: {', '.join(map(str, blocks))}",
                got=name,
                remedy=f"correct the name, or add the block {group}.{name} to params.yaml",
            )
        return block

    def vectors(self, blocks: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Word vectors -> the tokenizers whose vocabularies they are wanted for."""
        wanted: dict[str, list[str]] = {}
        for block in blocks:
            tokenizers = wanted.setdefault(str(block["vectors"]), [])
            if block["tokenizer"] not in tokenizers:
                tokenizers.append(str(block["tokenizer"]))
        return {name: {"tokenizers": sorted(tokenizers)} for name, tokenizers in wanted.items()}

    def words_of(self, block: Mapping[str, Any]) -> dict[str, Any]:
        """What a word encoder or a clustering reads of the words, and by which method it works."""
        words, clusters = f"data/{self.suite.suite}/words", block.get("clusters")
        vectors = f"{words}/vectors/{block['vectors']}"
        clusterers = [name for name in known_clusterers() if name in block]
        return {
            "method": block["method"] if "method" in block else clusterers[0] if clusterers else "",
            "tokenizer": block["tokenizer"],
            "vectors": vectors,
            "clusters": f"{words}/clusters/{clusters['clustering']}" if clusters else vectors,
        }

    def made_by(self, derived: Mapping[str, tuple[str, str]], stage: str) -> dict[str, dict[str, Any]]:
        """The spaces whose last stage is `stage`."""
        return {
            space: {"encoder": encoder, "maker": maker, **self.method_of(encoder, maker)}
            for space, (encoder, maker) in derived.items()
            if self.last_stage(maker) == stage
        }

    def clustered(self, selected: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """The spaces of `chosen_on`, each with its corpus. Raises SuiteError for a space without a grid."""
        for space in self.suite.chosen_on:
            if space not in selected:
                raise SuiteError(
                    f"'{space}' has no parameters to choose",
                    where=f"{self.file}: chosen_on",
                    expected=f"one of: {', '.join(selected)}",
                    got=space,
                    remedy=f"name a space whose method ends in {SUFFIX} in params.yaml",
                )
        return {space: {**selected[space], "development": corpus} for space, corpus in self.suite.chosen_on.items()}

    def method_of(self, encoder: str, maker: str) -> dict[str, str]:
        """The method of a block of `manifolds:`, and the graph that it reads (or the space, where it needs none)."""
        folder = "graphs" if self.needs_graph(maker) else "spaces"
        return {"method": self.method_name(maker)[0], "reads": f"data/{self.suite.suite}/{folder}/{encoder}"}

    def needs_graph(self, maker: str) -> bool:
        """Whether a block's method reads the neighbour graph."""
        return find_method(self.method_name(maker)[0]).READS != "vectors"

    def last_stage(self, maker: str) -> str:
        """The stage that writes the spaces of a block."""
        method, is_grid = self.method_name(maker)
        return "selected" if is_grid else "eigensolve" if find_method(method).READS == "weights" else "transform"

    def method_name(self, maker: str) -> tuple[str, bool]:
        """The file of a block's method, and whether the block is a grid. Raises SuiteError without such a block."""
        name = str(self.block("manifolds", self.manifolds, maker).get("method"))
        return name.removesuffix(SUFFIX), name.endswith(SUFFIX)


def _share_pairs(one: str, other: str) -> bool:
    """Whether two corpora are known to share pairs: the same one, a data set and a part of it, or two of STS_DATA."""
    (first, part), (second, other_part) = one.partition("-")[::2], other.partition("-")[::2]
    if first == second:
        return one == other or "all" in (part, other_part)
    return {first, second} <= STS_DATA
