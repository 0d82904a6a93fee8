"""Selection: hyper-parameters chosen on development data, and what choosing on the test set would have bought."""
