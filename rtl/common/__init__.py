"""Parts that several units share: streams and queues, counters, walkers, and the signatures at the core's edges."""
