"""Benches that fail on purpose, to test that failures are reported."""
