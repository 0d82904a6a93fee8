"""sentfold: sentence vectors, their re-shaping, and the evidence whether it helps.

Public classes and functions can be imported from here. Their modules are loaded when the first of them is asked for
(PEP 562), so that `import sentfold` loads nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sentfold.decision.compress import compress as compress
    from sentfold.decision.decide import Decision as Decision
    from sentfold.decision.decide import decide as decide
    from sentfold.decision.spaces import load_space as load_space
    from sentfold.decision.threshold import find_threshold as find_threshold
    from sentfold.encoders.average import AverageOfWords as AverageOfWords
    from sentfold.encoders.dct import DCT as DCT
    from sentfold.encoders.gem import GEM as GEM
    from sentfold.encoders.lase import LASE as LASE
    from sentfold.encoders.pmeans import PowerMeans as PowerMeans
    from sentfold.encoders.s3e import S3E as S3E
    from sentfold.encoders.sif import SIF as SIF
    from sentfold.encoders.transformer import TransformerEncoder as TransformerEncoder
    from sentfold.encoders.usif import USIF as USIF
    from sentfold.encoders.vlawe import VLAWE as VLAWE
    from sentfold.manifold.estimators.embedding import LocalityPreservingEmbedding as LocalityPreservingEmbedding
    from sentfold.manifold.estimators.linear import (
        AllButTheTop as AllButTheTop,
    )
    from sentfold.manifold.estimators.linear import (
        GraphSmoothing as GraphSmoothing,
    )
    from sentfold.manifold.estimators.linear import (
        LocalityPreservingProjections as LocalityPreservingProjections,
    )
    from sentfold.manifold.estimators.linear import (
        NeighborhoodPreservingEmbedding as NeighborhoodPreservingEmbedding,
    )
    from sentfold.manifold.estimators.linear import (
        PrincipalComponents as PrincipalComponents,
    )
    from sentfold.manifold.estimators.linear import (
        Whitening as Whitening,
    )

# Public name -> the module that defines it.
EXPORTS = {
    "AllButTheTop": "sentfold.manifold.estimators.linear",
    "AverageOfWords": "sentfold.encoders.average",
    "DCT": "sentfold.encoders.dct",
    "Decision": "sentfold.decision.decide",
    "GEM": "sentfold.encoders.gem",
    "GraphSmoothing": "sentfold.manifold.estimators.linear",
    "LASE": "sentfold.encoders.lase",
    "LocalityPreservingEmbedding": "sentfold.manifold.estimators.embedding",
    "LocalityPreservingProjections": "sentfold.manifold.estimators.linear",
    "NeighborhoodPreservingEmbedding": "sentfold.manifold.estimators.linear",
    "PowerMeans": "sentfold.encoders.pmeans",
    "PrincipalComponents": "sentfold.manifold.estimators.linear",
    "S3E": "sentfold.encoders.s3e",
    "SIF": "sentfold.encoders.sif",
    "TransformerEncoder": "sentfold.encoders.transformer",
    "USIF": "sentfold.encoders.usif",
    "VLAWE": "sentfold.encoders.vlawe",
    "Whitening": "sentfold.manifold.estimators.linear",
    "compress": "sentfold.decision.compress",
    "decide": "sentfold.decision.decide",
    "find_threshold": "sentfold.decision.threshold",
    "load_space": "sentfold.decision.spaces",
}


def __getattr__(name: str) -> object:
    if name not in EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sentfold.libraries import prepare_libraries

    prepare_libraries()
    return getattr(import_module(EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *EXPORTS})
