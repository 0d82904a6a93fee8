"""Folds of large files by landmarks, partition by partition."""
