"""Benches of the units in rtl/dispatch."""
