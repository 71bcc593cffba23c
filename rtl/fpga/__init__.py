"""Parts that depend on the FPGA: blocks instantiated by name, multipliers in blocks or in logic."""
