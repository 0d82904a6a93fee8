"""Comparisons of scores: the bootstrap, and multiple comparisons."""
