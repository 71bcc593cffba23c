"""A whole system around the core, made with LiteX: processor, DRAM, firmware; simulated, and as a bitstream."""
