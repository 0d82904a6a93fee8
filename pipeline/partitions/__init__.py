"""One huge corpus by row partitions: pure functions of files, each of which leaves one file and its receipt."""
