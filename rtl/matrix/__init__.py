"""The matrix unit: rows of the unified buffer through the systolic array into the accumulators."""
