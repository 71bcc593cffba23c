"""Proofs: what units promise, as properties that a solver shows for every input."""
