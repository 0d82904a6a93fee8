"""Manifold methods, one file each. base/protocol.py describes the contents of such a file."""
