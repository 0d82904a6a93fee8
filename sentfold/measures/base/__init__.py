"""Code that measures share: a corpus in a space, similarities of pairs, classifiers and their solver."""
