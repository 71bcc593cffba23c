"""What the AXI shell and the serial shell share: registers, the ring of instructions, events, errors, time-outs."""
