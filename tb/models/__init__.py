"""Models of units for their benches, and random contents of their streams."""
