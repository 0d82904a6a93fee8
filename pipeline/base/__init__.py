"""What every stage needs: parameters, the suite, its cases and the artifacts."""
