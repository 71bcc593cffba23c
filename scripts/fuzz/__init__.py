"""Damaged models, programs and arrays: each gives an error of one line, or a right result."""
