"""Decide when and where a stage runs; DVC owns what runs, Prefect carries it out."""
