"""Tests of the core as a whole, driven by the host driver through bus models."""
