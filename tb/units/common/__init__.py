"""Benches of the units in rtl/common."""
