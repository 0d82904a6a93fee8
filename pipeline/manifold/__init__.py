"""Manifolds: neighbourhood graphs, reconstruction weights, eigenvectors, and linear controls."""
