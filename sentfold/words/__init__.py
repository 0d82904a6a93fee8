"""Words: tokenizers, counts, vectors and partitions of words."""
