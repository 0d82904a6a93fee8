"""A suite as the stages read it: the `plan.yaml` that `sentfold plan` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pipeline.base.params import read_yaml
from sentfold.errors import ParameterError, SuiteError
from sentfold.settings import Parameters, Slug, validate

SourceKind = Literal["package", "mirror", "hub"]
CountsKind = Literal["own", "enwiki"]

FIRST = "quick"  # the suite whose files are in the root of the checkout


class Suite(Parameters):
    """The content of a plan.yaml: what the user wrote in suite.yaml, and the stages that follow from it.

    root          the checkout's root, seen from the folder of the plan
    file          the plan, seen from the root; `written` is the suite.yaml that it follows from
    parent        the suite.yaml that this one extends, or `written` if it extends none
    counted       the block of the catalogue that published word counts come from
    source        where corpora come from: installed packages, a mirror folder, or the network
    skip_missing  record what the source lacks as a blank with its reason, and continue
    counts        whose word counts give unigram probabilities: the suite's own sentences', or a count of
                  English Wikipedia from the source
    development   the similarity corpus that hyper-parameters are chosen on
    baseline      the space that other spaces are compared with; None: each space's own encoder
    wordless      corpora whose words stay out of the vocabulary: long texts, whose rare words would multiply it
    blanks        rows that cannot be filled from this source, with the reason
    sensitivities word encoders whose hyper-parameters are varied one at a time for a figure
    paths         folders that a stage depends on where the suite has them, and a folder that always exists if not
    stages        stage of dvc.yaml -> its instances -> what each instance is made of
    """

    suite: Slug
    root: str
    file: str
    written: str
    parent: str
    counted: str
    source: SourceKind
    skip_missing: bool
    counts: CountsKind
    development: Slug | None
    baseline: Slug | None
    corpora: tuple[Slug, ...]
    wordless: tuple[Slug, ...]
    spaces: tuple[Slug, ...]
    blanks: dict[Slug, str]
    sensitivities: tuple[Slug, ...]
    paths: dict[str, str]
    stages: dict[str, dict[str, dict[str, Any]]]

    @property
    def worded_corpora(self) -> tuple[str, ...]:
        """The corpora whose words are the suite's vocabulary."""
        return tuple(corpus for corpus in self.corpora if corpus not in self.wordless)

    @property
    def encoders(self) -> tuple[str, ...]:
        """The transformer encoders that the suite's spaces are made with."""
        return tuple(dict.fromkeys(item["encoder"] for item in self.stages["embed"].values()))

    @property
    def word_encoders(self) -> tuple[str, ...]:
        """The encoders over word vectors that the suite's spaces are made with."""
        return tuple(self.stages["encode"])

    @property
    def tokenizers(self) -> tuple[str, ...]:
        """The tokenizers of the word encoders and clusterings."""
        return tuple(self.stages["vocabulary"])

    @property
    def word_vectors(self) -> tuple[str, ...]:
        """The blocks of `word_vectors:` that word encoders and clusterings use."""
        return tuple(self.stages["word_vectors"])

    @property
    def clusterings(self) -> tuple[str, ...]:
        """The blocks of `clusterings:` that word encoders use."""
        return tuple(self.stages["cluster_words"])

    @property
    def derived_spaces(self) -> tuple[str, ...]:
        """The spaces that were made from another space."""
        return tuple(space for space in self.spaces if self.encoder_of(space) != space)

    def check_space(self, space: str) -> None:
        """Raise SuiteError unless `space` is a space of this suite."""
        if space not in self.spaces:
            raise SuiteError(
                f"suite '{self.suite}' has no space '{space}'",
                where=self.written,
                expected=f"one of: {', '.join(self.spaces)}",
                got=space,
                remedy=f"correct the name, or add the space to {self.written} and run `sentfold plan`",
            )

    def encoder_of(self, space: str) -> str:
        """The space that `space` was made from: itself for an encoder's own space. Raises SuiteError."""
        return str(self._made(space)["source"])

    def maker_of(self, space: str) -> str | None:
        """The block of `manifolds:` that made `space`, or None for an encoder's own space. Raises SuiteError."""
        maker = self._made(space)["maker"]
        return None if maker == "" else str(maker)

    def made_from(self, space: str) -> tuple[str, str]:
        """The space that `space` was made from, and the block of `manifolds:` that made it.

        Raises SuiteError for a space that is unknown or an encoder's own.
        """
        maker = self.maker_of(space)
        if maker is None:
            raise SuiteError(
                f"'{space}' is an encoder's own space, which no block of manifolds: makes",
                where=self.written,
                expected=f"one of: {', '.join(self.derived_spaces)}",
                got=space,
                remedy="name a space that is made from another",
            )
        return self.encoder_of(space), maker

    def _made(self, space: str) -> dict[str, Any]:
        self.check_space(space)
        return self.stages["evaluate"][space]


def suite_folder(name: str) -> Path:
    """The folder of a suite's files, from the root of the checkout."""
    return Path() if name == FIRST else Path("suites") / name


def suite_file(name: str) -> Path:
    """The file that the user writes: suite.yaml for quick, suites/<name>/suite.yaml for others."""
    return suite_folder(name) / "suite.yaml"


def plan_file(name: str) -> Path:
    """The file that `sentfold plan` writes next to the suite file."""
    return suite_folder(name) / "plan.yaml"


def known_suites() -> list[str]:
    """The names of all suites of the checkout."""
    return [FIRST, *sorted(file.parent.name for file in Path("suites").glob("*/suite.yaml"))]


def require_suite(name: str) -> Path:
    """The suite file of a suite that exists. Raises SuiteError, naming all suites."""
    path = suite_file(name)
    if not path.exists():
        raise SuiteError(
            f"there is no suite '{name}'",
            where=str(path),
            expected=f"one of: {', '.join(known_suites())}",
            got=name,
            remedy="run from the root of the checkout, or create the suite file",
        )
    return path


def load_suite(name: str) -> Suite:
    """Read a suite's plan by name, from the root of the checkout. Raises SuiteError."""
    path = plan_file(name)
    if not path.exists():
        require_suite(name)
        raise SuiteError(
            f"suite '{name}' has no plan",
            where=str(path),
            remedy=f"run `sentfold plan --suite {name}`, which writes it",
        )
    try:
        suite = validate(Suite, freeze(read_yaml(path)), where=str(path))
    except ParameterError as error:
        raise SuiteError(
            error.what,
            where=error.where,
            expected=error.expected,
            got=error.got,
            remedy=f"run `sentfold plan --suite {name}`, which writes {path} again",
        ) from None
    if suite.suite != name:
        raise SuiteError(
            "the plan is of another suite",
            where=str(path),
            expected=f"suite: {name}",
            got=f"suite: {suite.suite}",
            remedy=f"run `sentfold plan --suite {name}`, which writes {path} again",
        )
    return suite


def freeze(content: Any) -> Any:
    """The content with tuples in place of lists, because strict models refuse a list where they expect a tuple."""
    if isinstance(content, list):
        return tuple(content)
    return {key: freeze(value) for key, value in content.items()} if isinstance(content, dict) else content
