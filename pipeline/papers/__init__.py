"""The papers' claims and printed figures, and the outcome of each claim."""
