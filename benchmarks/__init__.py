"""Ratios against named peers: `python -m benchmarks`, or `make bench`."""
