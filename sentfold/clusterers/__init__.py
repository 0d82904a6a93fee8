"""Clusterers of words: one file per method, found by its name in a block of `clusterings:`."""
