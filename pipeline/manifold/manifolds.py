"""The parameters of everything that makes a space from a space: the blocks of `manifolds:` in params.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field

from pipeline.errors import ParameterError
from pipeline.params import PARAMS_FILE, Parameters, load_parameters

Scaling = Literal["unit", "quarter", "half"]


class LleParameters(Parameters):
    """Locally linear embedding, SBERT-LP's.

    neighbors       k
    regularization  added to the Gram diagonal as a fraction of its trace
    components      p
    scaling         of each dimension: unit variance, or times lambda^(-1/4), or times lambda^(-1/2)
    """

    method: Literal["lle"]
    neighbors: int = Field(ge=1, le=10_000)
    regularization: float = Field(gt=0, le=100)
    components: int = Field(ge=1, le=10_000)
    scaling: Scaling = "unit"


class LandmarkParameters(Parameters):
    """LLE of some landmark sentences; every other sentence by its neighbours among them.

    landmarks  how many
    selection  random, or kmeans++ for spread
    seed       of the selection
    The rest as in LleParameters.
    """

    method: Literal["lle-landmark"]
    landmarks: int = Field(ge=3, le=1_000_000)
    selection: Literal["random", "kmeans++"]
    neighbors: int = Field(ge=1, le=10_000)
    regularization: float = Field(gt=0, le=100)
    components: int = Field(ge=1, le=10_000)
    scaling: Scaling = "unit"
    seed: int = Field(ge=0, lt=2**32)


class PcaParameters(Parameters):
    """Principal components. components: p."""

    method: Literal["pca"]
    components: int = Field(ge=1, le=10_000)


class WhiteningParameters(Parameters):
    """Principal components over a power of their deviation. components: p. power: 0 is PCA, 1 whitens in full."""

    method: Literal["whitening"]
    components: int = Field(ge=1, le=10_000)
    power: float = Field(ge=0, le=1)


class AbttParameters(Parameters):
    """All-but-the-top. removed: principal directions taken away; 0 only centres."""

    method: Literal["abtt"]
    removed: int = Field(ge=0, le=10_000)


class NpeParameters(Parameters):
    """Neighbourhood preserving embedding, the linear LLE. The parameters as in LleParameters."""

    method: Literal["npe"]
    neighbors: int = Field(ge=1, le=10_000)
    regularization: float = Field(gt=0, le=100)
    components: int = Field(ge=1, le=10_000)


class LppParameters(Parameters):
    """Locality preserving projections.

    neighbors   k
    heat        of the edges' weights, over the mean squared edge; none: every edge weighs 1
    components  p
    """

    method: Literal["lpp"]
    neighbors: int = Field(ge=1, le=10_000)
    heat: float | None = Field(default=None, gt=0, le=1e6)
    components: int = Field(ge=1, le=10_000)


class SmoothParameters(Parameters):
    """Smoothing over the graph. neighbors: k. amount: share of the neighbours' mean; below 0 sharpens."""

    method: Literal["smooth"]
    neighbors: int = Field(ge=1, le=10_000)
    amount: float = Field(ge=-10, le=1)


METHODS: dict[str, type[Parameters]] = {
    "lle": LleParameters,
    "lle-landmark": LandmarkParameters,
    "pca": PcaParameters,
    "whitening": WhiteningParameters,
    "abtt": AbttParameters,
    "npe": NpeParameters,
    "lpp": LppParameters,
    "smooth": SmoothParameters,
}

Model = TypeVar("Model", bound=Parameters)
Second = TypeVar("Second", bound=Parameters)
Third = TypeVar("Third", bound=Parameters)


class _Method(Parameters):
    """The one key that every block has; the others are checked by the model that it names."""

    model_config = ConfigDict(extra="ignore")

    method: Literal["lle", "lle-landmark", "pca", "whitening", "abtt", "npe", "lpp", "smooth"]


@overload
def load_manifold(
    name: str, first: type[Model], second: type[Second], third: type[Third], /, *, path: Path = ...
) -> Model | Second | Third: ...
@overload
def load_manifold(name: str, *models: type[Model], path: Path = ...) -> Model: ...
def load_manifold(name: str, *models: type[Parameters], path: Path = PARAMS_FILE) -> Parameters:
    """The block manifolds.<name> of params.yaml as the one of `models` that its method names.

    Raises ParameterError if the block is missing or wrong, or if its method is none of these models':
    a space is then listed under a stage that does not make it.
    """
    method = load_parameters(_Method, f"manifolds.{name}", path=path).method
    for model in models:
        if model is METHODS[method]:
            return load_parameters(model, f"manifolds.{name}", path=path)
    served = [known for known, model in METHODS.items() if model in models]
    raise ParameterError(
        f"'{name}' is made by another stage",
        where=f"{path}: manifolds.{name}.method",
        expected=f"one of: {', '.join(served)}",
        got=method,
        remedy=f"list '{name}' where the suite file lists spaces of method '{method}', or change its method",
    )


def nearest_of(neighbors: npt.NDArray[Any], k: int, manifold: str) -> npt.NDArray[Any]:
    """The first k columns of a neighbour graph, (n, >= k). Raises ParameterError if it holds fewer."""
    if k > neighbors.shape[1]:
        raise ParameterError(
            f"manifold '{manifold}' wants more neighbours than the graph holds",
            where=f"{PARAMS_FILE}: manifolds.{manifold}.neighbors",
            expected=f"<= knn_graph.neighbors = {neighbors.shape[1]}",
            got=str(k),
            remedy="raise knn_graph.neighbors, or lower this one",
        )
    return np.ascontiguousarray(neighbors[:, :k])
