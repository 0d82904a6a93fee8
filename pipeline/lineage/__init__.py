"""Walk from a printed number back to the bytes it came from, and check every step of the way."""
