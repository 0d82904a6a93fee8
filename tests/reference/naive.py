"""Every word encoder again, sentence by sentence, straight from its equations: slow, plain, and written apart.

Words are texts, tables are dictionaries, and nothing is shared with sentfold/encoders. Sentences are lists of
words that all have a vector. Linear algebra is numpy's dense decompositions, never a Gram matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Words = Sequence[str]
Table = Mapping[str, Array]


# --- weights ----------------------------------------------------------------------------------------


def sif_weight(word: str, counts: Mapping[str, int], a: float) -> float:
    """a / (a + p); a word that was not counted has p = 0."""
    return a / (a + counts.get(word, 0) / sum(counts.values()))


def laplace_weight(word: str, counts: Mapping[str, int]) -> float:
    """1 / p with p = (1 + count) / (N + V)."""
    return (sum(counts.values()) + len(counts)) / (1 + counts.get(word, 0))


def usif_a(counts: Mapping[str, int], length: int) -> float:
    """a = (1 - alpha) / (alpha |V| / 2)."""
    total, size = sum(counts.values()), len(counts)
    threshold = 1 - (1 - 1 / size) ** length
    alpha = len([word for word in counts if counts[word] / total > threshold]) / size
    return (1 - alpha) / (alpha * size / 2)


# --- directions -------------------------------------------------------------------------------------


def right_singular(matrix: Array, count: int) -> tuple[Array, Array]:
    """The first right singular vectors and values of a matrix, by a full decomposition."""
    _, values, rows = np.linalg.svd(matrix, full_matrices=False)
    return rows[:count], values[:count]


def without(vector: Array, directions: Array, strengths: Sequence[float]) -> Array:
    """A vector less its projections, one after another."""
    for direction, strength in zip(directions, strengths, strict=True):
        vector = vector - strength * (vector @ direction) * direction
    return vector


# --- methods ----------------------------------------------------------------------------------------


def average(sentence: Words, table: Table) -> Array:
    return np.mean([table[word] for word in sentence], axis=0)


def weighted_average(sentence: Words, table: Table, weight: Callable[[str], float]) -> Array:
    return np.sum([weight(word) * table[word] for word in sentence], axis=0) / len(sentence)


def sif(sentences: Sequence[Words], table: Table, counts: Mapping[str, int], *, a: float, components: int) -> Array:
    raw = np.array([weighted_average(words, table, lambda word: sif_weight(word, counts, a)) for words in sentences])
    directions, _ = right_singular(raw, components)
    return np.array([without(row, directions, [1.0] * len(directions)) for row in raw])


def usif_sentence(sentence: Words, table: Table, counts: Mapping[str, int], a: float) -> Array:
    total, rarest = sum(counts.values()), min(counts.values())
    matrix = np.array([table[word] for word in sentence])
    normalised = matrix.copy()
    for j in range(matrix.shape[1]):
        norm = math.sqrt(sum(x * x for x in matrix[:, j]))
        normalised[:, j] = matrix[:, j] / norm if norm else 0.0
    weights = [a / (a / 2 + counts.get(word, rarest) / total) for word in sentence]
    return np.mean([weight * row for weight, row in zip(weights, normalised, strict=True)], axis=0)


def usif(sentences: Sequence[Words], table: Table, counts: Mapping[str, int], *, length: int, components: int) -> Array:
    a = usif_a(counts, length)
    raw = np.array([usif_sentence(words, table, counts, a) for words in sentences])
    directions, values = right_singular(raw, components)
    shares = [value**2 / sum(values**2) for value in values]
    return np.array([without(row, directions, shares) for row in raw])


def power_mean(values: Sequence[float], p: str, *, principal: bool) -> float:
    if p in ("min", "max"):
        return min(values) if p == "min" else max(values)
    power = 1 if p == "mean" else int(p[1:])
    mean = sum(x**power for x in values) / len(values)
    if principal:
        return (complex(mean) ** (1 / power)).real
    return math.copysign(abs(mean) ** (1 / power), mean)


def power_means(sentence: Words, table: Table, means: Sequence[str], *, principal: bool) -> Array:
    matrix = np.array([table[word] for word in sentence])
    return np.array([power_mean(list(column), p, principal=principal) for p in means for column in matrix.T])


def cosine_transform(sentence: Words, table: Table, coefficients: int) -> Array:
    """By the matrix of the orthonormal DCT-II."""
    d = len(next(iter(table.values())))
    n = max(len(sentence), coefficients)
    matrix = np.zeros((n, d))
    for i, word in enumerate(sentence):
        matrix[i] = table[word]
    basis = np.array([[math.cos(math.pi * (i + 0.5) * k / n) for i in range(n)] for k in range(n)])
    basis /= np.linalg.norm(basis, axis=1, keepdims=True)
    return (basis @ matrix)[:coefficients].reshape(-1)


def signed_power(vector: Array, power: float) -> Array:
    return np.array([math.copysign(abs(x) ** power, x) for x in vector])


def unit(vector: Array) -> Array:
    length = math.sqrt(sum(x * x for x in vector))
    return vector / length if length else vector


def vlawe(sentence: Words, table: Table, clusters: Mapping[str, int], centroids: Array, *, power: float) -> Array:
    residuals = [
        np.sum([table[word] - centroids[k] for word in sentence if clusters[word] == k] or [0 * centroids[k]], axis=0)
        for k in range(len(centroids))
    ]
    return unit(signed_power(np.concatenate(residuals), power))


def subspace(
    sentence: Words,
    table: Table,
    clusters: Mapping[str, int],
    centroids: Array,
    weight: Callable[[str], float],
    *,
    weigh_residual: bool,
    root_two: bool,
    power: float,
    normalise: bool = True,
) -> tuple[Array, Array]:
    """The mean part and the covariance part of S3E and LASE."""
    types = sorted(set(sentence))
    k, d = centroids.shape
    phi = np.zeros((k, d))
    for word in types:
        g = centroids[clusters[word]]
        phi[clusters[word]] += weight(word) * (table[word] - g) if weigh_residual else weight(word) * table[word] - g
    covariance = np.cov(phi, bias=True).reshape(k, k)
    part = [covariance[i, j] * (math.sqrt(2) if root_two and i < j else 1.0) for i in range(k) for j in range(i, k)]
    powered = signed_power(np.array(part), power)
    mean = np.sum([weight(word) * table[word] for word in types], axis=0) / len(types)
    return mean, unit(powered) if normalise else powered


# --- GEM --------------------------------------------------------------------------------------------


def coarse_vector(sentence: Words, table: Table, power: float, *, canonical: bool) -> Array:
    """Sum over singular values s_c^t of the left singular vectors of the sentence's matrix."""
    left, values, _ = np.linalg.svd(np.array([table[word] for word in sentence]).T, full_matrices=False)
    if canonical:
        for c in range(left.shape[1]):
            if left[np.argmax(np.abs(left[:, c])), c] < 0:
                left[:, c] = -left[:, c]
    return np.asarray(left @ values**power)


def corpus_directions(
    sentences: Sequence[Words], table: Table, power: float, count: int, *, canonical: bool
) -> tuple[Array, Array]:
    """Rows: left singular vectors of the matrix of coarse vectors, and their singular values."""
    matrix = np.array([coarse_vector(words, table, power, canonical=canonical) for words in sentences]).T
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)
    return left[:, :count].T, values[:count]


def sign_free_directions(sentences: Sequence[Words], table: Table, power: int, count: int) -> tuple[Array, Array]:
    """Eigenvectors of sum_j (A_j A_j^T)^t, and the roots of their eigenvalues."""
    total = 0.0
    for words in sentences:
        a = np.array([table[word] for word in words]).T
        total = total + np.linalg.matrix_power(a @ a.T, power)
    values, columns = np.linalg.eigh(total)
    return columns[:, ::-1][:, :count].T, np.sqrt(np.maximum(values[::-1][:count], 0))


def gem_weights(
    sentence: Words,
    table: Table,
    directions: Array,
    values: Array,
    *,
    window: int,
    released: bool,
    scores: Sequence[str],
) -> list[float]:
    """alpha_n + alpha_s + alpha_u of each word, with the singular value decomposition of each window."""
    weights = []
    vectors = [table[word] for word in sentence]
    for i, v in enumerate(vectors):
        context = vectors[max(i - window, 0) : i] + vectors[i + 1 : i + window + 1]
        residual = v.copy()
        if context:
            residual = v - np.array(context).T @ np.linalg.lstsq(np.array(context).T, v, rcond=1e-9)[0]
        r = float(np.linalg.norm(residual))
        if r < 5e-7:
            r, q = 0.0, np.zeros_like(v)
        else:
            q = residual / r
        matrix = np.array([*context, v]).T
        left, sigma, _ = np.linalg.svd(matrix, full_matrices=False)
        width = left.shape[1] if released else 2 * window + 1
        alpha = {
            "novelty": math.exp(r / float(np.linalg.norm(v))) if np.any(v) else 1.0,
            "significance": float(np.linalg.norm(sigma * (left.T @ q))) / width,
            "uniqueness": math.exp(-float(np.linalg.norm(values * (directions @ q))) / max(len(values), 1)),
        }
        weights.append(sum(alpha[name] for name in scores) if scores else 1.0)
    return weights


def gem(
    sentence: Words,
    table: Table,
    directions: Array,
    values: Array,
    *,
    window: int,
    removed: int,
    released: bool,
    scores: Sequence[str] = ("novelty", "significance", "uniqueness"),
    selection: str = "sdr",
) -> Array:
    matrix = np.array([table[word] for word in sentence]).T
    fit = [values[k] * np.linalg.norm(matrix.T @ directions[k]) for k in range(len(values))]
    chosen = sorted(range(len(values)), key=lambda k: -fit[k])[:removed]
    if selection == "sir":
        chosen = list(range(min(removed, len(values))))
    d, sigma = directions[chosen], values[chosen]
    weights = gem_weights(sentence, table, d, sigma, window=window, released=released, scores=scores)
    total = matrix @ np.array(weights)
    return total if selection == "none" else total - d.T @ (d @ total)
