"""The activation unit: accumulators or unified buffer rows, pooled, scaled and looked up, become rows of bytes."""
