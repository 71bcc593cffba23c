"""Parts that several units share: streams, queues, counters, address generators, the signatures at the core's edges."""
