"""Evaluation: scores of a space on a corpus, with the resampled spread of each."""
