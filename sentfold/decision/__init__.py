"""Decisions on a user's own data: candidates, nested cross-fitting, and what may be said of the outcome."""
