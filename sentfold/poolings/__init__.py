"""Sentence vectors from the hidden states of a transformer without training: the forward pass, and the poolings."""
