"""A module without tests."""
