"""Formal proofs: properties of units that a solver shows for every input."""
