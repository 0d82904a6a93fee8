"""The released LASE code's spectral clustering, step by step on full matrices, as its description reads."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.cluster import KMeans


def refined_affinity(vectors: np.ndarray, *, sigma: float, threshold: float, shrink: float) -> np.ndarray:
    """Cosine to [0, 1], crop, blur, threshold by rows, symmetrise, diffuse, divide by the row maximum: (n, n)."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    a = (1 + unit @ unit.T) / 2
    np.fill_diagonal(a, 0)
    np.fill_diagonal(a, a.max(axis=1))
    a = gaussian_filter(a, sigma=sigma)
    a = np.where(a < threshold * a.max(axis=1, keepdims=True), shrink * a, a)
    a = np.maximum(a, a.T)
    a = a @ a.T
    return a / a.max(axis=1, keepdims=True)


def leading_pairs(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Real parts of all eigenvalues, largest first, and of the eigenvectors; the matrix is not symmetric."""
    values, vectors = np.linalg.eig(matrix)
    order = np.argsort(-values.real)
    return values.real[order], vectors.real[:, order]


def number_by_eigengap(values: np.ndarray, *, smallest: int, largest: int, stop: float) -> int:
    """Where the ratio of neighbouring eigenvalues is greatest, between `smallest` and `largest`."""
    ratios = []
    for i in range(1, min(largest + 1, len(values))):
        if values[i - 1] < stop:
            break
        ratios.append(values[i - 1] / values[i])
    return max(smallest, 1 + int(np.argmax(ratios)) if ratios else 0)


def cluster(vectors: np.ndarray, size: int, *, sigma: float, threshold: float, shrink: float, seed: int) -> np.ndarray:
    """Labels of `size` to `size` + 5 clusters, by k-means on the leading eigenvectors as they are."""
    values, rows = leading_pairs(refined_affinity(vectors, sigma=sigma, threshold=threshold, shrink=shrink))
    number = number_by_eigengap(values, smallest=size, largest=size + 5, stop=0.01)
    return KMeans(number, n_init=1, random_state=seed).fit_predict(rows[:, :number])
