"""The parameters of a clustering of words: one block of `clusterings:` in params.yaml."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from pipeline.params import Parameters, Slug
from pipeline.words.counts import UniformWeights, WeightRule
from pipeline.words.tokenizers import TokenizerName

# What a cluster's point is:
#   model          what the clusterer itself says: means of k-means, means of a mixture
#   weighted-mean  sum w v / sum w over its words (S3E as released; what weighted k-means minimises to)
#   scaled-mean    sum w v / number of words (S3E's poster; LASE as released, for spectral clusters)
#   mean           sum v / number of words (the LASE thesis)
CentroidRule = Literal["model", "weighted-mean", "scaled-mean", "mean"]
Control = Literal["random", "frequency"]


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


Sizes = Annotated[tuple[Annotated[int, Field(ge=1, le=10_000)], ...], BeforeValidator(_tuple), Field(min_length=1)]
Seeds = Annotated[tuple[Annotated[int, Field(ge=0, lt=2**32)], ...], BeforeValidator(_tuple), Field(min_length=1)]
Controls = Annotated[tuple[Control, ...], BeforeValidator(_tuple)]


class KMeansParameters(Parameters):
    """restarts: of which the one of least cost is kept. iterations: at most, per restart.

    tolerance: a run ends when the centroids move less than this, as a share of the variance.
    """

    restarts: int = Field(ge=1, le=1000)
    iterations: int = Field(ge=1, le=100_000)
    tolerance: float = Field(ge=0, le=1)


class MixtureParameters(Parameters):
    """covariance: shape of each component. regularization: added to every variance.

    iterations, tolerance: of expectation maximisation, the gain in mean log-likelihood at which it ends.
    """

    covariance: Literal["full", "tied", "diag", "spherical"]
    regularization: float = Field(ge=0, le=1e6)
    iterations: int = Field(ge=1, le=100_000)
    tolerance: float = Field(gt=0, le=1)


class SpectralParameters(Parameters):
    """neighbors: of each word in the affinity graph, itself aside. distance: of the graph. restarts: of k-means.

    rows: what k-means is run on, the rows of the eigenvectors each divided by the square root of the word's
    degree (scikit-learn), or each of length 1 (Ng, Jordan & Weiss 2002, which the LASE thesis cites).
    """

    neighbors: int = Field(ge=1, le=10_000)
    distance: Literal["euclidean", "cosine"]
    rows: Literal["degree", "unit"]
    restarts: int = Field(ge=1, le=1000)


class BlurredParameters(Parameters):
    """The affinity of the released LASE code.

    sigma      of the Gaussian blur, in places of the vocabulary; 0 = no blur
    threshold  share of a row's maximum below which an entry is shrunk
    shrink     factor of the entries below it
    spare      clusters beyond those asked for that the eigengap may choose
    stop       eigenvalue below which the eigengap is not looked for
    restarts   of k-means
    """

    sigma: float = Field(ge=0, le=100)
    threshold: float = Field(ge=0, le=1)
    shrink: float = Field(ge=0, le=1)
    spare: int = Field(ge=0, le=1000)
    stop: float = Field(ge=0, le=1)
    restarts: int = Field(ge=1, le=1000)


class ClusteringParameters(Parameters):
    """What is clustered, how, and what stands beside it. Exactly one of kmeans, mixture, spectral, blurred.

    vectors, tokenizer  which words, by which vectors
    weights             what a word counts: in k-means, and in centroids
    sizes, seeds        a partition for each number of clusters and each seed
    centroids           see CentroidRule
    controls            partitions into parts of the same sizes: at random, and by frequency rank
    Words of the vocabulary that have no vector are in no cluster; LASE's rule for them is the encoder's.
    """

    vectors: Slug
    tokenizer: TokenizerName
    sizes: Sizes
    seeds: Seeds
    weights: WeightRule = UniformWeights(rule="uniform")
    centroids: CentroidRule = "model"
    controls: Controls = ()
    kmeans: KMeansParameters | None = None
    mixture: MixtureParameters | None = None
    spectral: SpectralParameters | None = None
    blurred: BlurredParameters | None = None

    @model_validator(mode="after")
    def _one_method(self) -> ClusteringParameters:
        methods = (self.kmeans, self.mixture, self.spectral, self.blurred)
        if sum(method is not None for method in methods) != 1:
            raise ValueError("give exactly one of: kmeans, mixture, spectral, blurred")
        if self.centroids == "model" and (self.spectral is not None or self.blurred is not None):
            raise ValueError(
                "spectral clusters have no centroids of their own: give weighted-mean, scaled-mean or mean"
            )
        for name, values in (("sizes", self.sizes), ("seeds", self.seeds), ("controls", self.controls)):
            if len(set(values)) != len(values):
                raise ValueError(f"'{name}' names one twice")
        return self

    @property
    def method(self) -> str:
        """Which of the four it is."""
        return next(name for name in ("kmeans", "mixture", "spectral", "blurred") if getattr(self, name) is not None)
