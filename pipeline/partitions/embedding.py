"""The task of embedding one partition of texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pipeline.partitions.made_by import made_by
from pipeline.partitions.parts import write_part
from pipeline.partitions.plan import Partition, require_unchanged
from pipeline.partitions.reading import texts_of
from pipeline.partitions.text_encoders import TextEncoder


@dataclass(frozen=True)
class EmbedTask:
    """Texts of one partition -> their vectors, row for row. sha256: of the whole file they lie in."""

    step: ClassVar[str] = "vectors"

    target: str
    partition: Partition
    sha256: str
    encoder: TextEncoder

    @property
    def number(self) -> int:
        """That of the partition."""
        return self.partition.number

    def record(self) -> dict[str, Any]:
        """As Task."""
        rows = self.partition.rows
        return {
            "inputs": [
                {"file": self.partition.file.name, "sha256": self.sha256, "start": rows.start, "stop": rows.stop}
            ],
            "made_by": made_by("embed"),
            "parameters": {"encoder": self.encoder.record()},
        }

    def write(self, path: Path) -> tuple[int, dict[str, Any]]:
        """Encode and write; memory O(partition). Raises as texts_of and the encoder do."""
        texts = texts_of(self.partition.rows)
        require_unchanged(self.partition.file)
        vectors, counted = self.encoder.encode(texts)
        write_part(path, iter([vectors]), width=vectors.shape[1], record=self.record())
        return len(vectors), {**counted, "dimension": vectors.shape[1]}
