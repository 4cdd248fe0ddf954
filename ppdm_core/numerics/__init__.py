"""Noise, distributions, distances, neighbours, intervals and linear maps."""
