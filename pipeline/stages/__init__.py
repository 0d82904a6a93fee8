"""The stages: one file per stage, which `python -m pipeline STAGE` runs."""
