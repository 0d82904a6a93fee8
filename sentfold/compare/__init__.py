"""Comparisons of scores: the bootstrap, multiple comparisons, and counts of changed orders."""
