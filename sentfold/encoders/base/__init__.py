"""Code that encoders share: the protocol of a method file, the lexicon, and the steps of encoders over words."""
