"""The hardware in Amaranth HDL; imports nothing of openmxu but ``openmxu.arch``."""
