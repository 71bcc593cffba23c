"""The unified buffer: rows of S bytes in interleaved banks."""
