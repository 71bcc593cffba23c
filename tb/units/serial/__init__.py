"""Benches of the units in rtl/serial."""
