"""Spaces that new vectors can be mapped into: linear maps, smoothing by neighbours, and landmarks; saved and loaded."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file, save

from sentfold.data.tables import refuse_holes
from sentfold.data.vectors import as_array
from sentfold.errors import ArtifactError, ParameterError, first_line
from sentfold.files import require_regular, write_bytes_atomically, write_json
from sentfold.manifold.base.linear import LinearMap
from sentfold.manifold.base.local import map_out_of_sample
from sentfold.manifold.estimators.linear import nearest_fitted
from sentfold.manifold.smooth import smooth

Floats = npt.NDArray[np.float32]
Floating = npt.NDArray[np.floating[Any]]
Arrays = dict[str, npt.NDArray[Any]]

MOST_NEIGHBORS = 1_000  # of a space that is read; `decide` has 30, and the cost of their weights is the cube
SETTINGS, ARRAYS = "space.json", "space.safetensors"


class Space(Protocol):
    """A map of vectors that was fitted."""

    def transform(self, vectors: Floating) -> Floats:
        """(m, p) float32 images of (m, d) vectors; each image depends on its own vector alone."""

    def cut(self, dimensions: int) -> Space:
        """The space of the first dimensions alone."""

    def settings(self) -> dict[str, Any]:
        """What it is, JSON-able."""

    def arrays(self) -> Arrays:
        """What it learned."""


@dataclass(frozen=True)
class Unchanged:
    """The encoder's own space."""

    def transform(self, vectors: Floating) -> Floats:
        """The vectors."""
        return np.asarray(vectors, dtype=np.float32)

    def cut(self, dimensions: int) -> Space:
        """Raises NotImplementedError: nothing orders the encoder's dimensions."""
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        """Its kind."""
        return {"kind": "unchanged"}

    def arrays(self) -> Arrays:
        """None."""
        return {}


def _matrix(vectors: Any, width: int) -> Floating:
    """An (m, width) array. Raises ParameterError for a single vector, and for vectors of another width."""
    array = as_array(vectors)
    if array.ndim != 2 or array.shape[1] != width:
        raise ParameterError(
            "vectors do not fit the space", where="vectors", expected=f"shape (m, {width})",
            got=f"shape {array.shape}", remedy="give one vector as vectors[None]",
        )  # fmt: skip
    return array


@dataclass(frozen=True)
class LinearSpace:
    """Images under x -> (x - mean) matrix."""

    map: LinearMap

    def transform(self, vectors: Floating) -> Floats:
        """(m, p) images. Cost O(m d p). Raises ParameterError for a single vector, and for vectors of another width."""
        images: Floats = self.map.apply(_matrix(vectors, len(self.map.mean)), dtype=np.float32)
        return images

    def cut(self, dimensions: int) -> LinearSpace:
        """The first columns of the matrix."""
        kept = self.map.matrix[:, :dimensions]
        return LinearSpace(LinearMap(self.map.mean, kept, self.map.eigenvalues[:dimensions]))

    def settings(self) -> dict[str, Any]:
        """Its kind."""
        return {"kind": "linear"}

    def arrays(self) -> Arrays:
        """mean (d,), matrix (d, p)."""
        return {"mean": self.map.mean, "matrix": self.map.matrix}


@dataclass(frozen=True)
class SmoothedSpace:
    """Each vector moved towards the mean of its k nearest among fixed rows, leaving out one that equals it."""

    pool: Floating
    neighbors: int
    amount: float

    def transform(self, vectors: Floating) -> Floats:
        """(m, d) smoothed vectors. Cost O(m n d) for a pool of n rows. Raises ParameterError as LinearSpace does."""
        x = np.asarray(_matrix(vectors, self.pool.shape[1]), dtype=self.pool.dtype)
        near = nearest_fitted(x, self.pool, self.neighbors)
        smoothed: Floats = smooth(x, near, amount=self.amount, pool=self.pool, dtype=np.float32)
        return smoothed

    def cut(self, dimensions: int) -> Space:
        """Raises NotImplementedError: nothing orders the encoder's dimensions."""
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        """Its kind and parameters."""
        return {"kind": "smoothed", "neighbors": self.neighbors, "amount": self.amount}

    def arrays(self) -> Arrays:
        """pool (n, d)."""
        return {"pool": self.pool}


@dataclass(frozen=True)
class LandmarkSpace:
    """Each vector mapped by its k nearest landmarks, whose coordinates are fixed."""

    landmarks: Floating
    coordinates: npt.NDArray[np.float64]
    neighbors: int
    regularization: float

    def transform(self, vectors: Floating) -> Floats:
        """(m, p) coordinates. Cost: see map_out_of_sample. Raises ParameterError as LinearSpace does."""
        x = np.asarray(_matrix(vectors, self.landmarks.shape[1]), dtype=self.landmarks.dtype)
        return map_out_of_sample(
            x,
            self.landmarks,
            self.coordinates,
            n_neighbors=self.neighbors,
            regularization=self.regularization,
            workers=1,
        ).astype(np.float32)

    def cut(self, dimensions: int) -> LandmarkSpace:
        """The first coordinates of the landmarks."""
        kept = np.ascontiguousarray(self.coordinates[:, :dimensions])
        return LandmarkSpace(self.landmarks, kept, self.neighbors, self.regularization)

    def settings(self) -> dict[str, Any]:
        """Its kind and parameters."""
        return {"kind": "landmarks", "neighbors": self.neighbors, "regularization": self.regularization}

    def arrays(self) -> Arrays:
        """landmarks (L, d), coordinates (L, p)."""
        return {"landmarks": self.landmarks, "coordinates": self.coordinates}


def space_widths(space: Space) -> tuple[int | None, int | None]:
    """d and p of a space; None where any number fits."""
    arrays = space.arrays()
    if isinstance(space, LinearSpace):
        return arrays["matrix"].shape
    if isinstance(space, LandmarkSpace):
        return arrays["landmarks"].shape[1], arrays["coordinates"].shape[1]
    width = arrays["pool"].shape[1] if "pool" in arrays else None
    return width, width


KINDS: dict[str, Any] = {
    "unchanged": Unchanged, "linear": LinearSpace, "smoothed": SmoothedSpace, "landmarks": LandmarkSpace
}  # fmt: skip


def save_space(space: Space, folder: Path) -> None:
    """Write a space into a folder: space.json and space.safetensors. Raises ArtifactError."""
    arrays = {name: np.ascontiguousarray(array) for name, array in space.arrays().items()}  # save takes memory order
    write_bytes_atomically(folder / ARRAYS, save(arrays))  # save_file would hide it from all but its owner
    write_json(folder / SETTINGS, space.settings())


def load_space(folder: str | Path) -> Space:
    """The space that save_space wrote. Raises ArtifactError."""
    folder = Path(folder)
    try:
        for name in (SETTINGS, ARRAYS):
            require_regular(folder / name)
            refuse_holes(folder / name)
        settings = json.loads((folder / SETTINGS).read_bytes())
        arrays = load_file(folder / ARRAYS)
        kind = settings.pop("kind")
        space: Space
        if kind == "linear":
            space = LinearSpace(LinearMap(arrays["mean"], arrays["matrix"], np.empty(0)))
        else:
            space = KINDS[kind](**arrays, **settings)
        _require_sound(space)
        return space
    except Exception as error:  # noqa: BLE001  # a damaged file makes json or safetensors raise anything
        raise ArtifactError(
            "a folder holds no space that can be read",
            where=str(folder),
            expected=f"{SETTINGS} and {ARRAYS}, as Decision.save writes them",
            got=f"{type(error).__name__}: {first_line(error)}",
        ) from None


def _require_sound(space: Space) -> None:
    """Raise ValueError unless arrays are finite and fit together, and settings are within their ranges."""
    for name, array in space.arrays().items():
        if array.dtype.kind != "f" or array.ndim != (1 if name == "mean" else 2) or not np.isfinite(array).all():
            raise ValueError(f"{name} is no {'vector' if name == 'mean' else 'matrix'} of finite numbers")
    if isinstance(space, LinearSpace) and space.map.mean.shape != space.map.matrix.shape[:1]:
        raise ValueError(f"a mean of {space.map.mean.shape} for a matrix of {space.map.matrix.shape}")
    if isinstance(space, LandmarkSpace) and len(space.landmarks) != len(space.coordinates):
        raise ValueError(f"{len(space.landmarks)} landmarks with {len(space.coordinates)} coordinates")
    if isinstance(space, SmoothedSpace | LandmarkSpace):
        rows = len(space.pool if isinstance(space, SmoothedSpace) else space.landmarks)
        if type(space.neighbors) is not int or not 1 <= space.neighbors <= min(rows, MOST_NEIGHBORS):
            raise ValueError(f"{space.neighbors!r} neighbours of {rows} rows, and at most {MOST_NEIGHBORS}")
    for name in ("amount", "regularization"):
        value = getattr(space, name, 0.0)
        if type(value) not in (int, float) or not (
            np.isfinite(value) and value >= 0 and (value <= 1 or name == "regularization")
        ):
            raise ValueError(f"{name} {value!r}")
