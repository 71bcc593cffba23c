"""Benches of the units in rtl/host."""
