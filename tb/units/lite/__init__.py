"""Benches of the units in rtl/lite."""
