"""Benches of the units in rtl/matrix."""
