"""Benches of the units in rtl/axi."""
