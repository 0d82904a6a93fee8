"""Reconstruction weights: each point as a weighted sum of its neighbours."""
