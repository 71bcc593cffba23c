"""cocotb testbenches of openmxu: bus models, handshake checkers, and the tests that run inside the simulator."""
