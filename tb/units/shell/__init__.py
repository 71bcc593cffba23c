"""Benches of the units in rtl/shell."""
