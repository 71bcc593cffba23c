"""Documents that are written from the tables of openmxu.arch."""
