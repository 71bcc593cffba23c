"""Products of two activations, as in attention: from the graph to instructions."""
