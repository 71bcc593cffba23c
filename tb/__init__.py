"""cocotb testbenches of openmxu: bus models, handshake checkers, and the tests that run inside the simulator."""

__all__ = ["CONFIG_VARIABLE", "SEED_VARIABLE"]

CONFIG_VARIABLE = "OPENMXU_TESTBENCH_CONFIG"
"""Environment variable that passes the parameters of the configuration to a simulation, as JSON."""

SEED_VARIABLE = "OPENMXU_TESTBENCH_SEED"
"""Environment variable that replaces the default seed, 1, of all random choices in the testbenches."""
