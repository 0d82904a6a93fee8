"""Stage `transform`: spaces made from an encoder's vectors alone: linear controls, and LLE by landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from pipeline.artifacts import Vectors, absence, read_vectors, space_path, write_absence, write_vectors
from pipeline.errors import located
from pipeline.manifold.landmarks import landmark_embedding
from pipeline.manifold.manifolds import (
    AbttParameters,
    LandmarkParameters,
    PcaParameters,
    WhiteningParameters,
    load_manifold,
)
from pipeline.manifold.pool import DISCARDED, no_pool
from pipeline.manifold.principal import principal_axes, principal_map, removal_map, whitening_map
from pipeline.manifold.solver_parameters import SolverParameters
from pipeline.params import load_parameters

LinearParameters = PcaParameters | WhiteningParameters | AbttParameters
MODELS: tuple[type[LinearParameters | LandmarkParameters], ...] = (
    PcaParameters,
    WhiteningParameters,
    AbttParameters,
    LandmarkParameters,
)


def transform(suite: str, encoder: str, name: str, corpora: tuple[str, ...]) -> None:
    """Write the space `<encoder>-<name>` of every corpus, each fitted on that corpus's own sentences."""
    parameters, solver = load_manifold(name, *MODELS), load_parameters(SolverParameters, "eigensolve")
    made_with = parameters.model_dump()
    if isinstance(parameters, LandmarkParameters):
        made_with["eigensolve"] = solver.model_dump()
    for corpus in corpora:
        source, target = space_path(suite, encoder, corpus), space_path(suite, f"{encoder}-{name}", corpus)
        reason = absence(source, kind="vectors") or no_pool(source)
        if reason:
            write_absence(target, reason, kind="vectors", inputs=[source])
            continue
        with threadpool_limits(1), located(f"corpus {corpus}, params.yaml: manifolds.{name}", state=DISCARDED):
            x = read_vectors(source)
            if isinstance(parameters, LandmarkParameters):
                vectors, notes = landmark_embedding(x, parameters, solver)
            else:
                vectors, notes = map_linearly(x, parameters)
        write_vectors(
            target,
            vectors,
            parameters=made_with,
            inputs=[source],
            notes={**notes, "sentences": len(vectors)},
        )


def map_linearly(x: Vectors, parameters: LinearParameters) -> tuple[Vectors, dict[str, Any]]:
    """The images of (n, d) rows under the map that the parameters ask for, and what the fit found.

    Notes: eigenvalues of the map, rank of the centred rows, share of their variance that is kept (before
    a whitening rescales it). Raises ParameterError if p, the power or the removed directions do not fit.
    """
    axes = principal_axes(x)
    match parameters:
        case PcaParameters(components=p):
            chosen, share = principal_map(axes, p), axes.share(p)
        case WhiteningParameters(components=p, power=power):
            chosen, share = whitening_map(axes, p, power=power), axes.share(p)
        case AbttParameters(removed=removed):
            chosen, share = removal_map(axes, removed), 1 - axes.share(removed)
    notes = {"eigenvalues": chosen.eigenvalues.tolist(), "rank": axes.rank, "variance_share": round(share, 6)}
    return chosen.apply(x, dtype=np.float32), notes
