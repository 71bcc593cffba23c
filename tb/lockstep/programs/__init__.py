"""Random programs: legal ones over the whole instruction set, and faulting ones."""
