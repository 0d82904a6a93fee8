"""Tests of pipeline/partitions."""
