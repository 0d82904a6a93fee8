"""The measures: one file per task, which registry.py finds by its name; base/ has the code that measures share."""
