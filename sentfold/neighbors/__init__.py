"""Exact and approximate nearest neighbours."""
