"""Search among documents: the methods, one file each, and the measures of their rankings in `base`."""
