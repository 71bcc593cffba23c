"""Reference models of units for the benches, and random payloads."""
