"""The measures: one file per task, found by its name (registry.py); what measures share is in base/."""
