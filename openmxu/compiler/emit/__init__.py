"""Emission: weights, parameters and instructions out of a planned network, in a good order."""
