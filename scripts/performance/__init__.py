"""Cycles of matrix products and networks on the simulated RTL, against their roofline."""
