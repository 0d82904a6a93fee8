"""Published word vectors: the list of their locations, their folder on this machine, and their download.

No stage downloads word vectors, because the files have gigabytes and their own licences. The user downloads them
with `sentfold fetch-vectors`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from pydantic import Field

from pipeline.base.params import read_yaml
from pipeline.corpora.fetch import PATIENCE, Patience, fetch, matches, record_digest
from sentfold.errors import SourceError
from sentfold.files import sha256_of
from sentfold.settings import Parameters, validate

LOCATIONS_FILE = Path(__file__).with_name("locations.yaml")
FOLDER_VARIABLE = "SENTFOLD_VECTORS"


class Location(Parameters):
    """One published file of word vectors.

    file       its name in the folder of word vectors
    sha256     of the downloaded file; None if not recorded yet: the file is refused until then
    member     glob pattern of the file inside a zip
    binary     whether the format is word2vec's binary format instead of text
    dimension  numbers per word; the last `dimension` fields of a line are numbers, because a word may contain blanks
    """

    title: str
    citation: str
    licence: str
    url: str
    file: str
    sha256: str | None = Field(pattern="^[0-9a-f]{64}$")
    member: str | None = None
    binary: bool = False
    dimension: int = Field(ge=1, le=10_000)


def load_locations(path: Path = LOCATIONS_FILE) -> dict[str, Location]:
    """Every location by name. Raises ParameterError if the file is malformed."""
    return {name: validate(Location, entry, where=f"{path.name}: {name}") for name, entry in read_yaml(path).items()}


def find_location(name: str, path: Path = LOCATIONS_FILE) -> Location:
    """The location called `name`. Raises SourceError, which lists the known names, if there is none."""
    known = load_locations(path)
    if name not in known:
        raise SourceError(
            f"there are no word vectors '{name}'",
            where=path.name,
            expected=f"one of: {', '.join(known)}",
            got=name,
            remedy="correct the name in params.yaml, or add the location to the list",
        )
    return known[name]


def vectors_folder() -> Path:
    """The folder of word vectors: $SENTFOLD_VECTORS, else a folder below the user's cache folder."""
    place = os.environ.get(FOLDER_VARIABLE, "")
    return Path(place) if place else Path.home() / ".cache" / "sentfold" / "vectors"


def describe_locations(path: Path = LOCATIONS_FILE, only: str | None = None) -> str:
    """A paragraph per location, or for the location `only`: URL, licence, and whether the file is on this machine."""
    lines = []
    for name, location in load_locations(path).items():
        if only not in (None, name):
            continue
        target = vectors_folder() / location.file
        lines += [
            f"{name}: {location.title}",
            f"  place     {location.url}",
            f"  file      {target} ({'here' if target.is_file() else 'not here'})",
            f"  sha256    {location.sha256 or 'not recorded yet'}",
            f"  licence   {location.licence}",
            f"  citation  {location.citation}",
            "",
        ]
    return "\n".join(lines)


def fetch_vectors(
    name: str, *, locations: Path = LOCATIONS_FILE, patience: Patience = PATIENCE, record: bool = False
) -> str:
    """Download the word vectors `name` into the folder of word vectors. Returns a line for the user.

    record  if no sha256 is recorded yet, write the sha256 of the file into `locations`; without `record` such a file
            is refused
    Raises SourceError if no sha256 is recorded, the server fails, or the file has another sha256.
    """
    location = find_location(name, locations)
    target = vectors_folder() / location.file
    if location.sha256 is not None:
        if matches(target, location.sha256):
            return f"{target} is there already, with the known sha256"
        fetch(location.url, target, sha256=location.sha256, patience=patience)
        return f"{target}: the known sha256"
    if not record:
        raise SourceError(
            f"no sha256 is recorded for the word vectors '{name}'",
            where=f"{locations.name}: {name}",
            expected="64 hexadecimal digits",
            got="null",
            state="nothing was downloaded",
            remedy=f"run `sentfold fetch-vectors {name} --record-hash`, look at what it recorded, and commit it",
        )
    # If the user has put the file into the folder, its sha256 is recorded without a download.
    path = target if target.is_file() else fetch(location.url, target, sha256=None, patience=patience)
    digest = sha256_of(path)
    pattern = rf"(^{re.escape(name)}:\n(?:[ ].*\n)*?[ ]+sha256:) null$"
    record_digest(locations, pattern, digest)
    return f"{target}: sha256 {digest}, now recorded in {locations.name}; commit it if you trust it"
