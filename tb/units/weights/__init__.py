"""Benches of the units in rtl/weights."""
