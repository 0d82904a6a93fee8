"""Corpora: the catalogue of data sets, and the sources that data sets are read from."""
