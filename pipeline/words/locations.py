"""Published word vectors: the list of their locations, and where they lie on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import Field

from pipeline.errors import SourceError
from pipeline.params import Parameters, read_yaml, validate

LOCATIONS_FILE = Path(__file__).with_name("locations.yaml")
FOLDER_VARIABLE = "SENTFOLD_VECTORS"


class Location(Parameters):
    """One published file of word vectors.

    file       its name in the folder of word vectors
    sha256     of that file as downloaded; None until known, and then refused
    member     the file inside, if it is a zip (a glob pattern)
    binary     word2vec's binary format, not text
    dimension  numbers per word; a text file is cut by it, for words may hold blanks
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
    """The location called `name`. Raises SourceError, listing what there is."""
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
    """Where files of word vectors are looked for: $SENTFOLD_VECTORS, else below the user's cache folder."""
    place = os.environ.get(FOLDER_VARIABLE, "")
    return Path(place) if place else Path.home() / ".cache" / "sentfold" / "vectors"


def describe_locations() -> str:
    """One paragraph per file: what it is, where it lies, its terms, and whether it is here."""
    lines = []
    for name, location in load_locations().items():
        here = (vectors_folder() / location.file).is_file()
        lines += [
            f"{name}: {location.title}",
            f"  place     {location.url}",
            f"  file      {location.file} ({'here' if here else 'not here'})",
            f"  sha256    {location.sha256 or 'not recorded yet'}",
            f"  licence   {location.licence}",
            f"  citation  {location.citation}",
            "",
        ]
    return "\n".join(lines)
