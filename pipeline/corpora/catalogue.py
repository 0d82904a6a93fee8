"""The catalogue of corpora: content, authors, licence and sources of each data set."""

from __future__ import annotations

from functools import cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from pipeline.base.params import read_yaml
from pipeline.base.suite import FIRST, suite_folder
from sentfold.errors import SourceError
from sentfold.settings import Parameters, Slug, validate

CATALOGUE_FILE = (
    Path(__file__).parents[1] / "catalogue.yaml"
)  # outside this package, so that a new block in the catalogue makes no stage stale
SHARED = "pipeline/catalogue.yaml"  # the same file, relative to the root of the checkout

# The unit that the bootstrap resamples: what several items share (see sentfold/compare/bootstrap.py).
Unit = Literal["items", "groups", "texts"]


def _stays_inside(path: str) -> str:
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or "\0" in path:
        raise ValueError(f"{path!r} leads out of its folder")
    return path


InnerPath = Annotated[str, AfterValidator(_stays_inside)]


class PackageFiles(Parameters):
    """Files inside an installed package, and the name of the function in package.py that reads them.

    package  a name without dots: to look for `a.b`, Python would run the code of `a`
    folder   inside of the package, as are the files
    """

    package: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
    folder: InnerPath
    files: tuple[InnerPath, ...]
    reader: str


class TextTables(Parameters):
    """Where the texts are that judgements name by id, in BEIR's form: columns `_id`, `text` and, of documents, `title`.

    documents, queries  glob patterns as in `files` of a HubSplit
    """

    documents: tuple[str, ...]
    queries: tuple[str, ...]


class HubSplit(Parameters):
    """One split of a dataset on the Hugging Face hub, at a pinned revision.

    files    the parts of the split, in order; each part is a list of glob patterns for files of the
             repository (.parquet, .jsonl, .json, .csv, and .gz of the last three). The first pattern
             with a match is used, with all its matches in the order of their names
    columns  canonical column -> column on the hub
    labels   label on the hub -> canonical integer label; empty if the labels are equal
    keep     column on the hub -> values; rows with other values are dropped
    subsets  name of a subset -> its number of rows, in file order; only if the hub has no subset column
    texts    for judgements of documents by queries: the tables of their texts
    """

    id: str
    revision: str
    files: tuple[tuple[str, ...], ...]
    columns: dict[str, str]
    labels: dict[str, int] = {}
    keep: dict[str, tuple[str | int, ...]] = {}
    subsets: dict[str, int] = {}
    texts: TextTables | None = None

    @model_validator(mode="after")
    def _revision_is_pinned(self) -> HubSplit:
        if len(self.revision) != 40 or not set(self.revision) <= set("0123456789abcdef"):
            raise ValueError(f"'{self.revision}' is no full commit id: pin 40 hexadecimal digits, not a branch")
        return self


class ArchiveSplit(Parameters):
    """One split inside official files at given URLs.

    urls     URL -> sha256 of the file, or None if not recorded yet: the file is refused until then
    members  glob patterns of files inside a zip or tar; empty if the URL is the file itself
    reader   the name of a reader in archive_readers.py
    """

    urls: dict[str, Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None] = Field(min_length=1)
    members: tuple[str, ...] = ()
    reader: str


class Dataset(Parameters):
    """One released data set: its splits, their published sizes, and every source.

    task     the measure of its corpora: the name of a file of sentfold/measures; `counts` for words and their counts
    items_of for a new task that has the columns of a known task: the name of the known task
    splits   split -> published number of items
    corpora  corpus slug -> the splits of the corpus; a transductive method sees all sentences of a
             corpus, so `stsb` (test) and `stsb-dev` are two corpora
    resample the unit of the bootstrap
    scale    the lowest and the highest score that the release allows; a score outside is refused
    mirror   split -> files in the mirror folder, concatenated in this order; a split that is not named
             is in `<data set>/<split>.parquet`
    text     how the texts were processed before release, per source if the sources differ
    bodies   corpora whose texts are stored without headers: everything up to the first empty line is dropped
    longest  corpus -> maximum number of words, split at blanks; items with a longer text are left out
    supervised      corpus -> the corpus that has the same pairs and training pairs, for a trained head
    mirror_columns  canonical column -> column in the mirror, for columns with another name
    mirror_labels   label in the mirror -> canonical integer label; empty if the labels are equal
    folder   for a suite's own data: the folder, relative to the root of the checkout, with `<split>.csv` files that
             have the canonical columns
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
        """Whether the data are in the checkout or in an installed package, so that the suite's source is not used."""
        return bool(self.inline) or self.package is not None or self.folder is not None

    def mirror_files(self, name: str, split: str) -> tuple[str, ...]:
        """The files of one split of the data set `name`, relative to the mirror folder."""
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
    """One corpus: a data set, the splits taken from it, and the path of its catalogue, relative to the checkout."""

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
        raise SourceError("two data sets have a corpus of the same name", where=str(path), got=", ".join(sorted(twice)))
    return datasets


def own_catalogue(suite: str) -> Path:
    """The path of the catalogue of a suite's own corpora. Few suites have this file."""
    return suite_folder(suite) / "catalogue.yaml"


def find_corpus(slug: str, suite: str = FIRST) -> Corpus:
    """The corpus `slug` from the suite's own or the shared catalogue. Raises SourceError if neither has the corpus."""
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
    """One paragraph per data set: title, corpora, sources, licence, citation."""
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
