"""A user's own data: pairs, labels, queries or sentences from files, and the vectors of their texts."""
