"""cocotb testbenches of openmxu: bus models, handshake checkers, and the tests that run inside the simulator."""

__all__ = ["CONFIG_VARIABLE", "SEED_VARIABLE"]

CONFIG_VARIABLE = "OPENMXU_TESTBENCH_CONFIG"
"""Environment variable by which a simulation is told the parameters of its configuration, as JSON."""

SEED_VARIABLE = "OPENMXU_TESTBENCH_SEED"
"""Environment variable with another seed than 1 for all random choices of the testbenches."""
