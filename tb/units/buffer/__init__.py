"""Benches of the units in rtl/buffer."""
