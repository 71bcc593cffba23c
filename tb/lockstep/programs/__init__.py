"""Random programs: legal ones that cover the whole instruction set, and ones with faults."""
