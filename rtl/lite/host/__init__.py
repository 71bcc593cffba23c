"""Rows between host memory and the unified buffer of the small core."""
