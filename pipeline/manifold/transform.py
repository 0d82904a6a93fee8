"""Stage `transform`: linear maps of an encoder's space, the controls of the manifolds."""

from __future__ import annotations

import numpy as np
from pydantic import Field
from threadpoolctl import threadpool_limits

from pipeline.artifacts import absence, read_vectors, space_path, write_absence, write_vectors
from pipeline.errors import located
from pipeline.manifold.controls import principal_components
from pipeline.manifold.pool import DISCARDED, no_pool
from pipeline.params import Parameters, load_parameters


class TransformParameters(Parameters):
    """components: dimension of the space, the same as the manifold's that it controls."""

    components: int = Field(ge=1, le=10_000)


def transform(suite: str, encoder: str, name: str, corpora: tuple[str, ...]) -> None:
    """Write the space `<encoder>-<name>` of every corpus: its principal components."""
    components = load_parameters(TransformParameters, f"transforms.{name}").components
    for corpus in corpora:
        source, target = space_path(suite, encoder, corpus), space_path(suite, f"{encoder}-{name}", corpus)
        reason = absence(source, kind="vectors") or no_pool(source)
        if reason:
            write_absence(target, reason, kind="vectors", inputs=[source])
            continue
        with threadpool_limits(1), located(f"corpus {corpus}, params.yaml: transforms.{name}", state=DISCARDED):
            scores, share = principal_components(read_vectors(source), components)
        write_vectors(
            target,
            scores.astype(np.float32),
            parameters={"components": components},
            inputs=[source],
            notes={"sentences": len(scores), "variance_share": round(share, 6)},
        )
