"""Corpora: what is evaluated on, and where it comes from."""
