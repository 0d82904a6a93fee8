"""Measured claims of the README, each by one command from the root: python -m benchmarks.NAME."""
