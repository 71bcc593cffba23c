"""Benches of the units in rtl/activation."""
