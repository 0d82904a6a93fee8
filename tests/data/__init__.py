"""Tests of sentfold/data."""
