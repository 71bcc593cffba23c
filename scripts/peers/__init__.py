"""Other people's models of systolic arrays, beside the simulated RTL."""
