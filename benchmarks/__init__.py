"""Ratios against a peer measured in the same run. `make bench` runs all of them."""
