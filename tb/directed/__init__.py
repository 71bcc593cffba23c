"""Hand-written programs for the simulated core, and checks of their results and cycle counts."""
