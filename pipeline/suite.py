"""A suite: which corpora, from which source, in which spaces, with its own lock and report."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import model_validator

from pipeline.errors import ParameterError, SuiteError
from pipeline.params import Parameters, Slug, read_yaml, validate

SourceKind = Literal["package", "mirror", "hub"]
CountsKind = Literal["own", "enwiki"]


class Makers(Parameters):
    """What makes the spaces of a suite; each name is a block of params.yaml, but for the tokenisers'.

    They stand in a group of their own because DVC refuses one name in both suite.yaml and params.yaml.
    """

    encoders: tuple[Slug, ...]
    manifolds: tuple[Slug, ...]
    transforms: tuple[Slug, ...]
    graph_transforms: tuple[Slug, ...]
    word_encoders: tuple[Slug, ...]
    tokenizers: tuple[Slug, ...]
    word_vectors: tuple[Slug, ...]
    clusterings: tuple[Slug, ...]
    selections: tuple[Slug, ...] = ()


class Suite(Parameters):
    """The content of a suite.yaml. Its lists are what dvc.yaml's matrices run over.

    source        where corpora come from: installed packages, a mirror folder, or the network
                  (each dataset's pinned hub revision or official archive)
    skip_missing  record what the source lacks as a blank with its reason, and go on
    counts        whose word counts give unigram probabilities: the suite's own sentences', or a count of
                  English Wikipedia, from the source
    development   the similarity corpus that hyper-parameters of `makers.selections` are chosen on
    wordless      corpora whose words stay out of the vocabulary: long texts, whose rare words would multiply it.
                  Encoders over words read of them what they share with the other corpora
    spaces        the rows of the report; each is an encoder, `<encoder>-<maker>` for a manifold, a
                  transform or a graph transform, or a word encoder
    blanks        rows that cannot be filled from this source, with the reason printed in them
    """

    suite: Slug
    root: str
    file: str
    source: SourceKind
    skip_missing: bool
    corpora: tuple[Slug, ...]
    counts: CountsKind
    makers: Makers
    spaces: tuple[Slug, ...]
    blanks: dict[Slug, str] = {}
    development: Slug | None = None
    wordless: tuple[Slug, ...] = ()

    @model_validator(mode="after")
    def _lists_agree(self) -> Suite:
        # DVC expands an empty list to no stages at all, silently.
        lists = {"corpora": self.corpora, "spaces": self.spaces, **dict(self.makers)}
        for name, items in lists.items():
            # No selection is a choice: then no space of one is expected either.
            if not items and name != "selections":
                raise ValueError(f"'{name}' is empty: name at least one")
            twice = {item for item in items if items.count(item) > 1}
            if twice:
                raise ValueError(f"'{name}' names {', '.join(sorted(twice))} twice")
        if not set(self.wordless) <= set(self.corpora):
            strange = ", ".join(sorted(set(self.wordless) - set(self.corpora)))
            raise ValueError(f"'wordless' names {strange}, no corpora of the suite")
        if self.development is not None and self.development not in self.corpora:
            raise ValueError(f"'development' names '{self.development}', which is no corpus of the suite")
        if set(self.spaces) != set(self.makeable_spaces()):
            wrong = set(self.spaces) ^ set(self.makeable_spaces())
            raise ValueError(f"'spaces' must list exactly what the makers make; differs in: {', '.join(sorted(wrong))}")
        return self

    @property
    def worded_corpora(self) -> tuple[str, ...]:
        """The corpora whose words are the suite's vocabulary."""
        return tuple(corpus for corpus in self.corpora if corpus not in self.wordless)

    @property
    def encoders(self) -> tuple[str, ...]:
        """The encoders whose own spaces are rows."""
        return self.makers.encoders

    @property
    def manifolds(self) -> tuple[str, ...]:
        """The manifolds built over each encoder."""
        return self.makers.manifolds

    @property
    def transforms(self) -> tuple[str, ...]:
        """What is made of each encoder's vectors alone: linear controls, and manifolds by landmarks."""
        return self.makers.transforms

    @property
    def graph_transforms(self) -> tuple[str, ...]:
        """What is made of each encoder's vectors and neighbour graph without an n x n eigenproblem."""
        return self.makers.graph_transforms

    @property
    def selections(self) -> tuple[str, ...]:
        """The grids whose points, chosen on the development corpus, are made of each encoder."""
        return self.makers.selections

    @property
    def word_encoders(self) -> tuple[str, ...]:
        """The encoders over word vectors whose spaces are rows; no manifold is built over them."""
        return self.makers.word_encoders

    def makeable_spaces(self) -> tuple[str, ...]:
        """Every space that this suite's makers make."""
        makers = (*self.manifolds, *self.transforms, *self.graph_transforms, *self.selections)
        made = (space for encoder in self.encoders for space in (encoder, *(f"{encoder}-{maker}" for maker in makers)))
        return (*made, *self.word_encoders)

    @property
    def derived_spaces(self) -> tuple[str, ...]:
        """The rows that were made from an encoder's own row."""
        return tuple(space for space in self.spaces if self.encoder_of(space) != space)

    def check_space(self, space: str) -> None:
        """Raise SuiteError unless `space` is a row of this suite."""
        if space not in self.spaces:
            raise SuiteError(
                f"suite '{self.suite}' has no space '{space}'",
                where=self.file,
                expected=f"one of: {', '.join(self.spaces)}",
                got=space,
                remedy=f"correct the name, or add the space to {self.file}",
            )

    def encoder_of(self, space: str) -> str:
        """The encoder that a space was made from (itself, for an encoder's own space)."""
        if space in self.word_encoders:
            return space
        owners = [encoder for encoder in self.encoders if space == encoder or space.startswith(f"{encoder}-")]
        if not owners:
            raise SuiteError(
                f"no encoder of suite '{self.suite}' makes the space '{space}'",
                where=self.file,
                expected=f"a space of: {', '.join(self.encoders)}",
                got=space,
            )
        return max(owners, key=len)


def suite_file(name: str) -> Path:
    """The suite file of a suite: suite.yaml for quick, suites/<name>/suite.yaml for others."""
    return Path("suite.yaml") if name == "quick" else Path("suites") / name / "suite.yaml"


def load_suite(name: str) -> Suite:
    """Read and check a suite by name, from the root of the checkout. Raises SuiteError."""
    path = suite_file(name)
    if not path.exists():
        others = sorted(folder.parent.name for folder in Path("suites").glob("*/suite.yaml"))
        raise SuiteError(
            f"there is no suite '{name}'",
            where=str(path),
            expected=f"one of: {', '.join(['quick', *others])}",
            got=name,
            remedy="run from the root of the checkout, or create the suite file",
        )
    try:
        suite = validate(Suite, _tuples(read_yaml(path)), where=str(path))
    except ParameterError as error:
        raise SuiteError(
            error.what, where=error.where, expected=error.expected, got=error.got, remedy=f"correct {path}"
        ) from None
    if suite.suite != name or suite.file != str(path):
        raise SuiteError(
            "a suite file does not name itself",
            where=str(path),
            expected=f"suite: {name}, file: {path}",
            got=f"suite: {suite.suite}, file: {suite.file}",
            remedy=f"correct {path}",
        )
    return suite


def _tuples(content: dict[str, object]) -> dict[str, object]:
    # Strict models take no list for a tuple, and frozen ones should hold no list.
    return {
        key: tuple(value) if isinstance(value, list) else _tuples(value) if isinstance(value, dict) else value
        for key, value in content.items()
    }
