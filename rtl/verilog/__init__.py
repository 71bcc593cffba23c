"""Verilog of components: modules that equal components share, memories, names."""
