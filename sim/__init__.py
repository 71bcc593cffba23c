"""Simulators of the hardware: the functional interpreter and the Verilated device."""
