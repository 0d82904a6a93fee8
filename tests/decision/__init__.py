"""Tests of sentfold/decision."""
