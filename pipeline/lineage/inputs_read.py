"""Which files a stage read for one of its outputs, as the output itself or dvc.lock remembers it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from pipeline.errors import ArtifactError
from pipeline.lineage.digests import Digest
from pipeline.lineage.scope import Scope
from pipeline.lineage.stages import Entry, Locked, related


class Inputs:
    """The inputs of a suite's stages, as far as one corpus is concerned."""

    def __init__(self, scope: Scope, corpus: str) -> None:
        self.scope = scope
        self.graph = scope.graph
        self.corpus = corpus
        self.lineage = _json(scope.tree.read(f"reports/{scope.suite}/lineage.json"))

    def of(self, locked: Locked, wanted: str) -> Iterator[tuple[str, str]]:
        """The files that a stage read for one of its outputs, each with the hash that the output remembers of it.

        An artifact names the inputs that it was made of itself, and lineage.json repeats it for the spaces: they say
        which files of a recorded input were read. Of one that they say nothing about, it is the files that carry the
        corpus's name.
        """
        known = self._remembered(locked, wanted)
        yield from ((path, f"sha256 {sha256}") for path, sha256 in sorted(known.items()))
        for path, entry in locked.deps.items():
            if self.graph.makers_of(path) and not any(related(path, file) for file in known):
                yield from self._named(path, entry, self.corpus)

    def _remembered(self, locked: Locked, wanted: str) -> dict[str, str]:
        places = [wanted]
        if wanted.startswith("reports/"):
            # Scores remember nothing; the replicates of the same run do.
            folders = [out for out in locked.outs if out.startswith("data/")]
            places = [f"{folder}/{self.corpus}.parquet" for folder in folders]
        for place in places:
            inputs = record_of(self.scope.root / place).get("inputs")
            parts = PurePosixPath(place).parts
            if not inputs and len(parts) == 5 and parts[2] == "spaces":
                inputs = self.lineage.get("spaces", {}).get(f"{parts[3]}/{Path(parts[4]).stem}", {}).get("inputs")
            if inputs:
                return dict(inputs)
        return {}

    def _named(self, path: str, entry: Entry, corpus: str) -> list[tuple[str, str]]:
        """What a recorded folder holds of one corpus; the folder whole where that cannot be told."""
        listing = self.listing(path, entry.md5)
        inside = [] if listing is None else [f"{path}/{file}" for file in listing.files]
        if listing is None:
            inside = [out for out in self.graph.producers if out.startswith(f"{path}/")]
        names = [file for file in inside if corpus in {PurePosixPath(part).stem for part in PurePosixPath(file).parts}]
        return [(file, "") for file in sorted(names)] or [(path, f"md5 {entry.md5}")]

    def listing(self, path: str, md5: str) -> Digest | None:
        """The files of a recorded folder, if it lies here unaltered or DVC's cache still lists it."""
        here = self.scope.digest(path)
        return here if here is not None and here.md5 == md5 else self.scope.storage.listing(md5)


def record_of(path: Path) -> dict[str, Any]:
    """What a Parquet artifact says of itself; {} if it is none, or is not here."""
    if path.suffix != ".parquet" or not path.is_file():
        return {}
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return _json((pq.read_metadata(path).metadata or {}).get(b"sentfold"))
    except (pa.ArrowException, OSError, ArtifactError):
        return {}


def _json(content: bytes | None) -> dict[str, Any]:
    try:
        parsed = json.loads(content or b"{}")
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
