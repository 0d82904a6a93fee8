"""Stage `postprocess`: a change of a space that is fitted on its own sentences, or on those of another corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ConfigDict
from threadpoolctl import threadpool_limits

from pipeline.base.artifacts import DISCARDED, absence, no_pool, read_vectors, space_path, write_absence, write_vectors
from pipeline.base.params import PARAMS_FILE, load_parameters
from sentfold.errors import ParameterError, located
from sentfold.files import Vectors
from sentfold.manifold import whitening
from sentfold.manifold.base.linear import principal_axes
from sentfold.settings import Parameters, Slug, validate
from sentfold.training.settings import FlowSettings


@dataclass(frozen=True)
class FittedChange:
    """A change that was fitted: vectors -> vectors, and facts about the fit, JSON-able."""

    transform: Callable[[Vectors], Vectors]
    notes: Mapping[str, Any]


def _fit_flow(x: Vectors, settings: Any) -> FittedChange:
    from sentfold.training.flow import fit_flow

    fitted = fit_flow(x, settings)
    # The means of the first and the last tenth of the batches: single batches vary.
    tenth = max(len(fitted.bits) // 10, 1)
    first, last = np.mean(fitted.bits[:tenth]), np.mean(fitted.bits[-tenth:])
    return FittedChange(
        fitted.transform, {"bits_per_dimension": {"first": round(float(first), 4), "last": round(float(last), 4)}}
    )


def _fit_whitening(x: Vectors, settings: Any) -> FittedChange:
    learned = whitening.whitening_map(principal_axes(x), settings.components, power=settings.power)
    return FittedChange(
        lambda rows: learned.apply(rows, dtype=np.float32), {"eigenvalues": learned.eigenvalues.tolist()}
    )


METHODS: dict[str, tuple[type[Parameters], Callable[[Vectors, Any], FittedChange]]] = {
    "flow": (FlowSettings, _fit_flow),
    "whitening": (whitening.Settings, _fit_whitening),
}


class PostprocessBlock(Parameters):
    """A block of `postprocessing:`; the settings of the method check all other keys.

    method     flow or whitening
    fitted_on  a corpus of the suite, on whose sentences each change is fitted; None: each corpus's own sentences
    """

    model_config = ConfigDict(extra="allow")

    method: str
    fitted_on: Slug | None = None

    def check(self, where: str) -> Parameters:
        """The settings of the method. Raises ParameterError, which names `where`."""
        if self.method not in METHODS:
            raise ParameterError(
                f"there is no fitted change '{self.method}'",
                where=f"{where}.method",
                expected=f"one of: {', '.join(METHODS)}",
                got=self.method,
            )
        return validate(METHODS[self.method][0], self.model_extra or {}, where=where)


def load_postprocess(name: str) -> tuple[PostprocessBlock, Parameters]:
    """The block postprocessing.<name> of params.yaml, and the settings of its method. Raises ParameterError."""
    block = load_parameters(PostprocessBlock, f"postprocessing.{name}")
    return block, block.check(f"{PARAMS_FILE}: postprocessing.{name}")


def postprocess(suite: str, source: str, name: str, corpora: tuple[str, ...]) -> None:
    """Write the space `<source>-<name>` of every corpus."""
    block, settings = load_postprocess(name)
    record = {"method": block.method, "fitted_on": block.fitted_on, **settings.model_dump()}
    changes: dict[Path, FittedChange] = {}
    for corpus in corpora:
        own, target = space_path(suite, source, corpus), space_path(suite, f"{source}-{name}", corpus)
        pool = space_path(suite, source, block.fitted_on or corpus)
        inputs = list(dict.fromkeys([own, pool]))
        reason = absence(own, kind="vectors") or absence(pool, kind="vectors") or no_pool(pool)
        if reason is not None:
            write_absence(target, reason, kind="vectors", inputs=inputs)
            continue
        with threadpool_limits(1), located(f"corpus {corpus}, {PARAMS_FILE}: postprocessing.{name}", state=DISCARDED):
            if pool not in changes:
                changes[pool] = METHODS[block.method][1](read_vectors(pool), settings)
            vectors = changes[pool].transform(read_vectors(own))
        notes = {**changes[pool].notes, "sentences": len(vectors)}
        write_vectors(target, vectors, parameters=record, inputs=inputs, notes=notes)
