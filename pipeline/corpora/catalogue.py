"""The catalogue of corpora: what each is, who made it, under which terms, and where it can be had."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from pipeline.base.params import read_yaml
from pipeline.base.suite import FIRST, suite_folder
from sentfold.errors import SourceError
from sentfold.settings import Parameters, Slug, validate

CATALOGUE_FILE = (
    Path(__file__).parents[1] / "catalogue.yaml"
)  # not in this package: a block added there makes no stage stale
SHARED = "pipeline/catalogue.yaml"  # the same, seen from the root of the checkout

# What recurs, and is therefore what a bootstrap resamples (see sentfold/compare/bootstrap.py).
Unit = Literal["items", "groups", "texts"]


class PackageFiles(Parameters):
    """Files inside an installed package, and the name of the reader that understands them."""

    package: str
    folder: str
    files: tuple[str, ...]
    reader: str


class HubSplit(Parameters):
    """One split of a dataset on the Hugging Face hub, at a pinned revision.

    files    the parts that make up the split, in order; each part is a list of glob patterns
             inside the repository, tried in order (.parquet, .jsonl, .json, .csv, each also .gz
             but for .parquet); a pattern that matches several files takes them all, by name
    columns  canonical column -> the hub's column
    labels   the hub's label -> canonical integer label, where they differ
    keep     keep only rows whose hub column has one of these values
    subsets  name -> number of rows, in file order, where the hub gives no subset column
    """

    id: str
    revision: str
    files: tuple[tuple[str, ...], ...]
    columns: dict[str, str]
    labels: dict[str, int] = {}
    keep: dict[str, tuple[str | int, ...]] = {}
    subsets: dict[str, int] = {}

    @model_validator(mode="after")
    def _revision_is_pinned(self) -> HubSplit:
        if len(self.revision) != 40 or not set(self.revision) <= set("0123456789abcdef"):
            raise ValueError(f"'{self.revision}' is no full commit: pin 40 hexadecimal digits, never a branch")
        return self


class ArchiveSplit(Parameters):
    """One split inside official files given by URL.

    urls     what to download -> its sha256, or None until it is recorded, and then refused
    members  files inside a zip or tar (glob patterns), empty when the URL is the file itself
    reader   the name of the reader in archive_readers.py that understands them
    """

    urls: dict[str, Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None] = Field(min_length=1)
    members: tuple[str, ...] = ()
    reader: str


class Dataset(Parameters):
    """One released data set: its splits, their published sizes, and every place it can be had.

    task     the measure of its corpora: the name of a file of sentfold/measures; `counts` for words and their counts
    items_of the task whose columns the items have, where that is another one: a new task over known columns
    splits   split -> published number of items
    corpora  corpus slug -> the splits that make it up; a corpus is the pool that every
             transductive step sees, so `stsb` (test) and `stsb-dev` are two corpora
    resample the unit of the bootstrap
    scale    the lowest and the highest score that the release allows; a score outside is refused
    mirror   split -> files in the mirror folder whose rows, one file after the other, make the
             split; where a split is not named, `<data set>/<split>.parquet`
    text     how the texts were processed before release, per source where it differs
    bodies   corpora whose texts lose their headers: all up to the first empty line
    longest  corpus -> the most words that a text of it has, split at blanks; items with a longer text are left out
    supervised      corpus -> the corpus of the same pairs with their training pairs, where a head is trained
    mirror_columns  canonical column -> the mirror's, where they differ
    mirror_labels   the mirror's label -> canonical integer label, where they differ
    folder   of a suite's own data: it holds `<split>.csv` with the canonical columns; seen from the root
    """

    task: Slug
    items_of: Slug | None = None
    title: str
    citation: str
    licence: str
    splits: dict[str, int]
    corpora: dict[Slug, tuple[str, ...]]
    resample: Unit = "items"
    scale: tuple[float, float] | None = None
    text: str = "as released"
    package: PackageFiles | None = None
    bodies: tuple[Slug, ...] = ()
    longest: dict[Slug, Annotated[int, Field(ge=1)]] = {}
    supervised: dict[Slug, Slug] = {}
    mirror: dict[str, tuple[str, ...]] = {}
    mirror_columns: dict[str, str] = {}
    mirror_labels: dict[str, int] = {}
    hub: dict[str, HubSplit] = {}
    archive: dict[str, ArchiveSplit] = {}
    inline: tuple[dict[str, str | float], ...] = ()
    folder: str | None = None

    @property
    def layout(self) -> str:
        """The task whose columns the items have."""
        return self.items_of or self.task

    @property
    def is_local(self) -> bool:
        """Whether its files are in the checkout or in an installed package, whatever the suite's kind of source."""
        return bool(self.inline) or self.package is not None or self.folder is not None

    def mirror_files(self, name: str, split: str) -> tuple[str, ...]:
        """Where a mirror holds one split of the data set called `name`."""
        return self.mirror.get(split, (f"{name}/{split}.parquet",))

    @model_validator(mode="after")
    def _splits_exist(self) -> Dataset:
        for corpus, splits in self.corpora.items():
            unknown = set(splits) - set(self.splits)
            if unknown or not splits:
                raise ValueError(f"corpus '{corpus}' names unknown splits {sorted(unknown)}")
        strange = {*self.bodies, *self.longest, *self.supervised} - set(self.corpora)
        if strange:
            raise ValueError(f"'bodies', 'longest' or 'supervised' names unknown corpora {sorted(strange)}")
        for place in ("mirror", "hub", "archive"):
            unknown = set(getattr(self, place)) - set(self.splits)
            if unknown:
                raise ValueError(f"'{place}' names unknown splits {sorted(unknown)}")
        return self

    @model_validator(mode="after")
    def _subsets_add_up(self) -> Dataset:
        for split, place in self.hub.items():
            total = sum(place.subsets.values())
            if place.subsets and total != self.splits[split]:
                raise ValueError(f"the subsets of '{split}' have {total} rows together, not {self.splits[split]}")
        return self


class Corpus(Parameters):
    """One corpus: a data set, the splits taken from it, and the catalogue that describes it, seen from the root."""

    slug: Slug
    dataset_name: Slug
    dataset: Dataset
    splits: tuple[str, ...]
    catalogue: str = SHARED


@cache
def load_catalogue(path: Path = CATALOGUE_FILE) -> dict[str, Dataset]:
    """Every data set by name. Raises ParameterError if the catalogue itself is malformed."""
    content = read_yaml(path)
    datasets = {
        name: validate(Dataset, _freeze(entry), where=f"{path.name}: {name}") for name, entry in content.items()
    }
    slugs = [slug for dataset in datasets.values() for slug in dataset.corpora]
    twice = {slug for slug in slugs if slugs.count(slug) > 1}
    if twice:
        raise SourceError("two data sets claim one corpus", where=str(path), got=", ".join(sorted(twice)))
    return datasets


def own_catalogue(suite: str) -> Path:
    """Where a suite describes corpora of its own. Few suites have this file."""
    return suite_folder(suite) / "catalogue.yaml"


def find_corpus(slug: str, suite: str = FIRST) -> Corpus:
    """The corpus called `slug`, from a suite's own catalogue or the shared one. Raises SourceError, listing both."""
    own = own_catalogue(suite)
    catalogues = {SHARED: load_catalogue()} | ({str(own): load_catalogue(own.resolve())} if own.exists() else {})
    known: list[str] = []
    for file, datasets in reversed(catalogues.items()):
        for name, dataset in datasets.items():
            if slug in dataset.corpora:
                return Corpus(
                    slug=slug, dataset_name=name, dataset=dataset, splits=dataset.corpora[slug], catalogue=file
                )
            known.extend(dataset.corpora)
    raise SourceError(
        f"there is no corpus '{slug}' in the catalogue",
        where=str(CATALOGUE_FILE.name),
        expected=f"one of: {', '.join(sorted(known))}",
        got=slug,
        remedy="correct the suite's list of corpora, or add the corpus to the catalogue",
    )


def _freeze(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _freeze(item) for key, item in value.items()}
    return tuple(_freeze(item) for item in value) if isinstance(value, list) else value


def describe_catalogue() -> str:
    """One paragraph per data set: what it is, its corpora, its places, its terms."""
    lines = []
    for name, dataset in load_catalogue().items():
        places = [kind for kind in ("package", "mirror", "hub", "archive") if _has(dataset, kind)]
        lines += [
            f"{name}: {dataset.title} ({dataset.task})",
            f"  corpora   {', '.join(slug for slug in dataset.corpora)}",
            f"  items     {', '.join(f'{split} {count}' for split, count in dataset.splits.items())}",
            f"  places    {', '.join(places)}",
            f"  licence   {dataset.licence}",
            f"  citation  {dataset.citation}",
            "",
        ]
    return "\n".join(lines)


def _has(dataset: Dataset, kind: str) -> bool:
    if kind == "mirror":
        return not dataset.is_local
    return bool(getattr(dataset, kind)) or (kind == "package" and bool(dataset.inline))
