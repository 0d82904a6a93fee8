"""Training of sentence encoders: heads behind a transformer, losses, and a normalizing flow. Needs `sentfold[text]`."""
