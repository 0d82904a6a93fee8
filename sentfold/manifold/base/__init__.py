"""What manifold methods share: the protocol of a method file, linear maps, local weights and coordinates."""
