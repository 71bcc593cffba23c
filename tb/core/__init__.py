"""Tests of the core as a whole, driven through bus models."""
