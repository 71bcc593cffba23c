"""The mutation bench: plants single faults in the netlist of the core, and checks whether the test suite notices
them."""
