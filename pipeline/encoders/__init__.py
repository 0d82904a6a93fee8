"""Encoders: sentences in, one vector per sentence out."""
