"""Benchmarks: each compares in one run and prints ratios. ``python -m benchmarks NAME``."""
