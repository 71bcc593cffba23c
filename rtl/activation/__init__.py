"""The activation unit: pools, scales and looks up accumulator or unified buffer rows, and writes rows of bytes."""
