"""What can go wrong when a number is walked home."""

from __future__ import annotations

from pipeline.errors import SentfoldError


class LineageError(SentfoldError):
    """A number, a revision or a record that was asked for does not exist or cannot be read."""
