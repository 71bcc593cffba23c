"""Tests of the units, one module for each."""
