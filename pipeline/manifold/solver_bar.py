"""A line on stderr that tells how far the eigensolver is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

from pipeline.manifold.search import Progress


@contextmanager
def solver_bar(*, of: str = "", disable: bool | None = None) -> Iterator[Progress | None]:
    """What bottom_eigenvectors is given as `progress`.

    of       what is solved, such as a corpus
    disable  as tqdm has it; None: shown on a terminal only
    """
    with tqdm(desc=" ".join(["eigenvectors", of]).strip(), unit=" dimensions", disable=disable) as bar:

        def show(size: int, promise: float) -> None:
            bar.n = size
            bar.set_postfix_str(f"residual {promise:.1e} of the last eigenvalue")

        yield None if bar.disable else show
