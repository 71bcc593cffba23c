"""Programs written by hand for the simulated core, and checks of what they do and how many cycles they take."""
