"""Frequency and resources of many cores: measured, kept in docs/fpga.json, written as a table."""
