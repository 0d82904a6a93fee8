"""Compiled kernels, threads, and conventions for arrays."""
