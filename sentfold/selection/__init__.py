"""Scores of grid points, for the selection of parameters."""
