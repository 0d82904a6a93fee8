"""Words: the vocabulary of a suite, its counts, vectors and clusters."""
