"""The mutation bench: single faults planted in the netlist of the core, and whether the test suite notices them."""
