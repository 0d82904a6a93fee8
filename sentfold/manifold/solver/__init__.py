"""The sparse eigensolver: the eigenvectors of the smallest eigenvalues of a large symmetric matrix."""
