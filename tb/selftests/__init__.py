"""Benches that fail on purpose, to show that a failure does not go unnoticed."""
