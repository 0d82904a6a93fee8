"""The encoders, texts to vectors: one file per method; base/ has the code that methods share."""
