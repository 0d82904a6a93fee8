"""Measured claims of the documentation, each by one command from the root: python -m benchmarks.NAME."""
