"""sentfold: the referee of sentence geometry. Stages import from here what they need and no more."""
