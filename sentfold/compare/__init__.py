"""Comparisons of scores: the bootstrap, and families of differences."""
