"""What makes an eigensolve checkable without solving again."""

from __future__ import annotations

from typing import Any

from pipeline.manifold.eigensolver import Eigenpairs


def certificate(pairs: Eigenpairs) -> dict[str, Any]:
    """All that Eigenpairs say beside the vectors, JSON-able; `outside` is None where no vector is left outside."""
    return {
        "basis": pairs.basis,
        "degree": pairs.degree,
        "eigenvalues": pairs.values.tolist(),
        "largest_eigenvalue": pairs.largest,
        "nullity": pairs.nullity,
        "orthogonality": pairs.orthogonality,
        "outside": pairs.outside if pairs.outside < float("inf") else None,
        "precision": pairs.precision,
        "products": pairs.products,
        "residuals": pairs.residuals.tolist(),
    }
