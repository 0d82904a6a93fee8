"""Why a number cannot be vouched for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["cell", "score", "table", "artifact", "parameter", "lock", "code", "definition", "recomputation"]


@dataclass(frozen=True)
class Cause:
    """One thing that is not as it should be, named once however many numbers rest on it.

    kind      what sort of thing it is
    subject   the file, parameter, stage or cell
    message   what was expected of it and what was found
    remedy    what to do
    wrong     False: it is absent here, and nothing is known against it
    """

    kind: Kind
    subject: str
    message: str
    remedy: str
    wrong: bool = True
