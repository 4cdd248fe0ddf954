"""Noise, distributions, distances, neighbours, intervals, linear maps."""
