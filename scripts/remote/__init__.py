"""Devices at an address, measured and killed: ``python -m scripts.remote``."""
