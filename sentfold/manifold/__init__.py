"""Manifold methods, one file each; base/protocol.py says what a file states."""
