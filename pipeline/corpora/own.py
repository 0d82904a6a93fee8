"""A suite's own data: a folder of the checkout with `<split>.csv`, which has the columns of the task."""

from __future__ import annotations

import codecs
import hashlib
from functools import partial
from pathlib import Path

import polars as pl

from pipeline.corpora.catalogue import Dataset
from pipeline.corpora.reading import Reading, check_cells
from sentfold.errors import SourceError, first_line
from sentfold.files import require_regular


def read_split(name: str, dataset: Dataset, split: str) -> Reading:
    """Read one split of the data set called `name`.

    Raises SourceError if the file is missing or is no CSV, or if its rows lack most columns.
    """
    path = Path(dataset.folder or "") / f"{split}.csv"
    try:
        require_regular(path)
        content = path.read_bytes()  # the bytes that are hashed are parsed: the file is not read twice
        # Behind this mark polars takes no text for a packed file, which it would unpack without a limit.
        marked = codecs.BOM_UTF8 + content.removeprefix(codecs.BOM_UTF8)
        read = partial(pl.read_csv, marked, infer_schema=False, empty_string_is_null=False)
        check_cells(read(n_rows=0).width, content.count(b"\n"), len(content), where=str(path))
        frame = read()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SourceError(
            f"a file of the suite's own data set '{name}' cannot be read",
            where=str(path),
            expected="a CSV file in UTF-8 with a header",
            got=first_line(error),
            remedy="put the file back, or make the suite again from your file: `sentfold new-suite`",
        ) from None
    return Reading(frame=frame, source="own", files={str(path): hashlib.sha256(content).hexdigest()})
