"""Tests of sentfold/fold."""
