"""Manifolds: neighbourhood graphs, reconstruction weights, eigenvectors, and linear controls.

The estimators can be imported from here. Their modules are loaded when the first of them is asked for
(PEP 562), so that no stage loads, or depends on, an estimator that it does not use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.manifold.embedding import LocalityPreservingEmbedding
    from pipeline.manifold.linear_maps import (
        AllButTheTop,
        LocalityPreservingProjections,
        NeighborhoodPreservingEmbedding,
        PrincipalComponents,
        Whitening,
    )
    from pipeline.manifold.smoothing import GraphSmoothing

__all__ = [
    "AllButTheTop",
    "GraphSmoothing",
    "LocalityPreservingEmbedding",
    "LocalityPreservingProjections",
    "NeighborhoodPreservingEmbedding",
    "PrincipalComponents",
    "Whitening",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pipeline.manifold import embedding, linear_maps, smoothing

    homes = [module for module in (embedding, linear_maps, smoothing) if name in vars(module)]
    return vars(homes[0])[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
